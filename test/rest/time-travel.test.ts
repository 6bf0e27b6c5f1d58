/** A node's configuration at an earlier generation (`docs/contract/rest.md#nodes`). */
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { compilerVersion } from '../../src/kernel/release.js';
import { streams } from '../../src/kernel/event.js';
import { until } from '../support/delivery-fixture.js';
import { eventually } from '../support/eventually.js';
import { realityOver, startRest, type JsonData, type RestFixture } from '../support/rest-fixture.js';

let rest: RestFixture;
/** What was served after each step of the story, by node. */
const served = new Map<string, JsonData[]>();
let [edge, relay] = ['', ''];

/** A generation that this release never served. */
let ofAnotherRelease: number | undefined;

const post = (url: string, body?: object): Promise<JsonData> => rest.data('POST', url, body && { body });
const put = (url: string, body: object): Promise<JsonData> => rest.data('PUT', url, { body });
const configOf = (id: string, generation?: number): string =>
  `/api/nodes/${id}/config${generation === undefined ? '' : `?generation=${generation}`}`;

/** Remembers what is served now. */
async function note(): Promise<void> {
  for (const id of [edge, relay]) {
    const now = await rest.data('GET', configOf(id));
    const before = served.get(id) ?? [];
    served.set(id, before);
    if (before.at(-1)?.generation !== now.generation) before.push(now);
  }
}

beforeAll(async () => {
  rest = await startRest({ history: { waiting: 1 } });
  edge = (await post('/api/nodes', { name: 'edge', address: 'edge.example' })).id;
  relay = (await post('/api/nodes', { name: 'relay', address: 'relay.example' })).id;
  await note();
  const upstream = (await post('/api/l4-upstreams', { name: 'web', endpoint: 'web.example:80' })).id;
  const self_signed = { common_name: 'in.example' };
  const certificate = (await post('/api/credentials', { name: 'c', key_type: 'tls_cert', self_signed })).id;
  const x25519 = (await post('/api/credentials', { name: 'x', key_type: 'x25519' })).id;
  const covered = (await post('/api/credentials', realityOver(x25519, 'r', ['r.example']))).id;
  const hop = (node_id: string, listen_port: number, security: object) => ({
    node_id,
    listen_port,
    outer: 'tcp',
    ...security,
  });
  const tls = { security: 'tls', credential_id: certificate };
  const chain = { payload: 'tcp', target: { upstream_id: upstream } };
  const hops = [hop(edge, 80, { security: 'raw' }), hop(relay, 81, tls)];
  const one = `/api/l4-chains/${(await post('/api/l4-chains', { name: 'one', hops, ...chain })).id}`;
  const covert = [hop(edge, 82, { security: 'raw' }), hop(relay, 83, { security: 'reality', credential_id: covered })];
  const two = `/api/l4-chains/${(await post('/api/l4-chains', { name: 'two', hops: covert, ...chain })).id}`;
  const steps: (() => Promise<unknown>)[] = [
    () => post(`${one}/deploy`),
    () => put(one, { hops: [hop(edge, 90, { security: 'raw' }), hop(relay, 81, tls)] }),
    () => put(`/api/l4-upstreams/${upstream}`, { endpoint: 'other.example:80' }),
    () => post(`${one}/deploy`),
    () => post(`${two}/deploy`),
    () => put(`/api/credentials/${certificate}`, { self_signed: { common_name: 'in.example' } }),
    () => put(`/api/credentials/${x25519}`, { private_key: null }),
    () => put('/api/settings/connectivity', { multiplex: true, multiplex_port: 7000 }),
    () => put(`/api/nodes/${relay}`, { address: 'moved.example' }),
    async () => {
      // Another release lowers the log's compiler version, and this one starts again.
      await rest.gateway.run({ type: 'LowerCompilerVersion', version: 1 });
      ofAnotherRelease = rest.deps.fleet.generation(edge);
      await rest.gateway.run({ type: 'RaiseCompilerVersion', version: compilerVersion });
      await until(() => rest.followers.notReady().length === 0, 'the service is ready again');
    },
    () => post(configOf(edge)),
    () => put(one, { enabled: false }),
    () => rest.data('DELETE', two),
  ];
  for (const step of steps) {
    await step();
    await note();
  }
});
afterEach(() => vi.restoreAllMocks());
afterAll(() => rest.close());

test('each earlier configuration is the one that was served then, checksum and all, until the next one', async () => {
  for (const [id, snapshots] of served) {
    expect(snapshots.length).toBeGreaterThan(6);
    for (const [index, then] of snapshots.entries()) {
      const next = snapshots[index + 1]?.generation ?? then.generation + 1;
      const last = next - 1 === ofAnotherRelease ? next - 2 : next - 1;
      for (const generation of new Set([then.generation, last])) {
        expect(await rest.data('GET', configOf(id, generation))).toEqual(then);
      }
    }
  }
});

