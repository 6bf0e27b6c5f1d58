/** REST requests made from the OpenAPI document: what it allows, what it forbids, and what it does not mention. */
import fc, { type Arbitrary } from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { operationsOf, resolved, type Document, type Schema } from '../support/openapi-document.js';
import { fuzzTimeoutMs, inputs, sendAll, startFuzzed, type Fuzzed } from './support.js';

interface Request {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
}

let fuzzed: Fuzzed;
beforeAll(async () => {
  fuzzed = await startFuzzed();
});
afterAll(() => fuzzed.close());

const oddText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.string({ maxLength: 12 }),
  fc.constantFrom(
    '',
    '__proto__',
    'constructor',
    '0',
    '-1',
    '1e400',
    'null',
    '../..',
    'a'.repeat(5_000),
    '\u0000',
    '💥'.repeat(128),
  ),
);
const oddValue: Arbitrary<unknown> = fc.oneof(
  oddText,
  fc.double(),
  fc.maxSafeInteger(),
  fc.constantFrom(null, true, false, [], {}, Number.MAX_VALUE, -0),
  fc.jsonValue({ maxDepth: 4 }),
);

/** Mostly what the schema allows, now and then anything. */
function valueOf(document: Document, schema: Schema, depth = 0): Arbitrary<unknown> {
  const like = conforming(document, schema, depth);
  return fc.oneof({ weight: 12, arbitrary: like }, { weight: 1, arbitrary: oddValue });
}

function conforming(document: Document, schema: Schema, depth: number): Arbitrary<unknown> {
  if (schema.$ref !== undefined) return conforming(document, resolved(document, schema), depth + 1);
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices !== undefined) return fc.oneof(...choices.map((choice) => valueOf(document, choice, depth + 1)));
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum);
  if (schema.const !== undefined) return fc.constant(schema.const);
  switch (schema.type) {
    case 'object': {
      if (depth > 8) return fc.constant({});
      const fields = Object.entries(schema.properties ?? {}).map(([name, field]) => [
        name,
        valueOf(document, field, depth + 1),
      ]);
      const record = (requiredKeys: readonly string[]) =>
        fc.record(Object.fromEntries(fields) as Record<string, Arbitrary<unknown>>, {
          requiredKeys: [...requiredKeys],
        });
      // What every create requires comes with most of them, or hardly any would get past the first check.
      const known = fc.oneof(
        { weight: 3, arbitrary: record(schema.required ?? []) },
        { weight: 1, arbitrary: record([]) },
      );
      return fc
        .tuple(known, fc.option(fc.dictionary(oddText, oddValue, { maxKeys: 1 }), { freq: 12 }))
        .map(([object, more]) => ({ ...object, ...more }));
    }
    case 'array':
      return fc.array(valueOf(document, schema.items ?? {}, depth + 1), { maxLength: 9 });
    case 'integer':
    case 'number':
      return fc.oneof(
        fc.integer({
          min: Math.max(schema.minimum ?? -10, -(2 ** 31)),
          max: Math.min(schema.maximum ?? 70_000, 2 ** 31 - 1),
        }),
        fc.constantFrom(schema.minimum ?? 0, schema.maximum ?? 65_535, 0.5, -1),
      );
    case 'boolean':
      return fc.boolean();
    case 'null':
      return fc.constant(null);
    default:
      return fc.oneof(
        fc.constantFrom(
          'edge',
          'a.example:443',
          '192.0.2.1',
          '0.0.0.0',
          'tcp',
          'udp',
          '*.a.example',
          '2026-01-01T00:00:00Z',
        ),
        oddText,
      );
  }
}

