/** `docs/contract/rest.md#beside-api`: probes, metrics, CORS. The OpenAPI document is in `openapi.test.ts`. */
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { release } from '../../src/kernel/version.js';
import { startRest, type JsonData, type RestFixture } from '../support/rest-fixture.js';

let rest: RestFixture;
beforeAll(async () => {
  rest = await startRest();
});
afterEach(() => vi.restoreAllMocks());
afterAll(() => rest.close());
const nobody = { role: 'nobody' } as const;

test('the probes and the metrics need no token; an unready instance answers 503 with its reasons', async () => {
  expect((await rest.call('GET', '/healthz', nobody)).json()).toEqual({ status: 'ok', ...release });
  expect((await rest.call('GET', '/readyz', nobody)).json()).toEqual({ ready: true, reasons: [] });
  vi.spyOn(rest.deps, 'readiness').mockReturnValue({ ready: false, reasons: ['projections: catching up'] });
  const answer = await rest.call('GET', '/readyz', nobody);
  expect([answer.statusCode, answer.json()]).toEqual([503, { ready: false, reasons: ['projections: catching up'] }]);
  const metrics = await rest.call('GET', '/metrics', nobody);
  expect([metrics.statusCode, metrics.body]).toEqual([
    200,
    expect.stringMatching(
      /\nsvc_build_info\{version="[\d.]+",commit="\w+",compiler_version="\d+",format="\d+"\} 1\n[^]*\nsvc_store_up\{store="read store"\} 1\n/,
    ),
  ]);
  expect(metrics.headers['content-type']).toMatch(/^text\/plain/);
  const wrong = await rest.call('POST', '/healthz', nobody);
  expect([wrong.statusCode, wrong.headers['allow']]).toEqual([405, 'GET, HEAD']);
  expect((await rest.call('POST', '/', nobody)).json()).toMatchObject({ error: 'not_found: no such path' });
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

  test('a page of an allowed origin may send every header that the API reads', async () => {
    const { paths } = (await open.call('GET', '/openapi.json', nobody)).json();
    const read = Object.values<JsonData>(paths)
      .flatMap((path) => Object.values<JsonData>(path))
      .flatMap(({ parameters = [] }) => parameters)
      .filter((parameter: JsonData) => parameter.in === 'header')
      .map(({ name }: JsonData) => name.toLowerCase());
    expect(read).toContain('last-event-id');
    const answer = await open.call('OPTIONS', '/api/events', preflight('https://b.example'));
    const allowed = String(answer.headers['access-control-allow-headers']).split(', ');
    expect(allowed).toEqual(expect.arrayContaining(read));
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
