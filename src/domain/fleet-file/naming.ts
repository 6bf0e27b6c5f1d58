/**
 * Exchanges ids for names, and names for ids, in the fields that refer to other resources. The schemas of requests say which
 * fields those are (`transport/rest/fleet-file/sections.ts`).
 * Implements `docs/contract/automation.md#the-fleet-as-a-file`, the document.
 */
import type { Json, JsonObject } from '../../kernel/json.js';

/** A field that holds the id of another resource. */
export interface ReferenceField {
  /** `node_id`. */
  readonly idField: string;
  /** Its name in a document: `node`. */
  readonly nameField: string;
  /** The type that it refers to. */
  readonly type: string;
}

/** The referring fields of an object, or of each entry of a list, and the fields that hold such objects. */
export interface ReferenceFields {
  readonly here: readonly ReferenceField[];
  readonly inside: ReadonlyMap<string, ReferenceFields>;
}

export const noReferences: ReferenceFields = { here: [], inside: new Map() };

/** The new value of a field. @param at the field's path in the given value */
type Exchange = (value: Json, field: ReferenceField, at: readonly PropertyKey[]) => Json;

/** Which name a field has in the given value and in the result. */
interface Renaming {
  readonly from: 'idField' | 'nameField';
  readonly to: 'idField' | 'nameField';
}

function exchanged(
  value: Json,
  fields: ReferenceFields,
  { from, to }: Renaming,
  exchange: Exchange,
  at: readonly PropertyKey[],
): Json {
  if (Array.isArray(value)) {
    return value.map((entry: Json, index) => exchanged(entry, fields, { from, to }, exchange, [...at, index]));
  }
  if (typeof value !== 'object' || value === null) return value;
  const result: Record<string, Json> = {};
  for (const [key, inner] of Object.entries(value as JsonObject)) {
    if (inner === undefined) continue;
    const field = fields.here.find((one) => one[from] === key);
    if (field !== undefined) result[field[to]] = exchange(inner, field, [...at, key]);
    else {
      const inside = fields.inside.get(key);
      result[key] = inside === undefined ? inner : exchanged(inner, inside, { from, to }, exchange, [...at, key]);
    }
  }
  return result;
}

/** The value with names, and fields called as in documents. */
export function withNames(value: Json, fields: ReferenceFields, nameOf: (type: string, id: string) => string): Json {
  const exchange: Exchange = (id, { type }) => (typeof id === 'string' ? nameOf(type, id) : id);
  return exchanged(value, fields, { from: 'idField', to: 'nameField' }, exchange, []);
}

/** The value with ids, and fields called as in requests. */
export function withIds(value: Json, fields: ReferenceFields, idOf: Exchange): Json {
  return exchanged(value, fields, { from: 'nameField', to: 'idField' }, idOf, []);
}

/** The value with other ids. */
export function withOtherIds(value: Json, fields: ReferenceFields, idOf: (id: string) => string): Json {
  const exchange: Exchange = (id) => (typeof id === 'string' ? idOf(id) : id);
  return exchanged(value, fields, { from: 'idField', to: 'idField' }, exchange, []);
}

/** Paths of the id fields, which have other names in documents: `hops[0].node_id`. */
export function* idFieldsIn(
  value: Json,
  fields: ReferenceFields,
  at: readonly PropertyKey[] = [],
): Generator<readonly PropertyKey[]> {
  if (Array.isArray(value)) {
    for (const [index, entry] of value.entries()) yield* idFieldsIn(entry as Json, fields, [...at, index]);
    return;
  }
  if (typeof value !== 'object' || value === null) return;
  for (const { idField } of fields.here) if (Object.hasOwn(value, idField)) yield [...at, idField];
  for (const [key, inside] of fields.inside) {
    const inner = (value as JsonObject)[key];
    if (inner !== undefined) yield* idFieldsIn(inner, inside, [...at, key]);
  }
}

/** A field change with names in place of ids. */
export function changeWithNames<C extends { readonly path: string; readonly before: Json; readonly after: Json }>(
  change: C,
  fields: ReferenceFields,
  nameOf: (type: string, id: string) => string,
): C {
  const keys = change.path.split('.').map((key) => key.replace(/\[\d+\]$/, ''));
  let at = fields;
  for (const key of keys.slice(0, -1)) at = at.inside.get(key) ?? noReferences;
  const last = keys.at(-1) ?? '';
  const field = at.here.find(({ idField }) => idField === last);
  const named = (value: Json): Json => {
    if (field !== undefined) return typeof value === 'string' ? nameOf(field.type, value) : value;
    return withNames(value, at.inside.get(last) ?? noReferences, nameOf);
  };
  const path = field === undefined ? change.path : change.path.slice(0, -last.length) + field.nameField;
  return { ...change, path, before: named(change.before), after: named(change.after) };
}