test('it is the newest for a generation that is still to come, and a 404 before the first', async () => {
  const newest = await rest.data('GET', configOf(edge));
  for (const generation of [newest.generation, newest.generation + 1, Number.MAX_SAFE_INTEGER]) {
    expect(await rest.data('GET', configOf(edge, generation))).toEqual(newest);
  }
  const first = served.get(edge)?.[0].generation;
  for (const generation of [first - 1, 1, 0]) {
    const answer = await rest.call('GET', configOf(edge, generation));
    expect([answer.statusCode, answer.json().error]).toEqual([404, expect.stringMatching(/^not_found: generation: /)]);
  }
  for (const bad of ['x', '-1', '1.5', '']) {
    expect((await rest.call('GET', `/api/nodes/${edge}/config?generation=${bad}`)).statusCode).toBe(400);
  }
});

test('secrets are masked in it, and never leave sealed or open', async () => {
  const text = JSON.stringify(await rest.data('GET', configOf(relay, served.get(relay)?.at(-3).generation)));
  expect(text).toContain('"private_key_pem":"***"');
  expect(text).not.toContain('PRIVATE KEY');
  expect(text).not.toContain('key_id');
});

test('a node that is gone has no past; brought back, it has it again', async () => {
  const { id, generation } = await post('/api/nodes', { name: 'short-lived' });
  await post(configOf(id));
  expect((await rest.data('GET', configOf(id, generation))).generation).toBe(generation);
  const last = await rest.data('GET', configOf(id));
  await rest.data('DELETE', `/api/nodes/${id}`);
  expect((await rest.call('GET', configOf(id, generation))).statusCode).toBe(404);
  const [{ id: entry }] = (await rest.data('GET', `/api/audit?resource_id=${id}&page_size=1`)).items;
  await post(`/api/audit/${entry}/revert`);
  const again = await rest.data('GET', configOf(id));
  expect(again.generation).toBeGreaterThan(last.generation);
  for (const wanted of [last.generation, again.generation - 1]) {
    expect(await rest.data('GET', configOf(id, wanted))).toEqual(last);
  }
  expect((await rest.data('GET', configOf(id, generation))).generation).toBe(generation);
});

describe('while the log is read for one answer', () => {
  /** Holds up every read of the fleet's stream from its start; returns how to let them go on. */
  function holdReads(): { readonly begun: () => number; letGo(): void } {
    const { read } = rest.stores.eventStore;
    let begun = 0;
    let letGo = (): void => undefined;
    const gate = new Promise<void>((resolve) => (letGo = resolve));
    vi.spyOn(rest.stores.eventStore, 'read').mockImplementation(async function* (stream, options) {
      if (stream === streams.fleet && options.direction === 'forward') {
        begun += 1;
        await gate;
      }
      yield* read(stream, options);
    });
    return { begun: () => begun, letGo };
  }

  test('everything else is answered, and one question more than may wait is a 503', async () => {
    const { id, generation } = await post('/api/nodes', { name: 'asked about' });
    const asked: number[] = [];
    for (let step = 0; step < 3; step += 1) asked.push((await post(configOf(id))).generation - 1);
    const held = holdReads();
    const ask = (wanted = generation) => rest.call('GET', configOf(id, wanted));
    const first = ask(asked[0]);
    await eventually(held.begun).toBe(1);
    const waits = ask(asked[1]);
    const refused = await ask(asked[2]);
    expect([refused.statusCode, refused.json().error]).toEqual([503, expect.stringMatching(/^unavailable: too many/)]);
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
    expect((await rest.data('GET', configOf(id))).generation).toBeGreaterThan(generation);
    expect((await post(configOf(id))).generation).toBeGreaterThan(generation);
    held.letGo();
    for (const answer of await Promise.all([first, waits])) expect(answer.statusCode).toBe(200);
    expect(held.begun()).toBe(2);
    expect((await ask(asked[2])).statusCode).toBe(200);
  });

  test('a stop does not wait for it', async () => {
    const service = await startRest();
    const create = { body: { name: 'edge' } };
    const { id, generation } = await service.data('POST', '/api/nodes', create);
    await service.data('POST', configOf(id));
    const begun = vi.fn(() => new Promise<never>(() => undefined));
    const read = { [Symbol.asyncIterator]: () => ({ next: begun }) };
    vi.spyOn(service.stores.eventStore, 'read').mockReturnValue(read);
    const asked = service.call('GET', configOf(id, generation));
    await eventually(() => begun.mock.calls.length).toBe(1);
    await service.close();
    expect((await asked).statusCode).toBe(503);
  });
});
