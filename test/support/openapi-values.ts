/**
 * Valid values for the schemas of the document. Ids are those of real resources; everything else follows from the schema,
 * its example, or, where both say too little, from the small table below.
 */
import { randomBytes } from 'node:crypto';
import { resolved, type Document, type Schema } from './openapi-document.js';

/** Ids of real resources by the name of the field that holds them. */
export type RealIds = Readonly<Record<string, string>>;

/** In every value that must not come back: of wrong types, of unknown fields, of passwords. */
export const marker = 'hunter2-walks';

const privateKey = randomBytes(32).toString('base64url');

/** What must never come back, nor reach the log. */
export const secrets: readonly string[] = [marker, privateKey];

/** Strings that must fit other resources, be secret, or be one of several, by the name of the field. Others are examples. */
const strings: Readonly<Record<string, string>> = {
  current_password: `${marker}, the current one`,
  listenAddr: '192.0.2.1',
  listen_addr: '192.0.2.1',
  new_password: `${marker}, the new one`,
  password: `${marker}, the only one`,
  private_key: privateKey,
  security: 'raw',
  server_name: 'a.example',
  server_names: 'a.example',
  short_ids: 'ab',
};

/** Optional fields without which a body is refused, by a value or a field that tells the body. */
const completing: Readonly<Record<string, readonly string[]>> = { tls_cert: ['self_signed'], remove: ['set'] };

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function typesOf(schema: Schema): readonly string[] {
  if (schema.type !== undefined) return [schema.type].flat();
  return [...new Set((schema.enum ?? []).map((value) => (value === null ? 'null' : typeof value)))];
}

/** The alternatives of a schema: itself when it has none. */
export function alternativesOf(document: Document, schema: Schema): readonly Schema[] {
  const whole = resolved(document, schema);
  const choices = whole.oneOf ?? whole.anyOf;
  return choices === undefined ? [whole] : choices.flatMap((choice) => alternativesOf(document, choice));
}

/**
 * A valid value with nothing optional in it.
 * @param name of the field, or of the list that holds it
 * @param shown the example of what is around it
 */
export function validValue(document: Document, given: Schema, name: string, ids: RealIds, shown?: unknown): unknown {
  const schema = resolved(document, given);
  const example = schema.examples?.[0] ?? shown;
  const id = ids[name];
  if (id !== undefined && !typesOf(schema).includes('array')) return id;
  const [first] = alternativesOf(document, schema).filter((one) => !typesOf(one).every((type) => type === 'null'));
  if (first === undefined) return null;
  if (first !== schema) return validValue(document, first, name, ids, example);
  if (name === 'members') return twoMembers(document, schema, ids);
  const [type] = typesOf(schema).filter((one) => one !== 'null');
  switch (type) {
    case 'object':
      // A map, whose keys are free.
      return schema.properties === undefined && isObject(example) ? example : validObject(document, schema, ids);
    case 'array': {
      return schema.minItems === 0 ? [] : [validEntry(document, given, name, ids)];
    }
    case 'boolean':
      return false;
    case 'integer':
    case 'number':
      return Math.min(Math.max(schema.minimum ?? 1, 1_500), schema.maximum ?? 1_500);
    case 'string':
      return (
        schema.enum?.find((value) => value === strings[name]) ??
        schema.enum?.[0] ??
        strings[name] ??
        schema.examples?.[0] ??
        'walker'
      );
    default:
      return schema.enum?.[0] ?? null;
  }
}

/** A valid entry of a list. */
export function validEntry(document: Document, list: Schema, name: string, ids: RealIds): unknown {
  const { items = {}, examples } = resolved(document, list);
  const [example] = Array.isArray(examples?.[0]) ? (examples[0] as readonly unknown[]) : [];
  return validValue(document, items, name, ids, example);
}

function validObject(document: Document, schema: Schema, ids: RealIds): Readonly<Record<string, unknown>> {
  const { properties = {}, required = [] } = schema;
  const told = Object.entries(properties).flatMap(
    ([field, property]) => completing[field] ?? completing[String(resolved(document, property).enum?.[0])] ?? [],
  );
  return Object.fromEntries(
    [...required, ...told].map((field) => [field, validValue(document, properties[field] ?? {}, field, ids)]),
  );
}

/** Nodes of a network that a tunnel can join. */
function twoMembers(document: Document, schema: Schema, ids: RealIds): readonly unknown[] {
  const [of = ''] = Object.keys(ids).filter((name) => name === 'listener_node_id');
  const node = (id: string | undefined, address: string) => ({
    ...(validValue(document, schema.items ?? {}, '', ids) as object),
    node_id: id,
    addresses: [address],
  });
  return [node(ids[of], '10.0.0.1/24'), node(ids['connector_node_id'], '10.0.0.2/24')];
}
