/**
 * What is committed is never answered with an error, and a secret that is shown once is in that answer: while the stored
 * read models stand still, and while the read store is away (`docs/contract/rest.md#consistency`).
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { ReadStore } from '../../src/storage/read-store.js';
import { collectionsOf, createMaker, lookingPaths, sessionPaths, type Maker } from '../support/one-of-each.js';
import { startRest, type JsonData, type RestFixture } from '../support/rest-fixture.js';
import { switchedReadStore, type SwitchedReadStore } from '../support/switched-read-store.js';

let rest: RestFixture;
let maker: Maker;
let readStore: SwitchedReadStore;
beforeAll(async () => {
  const before = (inner: ReadStore): ReadStore => (readStore = switchedReadStore(inner));
  rest = await startRest({ before });
  maker = await createMaker(rest);
});
afterAll(() => rest.close());
beforeEach(works);

/** The read models hold the whole log. */
async function works(): Promise<void> {
  readStore.mode = 'works';
  await expect
    .poll(async () => rest.deps.projections.reached(await rest.position(), 1_000), { timeout: 20_000 })
    .toBe(true);
}

let sets = 0;
const once = () => ({ headers: { 'idempotency-key': `once-${(sets += 1)}` } });
const document = (set: string, nodes: string): string => `svc: 1
set: ${set}
nodes: {${nodes}}
upstreams: {${set}-web: {endpoint: "203.0.113.5:443"}}
chains:
  ${set}-front: {payload: tcp, hops: [{node: ${set}-1, listen_port: 443, outer: tcp, security: raw}], target: {upstream: ${set}-web}, deploy: true}
`;

