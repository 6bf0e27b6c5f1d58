/** `docs/contract/rest.md#consistency`: positions, how far read models are behind, request ids. */
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { eventually } from '../support/eventually.js';
import { createMaker, type Maker } from '../support/one-of-each.js';
import { startRest, type JsonData, type RestFixture } from '../support/rest-fixture.js';

let rest: RestFixture;
let maker: Maker;
beforeAll(async () => {
  rest = await startRest();
  maker = await createMaker(rest);
});
afterAll(() => rest.close());
afterEach(() => vi.restoreAllMocks());

describe('x-position', () => {
  test('every command answers its position', async () => {
    const [nodeId, chainId, upstreamId] = await Promise.all(
      ['/api/nodes', '/api/l4-chains', '/api/l4-upstreams'].map(
        async (path) => (await maker.create(path)).id as string,
      ),
    );
    const calls = [
      ['PUT', '/api/auth/me', { display_name: 'x' }],
      ['PUT', `/api/nodes/${nodeId}`, { description: 'x' }],
      ['POST', `/api/nodes/${nodeId}/psk`, undefined],
      ['POST', `/api/nodes/${nodeId}/config`, undefined],
      ['PUT', `/api/l4-upstreams/${upstreamId}`, { enabled: false }],
      ['PUT', `/api/l4-chains/${chainId}`, { description: 'x' }],
      ['POST', `/api/l4-chains/${chainId}/deploy`, undefined],
      ['PUT', '/api/settings/connectivity', { metrics_interval_secs: 30 }],
      ['DELETE', `/api/l4-chains/${chainId}`, undefined],
      ['DELETE', `/api/l4-upstreams/${upstreamId}`, undefined],
      ['DELETE', `/api/nodes/${nodeId}`, undefined],
    ] as const;
    let before = await rest.position();
    for (const [method, url, body] of calls) {
      const answer = await rest.call(method, url, body === undefined ? {} : { body });
      expect([url, answer.statusCode]).toEqual([url, 200]);
      expect(Number(answer.headers['x-position'])).toBeGreaterThan(before);
      before = await rest.position();
      expect(answer.headers['x-position']).toBe(String(before));
    }
  });
});

describe('x-min-position', () => {
  test('makes every GET wait; what does not come is a 503, and what is no position a 400', async () => {
    const gets = maker.operations.filter(({ method, path }) => method === 'GET' && path.startsWith('/api/'));
    const now = await rest.position();
    const urls = await Promise.all(
      gets.map(async (get) => (get.path.includes('{') ? (await maker.onNew(get)).url : get.path)),
    );
    expect(urls.length).toBeGreaterThan(20);
    const reached = await rest.position();
    await Promise.all(
      urls.map(async (url) => {
        const get = (position: string) => rest.call('GET', url, { headers: { 'x-min-position': position } });
        for (const position of [now, reached]) {
          // The fixture does not wait as long as a busy machine may need.
          await expect.poll(async () => [url, (await get(String(position))).statusCode]).toEqual([url, 200]);
        }
        const late = await get(String(reached + 1_000_000));
        expect([url, late.statusCode, late.json().error]).toEqual([
          url,
          503,
          expect.stringMatching(/^unavailable: x-min-position: /),
        ]);
        expect([url, (await get('soon')).statusCode]).toEqual([url, 400]);
      }),
    );
  });
});

describe('x-projection-lag', () => {
  test('is on what stored read models answer, or lack, while they lag, and on nothing else', async () => {
    const lagging = vi.spyOn(rest.deps.projections, 'reached').mockResolvedValue(false);
    const lagOf = async (url: string): Promise<unknown> => {
      const { statusCode, headers } = await rest.call('GET', url);
      return [statusCode, headers['x-projection-lag']];
    };
    expect(await lagOf('/api/audit')).toEqual([200, 'true']);
    expect(await lagOf('/api/audit/01a21a4f-0c34-7b1e-a1c9-6d2a5b7c8d9e')).toEqual([404, 'true']);
    expect(await lagOf('/api/nodes')).toEqual([200, undefined]);
    lagging.mockRestore();
    expect(await lagOf('/api/audit')).toEqual([200, undefined]);
  });
});

describe('x-request-id', () => {
  const given = 'abc-123:4/5@x+y=z.1_2';

  test('of the caller is in the answer, in every event of the command and in its audit entry', async () => {
    const headers = { 'x-request-id': given };
    const answer = await rest.call('POST', '/api/nodes', { body: { name: 'with an id' }, headers });
    expect(answer.headers['x-request-id']).toBe(given);
    const events = (await rest.log()).filter(({ metadata }) => metadata.request_id === given);
    expect(events.map(({ type }) => type)).toEqual(['NodeCreated', 'NodePskIssued']);
    expect(events[0]?.metadata.actor).toMatchObject({ type: 'user', name: 'admin' });
    const { items } = await rest.data('GET', `/api/audit?resource_id=${answer.json().data.id}`);
    expect(items.map(({ request_id }: JsonData) => request_id)).toEqual([given]);
  });

  test('is in the log line of the request, refused or not, and of the cause of a fault', async () => {
    const headers = { 'x-request-id': given };
    const linesOf = async (answer: ReturnType<RestFixture['call']>): Promise<readonly string[]> => {
      rest.logged.length = 0;
      expect((await answer).headers['x-request-id']).toBe(given);
      await eventually(() => rest.logged).toContainEqual(expect.stringMatching(/^\w+ request( refused)? /));
      return rest.logged.filter((line) => line.includes(`"request_id":"${given}"`));
    };
    expect(await linesOf(rest.call('GET', '/api/auth/me', { headers }))).toHaveLength(1);
    expect(await linesOf(rest.call('POST', '/api/nodes', { body: { name: '' }, headers }))).toHaveLength(1);
    expect(await linesOf(rest.call('GET', '/api/nodes', { role: 'nobody', headers }))).toHaveLength(1);
    vi.spyOn(rest.deps.reports, 'vitals').mockImplementation(() => {
      throw new Error('broken');
    });
    const failed = await linesOf(rest.call('GET', '/api/nodes', { headers }));
    expect(failed.map((line) => line.split(' {')[0])).toEqual(['error request failed', 'error request']);
  });

  test('that is not sane is replaced by a new one, everywhere', async () => {
    for (const bad of ['a b', 'x'.repeat(129), '<script>', '', '{}', 'a;b', 'caf\u00e9']) {
      const headers = { 'x-request-id': bad };
      const refused = await rest.call('GET', '/api/nope', { role: 'nobody', headers });
      expect([bad, refused.headers['x-request-id']]).toEqual([bad, expect.stringMatching(/^[0-9a-f-]{36}$/)]);
      const made = await rest.call('POST', '/api/nodes', { body: { name: `id ${bad.slice(0, 20)}.` }, headers });
      expect((await rest.log()).at(-1)?.metadata.request_id).toBe(made.headers['x-request-id']);
    }
    expect(
      (await rest.call('GET', '/api/nodes', { headers: { 'x-request-id': 'x'.repeat(128) } })).headers,
    ).toMatchObject({ 'x-request-id': 'x'.repeat(128) });
  });

  test('is on every answer, beside /api too', async () => {
    for (const url of ['/healthz', '/openapi.json', '/nope', '/api', '/api/nodes/x']) {
      const answer = await rest.call('GET', url, { headers: { 'x-request-id': given } });
      expect([url, answer.headers['x-request-id']]).toEqual([url, given]);
    }
  });
});
