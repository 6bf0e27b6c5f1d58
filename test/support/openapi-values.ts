/**
 * Valid values for the schemas of the document. Ids are those of real resources; everything else follows from the schema,
 * its example, or, where both say too little, from the small table below.
 */
import { randomBytes } from 'node:crypto';
import type { Document, Schema } from './openapi-document.js';
import { resolved } from './openapi-document.js';

/** Ids of real resources by the name of the field that holds them. */
export type RealIds = Readonly<Record<string, string>>;

/** In every value that must not come back: of wrong types, of unknown fields, of passwords. */
export const marker = 'hunter2-walks';

const privateKey = randomBytes(32).toString('base64url');

/** What must never come back, nor reach the log. */
export const secrets: readonly string[] = [marker, privateKey];

/** Strings of a form that their schemas do not tell, by the name of the field. */
const strings: Readonly<Record<string, string>> = {
  address: 'a.example',
  addresses: '10.0.0.1/24',
  backend: 'b.example:80',
  common_name: 'a.example',
  current_password: `${marker}, the current one`,
  dial_addr: 'a.example',
  email: 'a@b.example',
  endpoint: 'a.example:443',
  host: 'a.example',
  listenAddr: '192.0.2.1',
  listen_addr: '192.0.2.1',
  new_password: `${marker}, the new one`,
  password: `${marker}, the only one`,
  path_prefix: '/',
  private_key: privateKey,
  routes: '10.9.0.0/16',
  security: 'raw',
  server_name: 'a.example',
  server_names: 'a.example',
  short_ids: 'ab',
  spki_pins_sha256: Buffer.alloc(32, 7).toString('base64'),
  subject_alt_names: 'a.example',
  target_host: 'a.example',
  transport: 'tcp',
  username: 'walker',
};

/** Optional fields without which a body is refused, by a value that tells the body. */
const completing: Readonly<Record<string, readonly string[]>> = { tls_cert: ['self_signed'] };

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

/** A valid value with nothing optional in it. @param name of the field, or of the list that holds it */
export function validValue(document: Document, given: Schema, name: string, ids: RealIds): unknown {
  const schema = resolved(document, given);
  const id = ids[name];
  if (id !== undefined && !typesOf(schema).includes('array')) return id;
  const [first] = alternativesOf(document, schema).filter((one) => !typesOf(one).every((type) => type === 'null'));
  if (first === undefined) return null;
  if (first !== schema) return validValue(document, first, name, ids);
  if (name === 'members') return twoMembers(document, schema, ids);
  const [type] = typesOf(schema).filter((one) => one !== 'null');
  switch (type) {
    case 'object':
      return validObject(document, schema, ids);
    case 'array': {
      const entry = schema.items ?? {};
      return schema.minItems === 0 ? [] : [validValue(document, entry, name, ids)];
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

function validObject(document: Document, schema: Schema, ids: RealIds): Readonly<Record<string, unknown>> {
  const { properties = {}, required = [] } = schema;
  const told = Object.values(properties).flatMap(
    (property) => completing[String(resolved(document, property).enum?.[0])] ?? [],
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