function requestsOf(document: Document, ids: readonly string[]): Arbitrary<Request> {
  const id = fc.oneof({ weight: 6, arbitrary: fc.constantFrom(...ids) }, { weight: 1, arbitrary: oddText });
  // A sign-out ends the token of everything after it, and a retired identity the PSK of the good agent.
  const ending = ['/api/auth/logout', '/api/service/identity/retire'];
  const fuzzed = operationsOf(document).filter(({ path }) => !ending.includes(path));
  const operations = fuzzed.map(({ method, path, parameters, body: schema }) => {
    const query = fc.record(
      Object.fromEntries(
        parameters
          .filter((parameter) => parameter.in === 'query')
          // A wait would take its time: it is bounded, and tested elsewhere.
          .filter(({ name }) => name !== 'wait' && name !== 'timeout_ms')
          .map(({ name, schema }) => [name, valueOf(document, schema ?? {})]),
      ),
      { requiredKeys: [] },
    );
    const headers = fc.record(
      {
        'if-match': fc.oneof(
          { weight: 2, arbitrary: fc.constantFrom('*', '"1"', '"2", "3"') },
          { weight: 1, arbitrary: fc.constantFrom('W/"1"', '1', '""', 'x'.repeat(3_000)) },
        ),
        'idempotency-key': fc.constantFrom('k1', 'k2', 'k'.repeat(300), ' '),
        'x-request-id': fc.constantFrom('r', 'r'.repeat(1_000), '{}'),
        accept: fc.constantFrom('*/*', 'text/html', ''),
      },
      { requiredKeys: [] },
    );
    const json = (schema === undefined ? oddValue : valueOf(document, schema)).map((value) => JSON.stringify(value));
    const body = fc.oneof(
      { weight: schema === undefined ? 1 : 12, arbitrary: json },
      { weight: schema === undefined ? 6 : 1, arbitrary: fc.constant(undefined) },
      {
        weight: 1,
        arbitrary: fc.constantFrom('{', '[', '{"a":1,"a":2}', '[[['.repeat(2_000), '{"__proto__":{}}', '\ufeff{}'),
      },
    );
    const type = fc.oneof(
      { weight: 9, arbitrary: fc.constantFrom('application/json', 'application/json; charset=utf-8') },
      { weight: 1, arbitrary: fc.constant('text/plain') },
    );
    const requests = fc
      .tuple(fc.array(id, { minLength: 3, maxLength: 3 }), query, headers, body, type)
      .map(([places, given, sent, text, contentType]): Request => {
        let place = 0;
        const filled = path.replaceAll(/\{[^}]+\}/g, () => encodeURIComponent(wellFormed(places[place++ % 3]!)));
        const search = new URLSearchParams(
          Object.entries(given).map(([name, value]): [string, string] => [name, wellFormed(String(value))]),
        );
        const takesBody = method !== 'GET' && method !== 'HEAD';
        return {
          method,
          url: `${filled}?${search.toString()}`,
          headers: { ...sent, ...(takesBody && text !== undefined ? { 'content-type': contentType } : {}) },
          body: takesBody ? text : undefined,
        };
      });
    return { creates: method === 'POST' && !path.includes('{'), requests };
  });
  // A create is the only way to a 201, and most of what is made up for it is refused.
  return fc.oneof(...operations.map(({ creates, requests }) => ({ weight: creates ? 5 : 1, arbitrary: requests })));
}

/** Half of a surrogate pair cannot be put into a URL. */
const wellFormed = (text: string): string => Buffer.from(text, 'utf8').toString('utf8');

test(
  'no REST request gets a 5xx, breaks the envelope, or disturbs a good agent',
  async () => {
    const document = (await (await fetch(`${fuzzed.service.url}/openapi.json`)).json()) as Document;
    const { admin } = fuzzed;
    const made = async (path: string, body: object): Promise<string> =>
      (await admin.call<{ id: string }>('POST', path, body)).id;
    const nodes = [await made('/api/nodes', { name: 'fuzzed' }), await made('/api/nodes', { name: 'fuzzed too' })];
    const upstream = await made('/api/l4-upstreams', { name: 'fuzzed', endpoint: 'a.example:80' });
    const chain = await made('/api/l4-chains', {
      name: 'fuzzed',
      payload: 'tcp',
      hops: [{ node_id: nodes[0], listen_port: 8_080, outer: 'tcp', security: 'raw' }],
      target: { upstream_id: upstream },
    });
    const statuses = new Map<number, number>();
    const requests = inputs(requestsOf(document, [...nodes, upstream, chain]), 1_200);
    await sendAll(requests, 8, async ({ method, url, headers, body }) => {
      const response = await fetch(`${fuzzed.service.url}${url}`, {
        method,
        headers: { ...headers, authorization: `Bearer ${fuzzed.token}` },
        ...(body === undefined ? {} : { body }),
        signal: AbortSignal.timeout(20_000),
      });
      const { status } = response;
      const text = await response.text();
      expect(status, `${method} ${url} ${body?.slice(0, 500)}: ${text}`).toBeLessThan(500);
      if (url.startsWith('/api/')) expect((JSON.parse(text) as { success: boolean }).success).toBe(status < 400);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    });
    // The requests reach past the first check: some succeed, some are refused for what they say.
    for (const status of [200, 201, 400, 404, 412]) expect([...statuses.keys()]).toContain(status);
    await fuzzed.unharmed();
  },
  fuzzTimeoutMs,
);
