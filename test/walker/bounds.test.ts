/**
 * `docs/contract/rest.md#envelope`, bounds where none is stated: the OpenAPI document has them, and the walk
 * (`walk.test.ts`) finds that they are those which the service checks.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { operationsOf, resolved, type Document, type Schema } from '../support/openapi-document.js';
import { isObject, typesOf } from '../support/openapi-values.js';
import { startRest, type RestFixture } from '../support/rest-fixture.js';

let rest: RestFixture;
beforeAll(async () => {
  rest = await startRest();
});
afterAll(() => rest.close());

/** Fields with a bound of their own, by their name; all others have that of their type. */
const stated: Readonly<Record<string, number>> = {
  // Names.
  name: 128,
  name_prefix: 128,
  display_name: 128,
  interface_name: 15,
  common_name: 64,
  // PEM: 64 KiB.
  certificate_pem: 65_536,
  private_key_pem: 65_536,
  // 16 MiB.
  document: 16_777_216,
  rollout_policy: 128,
  upgrade_rollout_policy: 128,
  // Lists.
  waves: 16,
  hops: 8,
  members: 256,
  tunnels: 1_024,
  nodes: 1_024,
  // Keys of labels.
  'remove[]': 63,
  // Of an API token.
  from: 16,
  node_ids: 500,
};

function* boundsOf(document: Document, given: Schema, name: string): Generator<readonly [string, number | undefined]> {
  const schema = resolved(document, given);
  for (const choice of schema.anyOf ?? schema.oneOf ?? []) yield* boundsOf(document, choice, name);
  const { properties = {}, additionalProperties, items, enum: values } = schema;
  for (const [key, property] of Object.entries(properties)) yield* boundsOf(document, property, key);
  if (isObject(additionalProperties)) yield* boundsOf(document, additionalProperties, '');
  if (typesOf(schema).includes('array')) {
    yield [name, schema.maxItems === (stated[name] ?? 64) ? undefined : (schema.maxItems ?? Number.NaN)];
    yield* boundsOf(document, items ?? {}, `${name}[]`);
  } else if (typesOf(schema).includes('string') && values === undefined) {
    const { maxLength = Number.NaN } = schema;
    // Names and passwords of users have bounds of their own; the login takes any.
    const ofUsers = /^username$|password$/.test(name) && maxLength <= 1_024;
    // A share such as `100%`.
    const isShare = (schema.pattern ?? '').includes('%') && maxLength <= 4;
    yield [name, ofUsers || isShare || maxLength === (stated[name] ?? 1_024) ? undefined : maxLength];
  }
}

test('every string and list of every body has the bound of the contract', async () => {
  const document = (await rest.call('GET', '/openapi.json')).json() as Document;
  const found = operationsOf(document).flatMap(({ method, path, body }) =>
    body === undefined
      ? []
      : [...boundsOf(document, body, '')].map(([name, other]) => ({ at: `${method} ${path} ${name}`, other })),
  );
  expect(found.filter(({ other }) => other !== undefined)).toEqual([]);
  expect(found.length).toBeGreaterThan(80);
});
