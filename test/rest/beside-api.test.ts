/** `docs/contract/rest.md#beside-api`: probes, metrics, CORS, the OpenAPI document and its page. */
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { startRest } from '../support/rest-fixture.js';
import type { RestFixture } from '../support/rest-fixture.js';
import { endpoints, nameOf, openPaths } from './endpoints.js';

let rest: RestFixture;
beforeAll(async () => {
  rest = await startRest();
});
afterEach(() => vi.restoreAllMocks());
afterAll(() => rest.close());
const nobody = { role: 'nobody' } as const;

test('the probes and the metrics need no token; an unready instance answers 503 with its reasons', async () => {
  expect((await rest.call('GET', '/healthz', nobody)).statusCode).toBe(200);
  expect((await rest.call('GET', '/readyz', nobody)).json()).toEqual({ ready: true, reasons: [] });
  vi.spyOn(rest.deps, 'readiness').mockReturnValue({ ready: false, reasons: ['projections: catching up'] });
  const answer = await rest.call('GET', '/readyz', nobody);
  expect([answer.statusCode, answer.json()]).toEqual([503, { ready: false, reasons: ['projections: catching up'] }]);
  const metrics = await rest.call('GET', '/metrics', nobody);
  expect([metrics.statusCode, metrics.body]).toEqual([200, expect.stringContaining('\nup 1\n')]);
  expect(metrics.headers['content-type']).toMatch(/^text\/plain/);
  for (const url of openPaths)
    expect([url, (await rest.call('HEAD', url, nobody)).statusCode]).toEqual([url, url === '/readyz' ? 503 : 200]);
  const wrong = await rest.call('POST', '/healthz', nobody);
  expect([wrong.statusCode, wrong.headers['allow']]).toEqual([405, 'GET, HEAD']);
});

test('the metrics accept only their own token when one is set', async () => {
  const guarded = await startRest({ metricsToken: 'scrape-me' });
  const get = async (authorization?: string) =>
    (
      await guarded.call('GET', '/metrics', {
        ...nobody,
        headers: authorization === undefined ? {} : { authorization },
      })
    ).statusCode;
  expect(await get()).toBe(401);
  expect(await get(`Bearer ${guarded.tokenOf('admin')}`)).toBe(401);
  expect(await get('Bearer scrape-m')).toBe(401);
  expect(await get('Bearer scrape-me')).toBe(200);
  await guarded.close();
});

describe('CORS', () => {
  let open: RestFixture;
  beforeAll(async () => {
    open = await startRest({ corsOrigins: ['https://console.example', 'https://b.example'] });
  });
  afterAll(() => open.close());
  const preflight = (origin: string) => ({ ...nobody, headers: { origin, 'access-control-request-method': 'PUT' } });

  test('a preflight from an allowed origin is answered before all checks', async () => {
    for (const url of ['/api/nodes', '/api/nodes/x', '/api/nope']) {
      const answer = await open.call('OPTIONS', url, preflight('https://b.example'));
      expect(answer.statusCode).toBe(204);
      expect(answer.headers).toMatchObject({ 'access-control-allow-origin': 'https://b.example', vary: 'Origin' });
      expect(answer.headers['access-control-allow-methods']).toContain('DELETE');
      expect(answer.headers['access-control-allow-headers']).toContain('idempotency-key');
    }
  });

  test('a preflight from another origin, and an OPTIONS that is no preflight, go through the checks', async () => {
    for (const origin of ['https://evil.example', 'null', 'https://console.example.evil']) {
      const answer = await open.call('OPTIONS', '/api/nodes', preflight(origin));
      expect([origin, answer.statusCode]).toEqual([origin, 401]);
      expect(answer.headers['access-control-allow-origin']).toBeUndefined();
    }
    const plain = await open.call('OPTIONS', '/api/nodes', { headers: { origin: 'https://console.example' } });
    expect(plain.statusCode).toBe(405);
    expect((await open.call('OPTIONS', '/api/nodes', nobody)).statusCode).toBe(401);
  });

  test('an allowed origin can read every answer, errors included', async () => {
    for (const call of [nobody, {}]) {
      const answer = await open.call('GET', '/api/nodes', { ...call, headers: { origin: 'https://console.example' } });
      expect(answer.headers['access-control-allow-origin']).toBe('https://console.example');
      expect(answer.headers['access-control-expose-headers']).toContain('x-position');
    }
  });

  test('no answer carries CORS headers when no origin is allowed', async () => {
    const answer = await rest.call('OPTIONS', '/api/nodes', preflight('https://console.example'));
    expect([answer.statusCode, answer.headers['access-control-allow-origin']]).toEqual([401, undefined]);
  });
});

