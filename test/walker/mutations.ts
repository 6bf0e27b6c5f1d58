/** Everything that can be wrong with a body, from its schema. Pure. */
import { resolved, type Document, type Schema } from '../support/openapi-document.js';
import {
  alternativesOf,
  isObject,
  marker,
  typesOf,
  validEntry,
  validValue,
  type RealIds,
} from '../support/openapi-values.js';

export interface Mutation {
  readonly what: string;
  /** The place that is changed, `body` for the whole. */
  readonly path: string;
  /** What stands there, as it is sent. */
  readonly value: string;
  /** The whole body. */
  readonly text: string;
  /** The paths that the sentence may name; undefined for a value that is allowed. */
  readonly names: readonly string[] | undefined;
}

interface Place {
  readonly document: Document;
  readonly ids: RealIds;
  /** `hops[0].listen_port`; empty for the whole body. */
  readonly path: string;
  /** Of the field, or of the list that holds it. */
  readonly name: string;
  /** The path of the union around, which its sentence may name instead. */
  readonly union: readonly string[];
  /** The body with this value here. */
  whole(value: unknown): unknown;
}

/** Stands in a body where a text comes that is not the JSON of a value. */
const hole = '"the place of the mutation"';

/** The body with this text here. */
function withText(place: Place, text: string): string {
  // A function, because `$` in a replacement text has a meaning.
  return JSON.stringify(place.whole(JSON.parse(hole))).replace(hole, () => text);
}

function refused(place: Place, what: string, text: string): Mutation {
  const path = place.path === '' ? 'body' : place.path;
  return { what: `${path}: ${what}`, path, value: text, text: withText(place, text), names: [path, ...place.union] };
}

/** Fields that have a value beside another field only, by their path. */
const companions: Readonly<Record<string, object>> = {
  chat_id: { format: 'telegram' },
  group_secs: { format: 'slack' },
};

function allowed(place: Place, what: string, text: string): Mutation {
  const beside = text === 'null' ? undefined : companions[place.path];
  const whole = (value: unknown): unknown =>
    beside === undefined ? place.whole(value) : { ...(place.whole(value) as object), ...beside };
  return { ...refused({ ...place, whole }, what, text), names: undefined };
}

/** @param value a valid one, of one alternative where the schema has several */
export function bodyMutations(document: Document, ids: RealIds, schema: Schema, value: unknown): Generator<Mutation> {
  const place: Place = { document, ids, path: '', name: '', union: [], whole: (body) => body };
  return mutationsOf(place, schema, value);
}

const samples: readonly (readonly [string, unknown])[] = [
  ['null', null],
  ['boolean', true],
  ['number', 1.5],
  ['string', marker],
  ['array', []],
  ['array', [marker]],
  ['object', {}],
  ['object', { [`x`]: marker }],
];

function* mutationsOf(place: Place, given: Schema, value: unknown): Generator<Mutation> {
  const { document } = place;
  const alternatives = alternativesOf(document, given);
  const types = new Set(alternatives.flatMap(typesOf));
  for (const [type, sample] of samples) {
    if (types.size === 0 || types.has(type)) continue;
    yield refused(place, `${type} instead of ${[...types].join(' or ')}`, JSON.stringify(sample));
  }
  if (place.path !== '' && types.has('null')) yield allowed(place, 'null, which is allowed', 'null');
  const matching = alternatives.filter((one) => !typesOf(one).every((type) => type === 'null'));
  const chosen = matching.find((one) => fits(document, one, value)) ?? matching[0] ?? {};
  const inner = matching.length > 1 ? { ...place, union: [place.path === '' ? 'body' : place.path] } : place;
  switch (typesOf(chosen).find((type) => type !== 'null')) {
    case 'string':
      yield* ofString(place, chosen);
      return;
    case 'integer':
      yield* ofInteger(place, chosen);
      return;
    case 'array':
      yield* ofArray(place, chosen, value);
      return;
    case 'object':
      yield* ofObject(inner, chosen, isObject(value) ? value : {});
      return;
    default:
  }
}

/** True when an alternative of a union is the one that the value is of. */
export function fits(document: Document, schema: Schema, value: unknown): boolean {
  if (!isObject(value)) return typesOf(schema).includes(typeof value);
  const { properties = {}, required = [] } = schema;
  const known = Object.entries(value).every(([key, one]) => {
    const property = properties[key] === undefined ? undefined : resolved(document, properties[key]);
    return property !== undefined && (property.enum === undefined || property.enum.includes(one));
  });
  return known && required.every((key) => key in value);
}