describe.each(['no_documents', 'out'] as const)('while the read store is in the mode %s', (mode) => {
  test('an apply answers its steps, its entry, its deployments and its PSKs, and a repeat the same without PSKs', async () => {
    const set = `set-${(sets += 1)}`;
    readStore.mode = mode;
    const idempotent = once();
    const body = { document: document(set, `${set}-1: {}, ${set}-2: {}`), issue_psks: true };
    const answer = await rest.call('POST', '/api/fleet/apply', { body, ...idempotent });
    expect([answer.statusCode, answer.json().error]).toEqual([200, null]);
    const { data } = answer.json();
    expect(data.control_psks).toEqual(
      [1, 2].map((n) => ({ node: `${set}-${n}`, control_psk: expect.stringMatching(/^svcpsk1_/) })),
    );
    const again = await rest.call('POST', '/api/fleet/apply', { body, ...idempotent });
    expect([again.statusCode, again.json().error]).toEqual([200, null]);
    const withoutPsks = data.control_psks.map((one: JsonData) => ({ ...one, control_psk: null }));
    expect(again.json().data).toEqual({ ...data, control_psks: withoutPsks });
    expect(again.headers['x-position']).toBe(answer.headers['x-position']);

    // The stored read models show the same later.
    await works();
    expect(await rest.data('GET', `/api/audit/${data.commands[0].id}`)).toEqual(data.commands[0]);
    const { commands, deployments } = await rest.data('GET', `/api/fleet/applies/${data.apply_id}`);
    expect([commands, deployments]).toEqual([data.commands, data.deployments]);
    const [deployed] = data.deployments;
    const listed = await rest.data('GET', `/api/l4-chains/${deployed.chain_id}/deployments`);
    expect(listed.items).toEqual([deployed]);
  });

  test('an apply of several commands is given again as it went', async () => {
    const set = `set-${(sets += 1)}`;
    const key = (days: number): string =>
      `svc: 1\nset: ${set}\ncredentials: {${set}-cert: {key_type: tls_cert, self_signed: {common_name: a${days}.example}}}\nnodes: {${set}-${days}: {}}\n`;
    await rest.data('POST', '/api/fleet/apply', { body: { document: key(1) } });
    await works();
    readStore.mode = mode;
    const idempotent = once();
    const body = { document: key(2), issue_psks: true };
    const first = await rest.call('POST', '/api/fleet/apply', { body, ...idempotent });
    expect([first.statusCode, first.json().error]).toEqual([200, null]);
    const { data } = first.json();
    expect(data.commands.length).toBe(2);
    // Something comes between the apply and its repeat.
    await rest.data('POST', '/api/l4-upstreams', { body: { name: `${set}-other`, endpoint: 'a.example:1' } });
    const again = await rest.call('POST', '/api/fleet/apply', { body, ...idempotent });
    expect([again.statusCode, again.json().error]).toEqual([200, null]);
    expect(again.json().data).toEqual({ ...data, control_psks: [{ node: `${set}-2`, control_psk: null }] });
  });

  test('every command is answered with success and its secret, or has written nothing', async () => {
    const commands = maker.operations.filter(
      ({ method, path }) =>
        method !== 'GET' &&
        ![...sessionPaths, ...lookingPaths].includes(path) &&
        !path.startsWith('/api/auth/password'),
    );
    const created = new Set(collectionsOf(maker.operations));
    const seen = { done: 0, secrets: 0, refused: [] as string[] };
    const sent = commands.filter(({ path }) => !path.endsWith('/ping') && path !== '/api/fleet/apply');
    // Some look into the audit before they write, and a new rollout completes those before it.
    const isAlone = ({ path }: Maker['operations'][number]): boolean =>
      path.startsWith('/api/rollouts/') || /\/(revert|confirm)$/.test(path);
    for (const some of [sent.filter((one) => !isAlone(one)), ...sent.filter(isAlone).map((one) => [one])]) {
      await works();
      const prepared = [];
      for (const one of some) {
        const { method, path } = one;
        const isNew = method === 'POST' && created.has(path);
        const request = await preparedFor(one, isNew);
        if (request !== undefined) prepared.push({ method, path, isNew, ...request });
      }
      await works();
      readStore.mode = mode;
      for (const { method, path, isNew, url, body } of prepared) {
        const before = await rest.position();
        const answer = await rest.call(method, url, body === undefined ? {} : { body });
        const written = (await rest.position()) > before;
        if (answer.statusCode < 300) {
          seen.done += 1;
          const { data } = answer.json();
          for (const secret of ['control_psk', 'secret', 'token'])
            if ((isNew || path.endsWith('/psk')) && data[secret] !== undefined) {
              expect([path, typeof data[secret]]).toEqual([path, 'string']);
              seen.secrets += 1;
            }
        } else {
          expect([method, path, answer.statusCode, answer.json().error, written]).toEqual([
            method,
            path,
            503,
            expect.any(String),
            false,
          ]);
          seen.refused.push(path);
        }
      }
    }
    // These look into the audit before they write.
    for (const path of seen.refused) expect(path).toMatch(/\/(revert|confirm)$/);
    expect(seen.done).toBeGreaterThan(25);
    expect(seen.secrets).toBeGreaterThan(3);
  });

  test('a repeat of a deploy and of a node command is answered as the first one was', async () => {
    const chain = await maker.create('/api/l4-chains');
    readStore.mode = mode;
    for (const [url, body] of [
      [`/api/l4-chains/${chain.id}/deploy`, undefined],
      [`/api/nodes/${maker.ids.node_id}/commands`, { command: 'RELOAD_CONFIG' }],
      [`/api/nodes/${maker.ids.node_id}/psk`, undefined],
    ] as const) {
      const idempotent = once();
      const send = () => rest.call('POST', url, { ...(body === undefined ? {} : { body }), ...idempotent });
      const [first, again] = [await send(), await send()];
      expect([url, first.statusCode, again.statusCode, again.json().error]).toEqual([url, 200, 200, null]);
      const shown = (answer: typeof first) => ({
        ...answer.json().data,
        control_psk: undefined,
        sessions_ended: undefined,
      });
      expect(shown(again)).toEqual(shown(first));
    }
  });
});

type Prepared = { readonly url: string; readonly body?: unknown } | undefined;

/** Where a command is sent, and with which body; undefined where a new resource is not enough. */
async function preparedFor(one: Maker['operations'][number], isNew: boolean): Promise<Prepared> {
  const { method, path } = one;
  if (isNew) return { url: path, body: maker.newBody(path) };
  if (!path.includes('{id}') && !path.includes('{set}')) {
    return path === '/api/settings/connectivity'
      ? { url: path, body: { heartbeat_interval_secs: 7 + sets } }
      : undefined;
  }
  if (method === 'POST') return maker.onNew(one);
  const collection = path.slice(0, path.indexOf('/{'));
  if (path !== `${collection}/{id}` || !collectionsOf(maker.operations).includes(collection)) return undefined;
  const { id, name } = await maker.create(collection);
  const url = `${collection}/${id}`;
  if (method === 'DELETE') return { url };
  // The name of an upstream is fixed.
  return { url, body: collection.endsWith('/l4-upstreams') ? { enabled: false } : { name: `${name}-2` } };
}