describe('the OpenAPI document', () => {
  interface Operation {
    readonly parameters?: readonly {
      readonly in: string;
      readonly name: string;
      readonly required: boolean;
      readonly schema: object;
    }[];
    readonly requestBody?: { readonly content: Record<string, { readonly schema: Record<string, unknown> }> };
    readonly responses: Record<string, unknown>;
    readonly security?: readonly object[];
  }
  type Paths = Record<string, Record<string, Operation>>;

  test('lists exactly the endpoints of this release', async () => {
    const document = (await rest.call('GET', '/openapi.json', nobody)).json();
    expect(document.openapi).toBe('3.1.0');
    const operations = Object.entries(document.paths as Paths).flatMap(([path, methods]) =>
      Object.keys(methods)
        .filter((method) => method !== 'head')
        .map((method) => `${method.toUpperCase()} ${path}`),
    );
    expect(operations.toSorted()).toEqual(
      [...endpoints.map(nameOf), ...openPaths.map((path) => `GET ${path}`)].toSorted(),
    );
  });

  test('describes parameters, body and answers of each endpoint, and every reference in it resolves', async () => {
    const document = (await rest.call('GET', '/openapi.json', nobody)).json();
    const schemas = document.components.schemas as Record<string, unknown>;
    const references = [...JSON.stringify(document).matchAll(/"\$ref":"([^"]+)"/g)].map((match) => match[1] ?? '');
    const referenced = new Set(references.map((reference) => reference.replace('#/components/schemas/', '')));
    expect([...referenced].filter((name) => !(name in schemas))).toEqual([]);
    expect(Object.keys(schemas).filter((name) => !referenced.has(name))).toEqual([]);
    for (const one of endpoints) {
      const operation = (document.paths as Paths)[one.path]?.[one.method.toLowerCase()];
      if (operation === undefined) throw new Error(nameOf(one));
      const body = operation.requestBody?.content['application/json']?.schema;
      const alternatives = (body?.['oneOf'] ?? body?.['anyOf'] ?? [body]) as readonly (typeof body)[];
      for (const alternative of alternatives) {
        expect([nameOf(one), alternative?.['additionalProperties']]).toEqual([
          nameOf(one),
          one.body === null ? undefined : false,
        ]);
      }
      const created = one.method === 'POST' && /^\/api\/(?!auth)[^/]+$/.test(one.path);
      expect([nameOf(one), Object.keys(operation.responses)]).toEqual([
        nameOf(one),
        [created ? '201' : '200', 'default'],
      ]);
      expect(operation.security).toEqual(one.access === 'login' ? [] : undefined);
      const parameters = (operation.parameters ?? []).map((parameter) => `${parameter.in} ${parameter.name}`);
      expect(parameters.includes('path id')).toBe(one.path.includes('{id}'));
      expect([nameOf(one), parameters.includes('header if-match')]).toEqual([nameOf(one), one.ifMatch === true]);
      expect(parameters.includes('header idempotency-key')).toBe(one.method === 'POST' && one.access !== 'login');
      expect(parameters.includes('header x-min-position')).toBe(one.method === 'GET');
    }
  });

  test('is rendered as a page without scripts and external resources', async () => {
    const page = await rest.call('GET', '/docs', nobody);
    expect(page.headers['content-type']).toMatch(/^text\/html/);
    expect(page.headers['content-security-policy']).toContain("default-src 'none'");
    expect(page.body).not.toMatch(/<script|https?:\/\/|src=|@import/i);
    for (const one of endpoints) expect(page.body).toContain(`<code>${one.path}</code>`);
  });
});