function* ofString(place: Place, { enum: values, minLength, maxLength }: Schema): Generator<Mutation> {
  const wrong = (what: string, value: string) => refused(place, what, JSON.stringify(value));
  if (values !== undefined) {
    for (const value of values.map(String)) {
      const other = value === value.toUpperCase() ? value.toLowerCase() : value.toUpperCase();
      if (!values.includes(other)) yield wrong(`${other} for ${value}`, other);
    }
    yield wrong('none of the allowed ones', marker);
    yield wrong('empty', '');
    return;
  }
  yield refused(place, 'half a surrogate pair', '"\\ud800"');
  if (maxLength !== undefined) {
    yield wrong('too long', 'x'.repeat(maxLength + 1));
    if (maxLength < 10_000) yield wrong('too long in characters of two code units', '😀'.repeat(maxLength + 1));
  }
  // Strings of any content say how short they may be; of the others, neither of these has the form.
  if (minLength === undefined) {
    for (const text of ['\u0001', `${marker} ☠`]) yield wrong('of another form', text);
    return;
  }
  if (minLength > 0) yield wrong('too short', 'x'.repeat(minLength - 1));
  // What a text of this length must be beside that is not in its schema.
  if (maxLength === undefined || maxLength > 10_000) return;
  yield allowed(place, 'the shortest', JSON.stringify('x'.repeat(minLength)));
  yield allowed(place, 'the longest', JSON.stringify('x'.repeat(maxLength)));
}

function* ofInteger(place: Place, { minimum, maximum }: Schema): Generator<Mutation> {
  for (const text of ['1.0000001', '1e400', '-1e400', '"1500"']) yield refused(place, `the number ${text}`, text);
  // A confirmation needs a longer bake, which the sample does not have.
  const standsAlone = place.name !== 'confirm_secs';
  if (minimum !== undefined) {
    yield refused(place, 'too small', String(minimum - 1));
    if (standsAlone) yield allowed(place, 'the smallest', String(minimum));
  }
  if (maximum !== undefined && maximum < Number.MAX_SAFE_INTEGER) {
    yield refused(place, 'too large', String(maximum + 1));
    if (standsAlone) yield allowed(place, 'the largest', String(maximum));
  }
}

function* ofArray(place: Place, schema: Schema, value: unknown): Generator<Mutation> {
  const { items = {}, minItems = 0, maxItems } = schema;
  const entries: readonly unknown[] = Array.isArray(value) ? value : [];
  const entry = entries[0] ?? validEntry(place.document, schema, place.name, place.ids);
  const times = (count: number): string => JSON.stringify(Array.from({ length: count }, () => entry));
  if (minItems > 0) yield refused(place, 'too few', times(minItems - 1));
  if (maxItems !== undefined) yield refused(place, 'too many', times(maxItems + 1));
  const whole = (one: unknown): unknown => place.whole([one, ...entries.slice(1)]);
  yield* mutationsOf({ ...place, union: [], path: `${place.path}[0]`, whole }, items, entry);
}

function* ofObject(place: Place, schema: Schema, value: Readonly<Record<string, unknown>>): Generator<Mutation> {
  const { document, ids } = place;
  const { properties = {}, required = [], additionalProperties, maxProperties } = schema;
  const free = isObject(additionalProperties) ? additionalProperties : undefined;
  const pathOf = (key: string): string => (place.path === '' ? key : `${place.path}.${key}`);
  const begun = Object.keys(value).length === 0 ? '{' : `${JSON.stringify(value).slice(0, -1)},`;
  const plus = (key: string, text: string): Mutation => ({
    ...refused(place, `with ${key}`, `${begun}${JSON.stringify(key)}:${text}}`),
    names: [pathOf(key)],
  });
  yield plus('__proto__', '{"polluted":true}');
  if (free === undefined) {
    for (const key of ['walks_nowhere', 'constructor', 'prototype', 'toString', 'Name']) {
      yield plus(key, JSON.stringify(marker));
    }
  } else {
    const whole = (one: unknown): unknown => place.whole({ walker: one });
    yield* mutationsOf({ ...place, path: pathOf('walker'), name: 'walker', union: [], whole }, free, '');
    const twice = refused(place, 'a key twice', '{"twice":"","tw\\u0069ce":""}');
    yield { ...twice, names: [pathOf('twice')] };
    if (maxProperties !== undefined) {
      const many = Array.from({ length: maxProperties + 1 }, (_, index) => [`k${index}`, '']);
      yield refused(place, 'too many', JSON.stringify(Object.fromEntries(many)));
    }
  }
  for (const [key, property] of Object.entries(properties)) {
    const own = value[key] ?? validValue(document, property, key, ids);
    const whole = (one: unknown): unknown => place.whole({ ...value, [key]: one });
    const field: Place = { ...place, path: pathOf(key), name: key, union: [], whole };
    if (required.includes(key)) {
      const { [key]: _removed, ...rest } = value;
      const missing = refused(place, `${key} missing`, JSON.stringify(rest));
      yield { ...missing, names: [field.path, ...place.union] };
    }
    const text = JSON.stringify(own);
    yield refused(field, 'twice', `${text},${JSON.stringify(key)}:${text}`);
    yield* mutationsOf(field, property, own);
  }
}
