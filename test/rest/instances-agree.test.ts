/**
 * What instances show after a long life is what one shows that has just started on the same stores: they have missed nothing,
 * and keep nothing that is gone (`docs/contract/agent-protocol.md#several-instances`). Another life: `PROPERTY_SEED=$RANDOM`.
 */
import fc from 'fast-check';
import { afterAll, expect, test } from 'vitest';
import { commandOf, histories, type Move } from '../support/fleet-histories.js';
import { until } from '../support/delivery-fixture.js';
import { createDice } from '../support/hostile.js';
import { startRest, type ConnectedAgent, type JsonData, type RestFixture } from '../support/rest-fixture.js';
import { storesInMemory } from '../support/stores-in-memory.js';

const shared = storesInMemory();
const instances: RestFixture[] = [];
afterAll(async () => {
  for (const one of instances) await one.close();
});
async function start(): Promise<RestFixture> {
  const one = await startRest({ shared });
  instances.push(one);
  return one;
}

const single = [
  'settings/connectivity',
  'topology',
  'dashboard/stats',
  'fleet/export',
  'nodes/labels',
  'nodes/ports',
  'nodes/ports/runtime',
  'service/identity',
  'dashboard/history?window=5m',
  'auth/me',
  'nodes/links',
];
/** Of each item of a list, too. */
const lists: { readonly [path: string]: readonly string[] } = {
  nodes: [
    '',
    '/commands',
    '/config',
    '/referrers',
    '/links',
    '/diagnostics',
    '/free-ports',
    '/metrics',
    '/history?window=5m',
  ],
  'l4-chains': ['', '/deployments', '/links', '/plan', '/history?window=5m'],
  'l4-upstreams': ['', '/health', '/history?window=5m'],
  routes: ['', '/hops'],
  credentials: [''],
  'l3-networks': ['', '/nodes'],
  'fleet/sets': ['/drift'],
  'join-tokens': [''],
  audit: ['', '/changes'],
  incidents: [],
  rollouts: [''],
  'rollout-policies': [''],
  webhooks: [''],
  'auth/users': [''],
  'auth/tokens': [''],
};

/** Everything that an instance shows, as text by path. */
async function shownBy(rest: RestFixture): Promise<ReadonlyMap<string, string>> {
  const shown = new Map<string, string>();
  const get = async (path: string): Promise<JsonData> => {
    const { data, error } = (await rest.call('GET', `/api/${path}`)).json();
    // What counts the time since something is different for each answer.
    const without = (key: string, value: unknown): unknown =>
      ['generated_at', 'duration_secs', 'lag'].includes(key) ? undefined : value;
    shown.set(path, JSON.stringify({ data, error }, without));
    return data;
  };
  for (const path of single) await get(path);
  for (const [list, below] of Object.entries(lists)) {
    const { items } = await get(list === 'fleet/sets' ? list : `${list}?page_size=500`);
    for (const { id, set } of items) for (const path of below) await get(`${list}/${id ?? set}${path}`);
  }
  return shown;
}

interface Agent {
  readonly at: RestFixture;
  readonly session: ConnectedAgent;
}

/** The life of a fleet and of its agents, a few things at a time. */
function createLife(seed: number) {
  const dice = createDice(seed);
  const agents = new Map<string, Agent>();
  let step = 0;
  let read = 0;
  const anyOf = <T>(of: Iterable<T>): T | undefined => {
    const all = [...of];
    return all[dice.below(Math.max(1, all.length))];
  };

  async function connect(at: RestFixture): Promise<void> {
    const id = anyOf(at.gateway.fleet.tables.node.ids());
    if (id === undefined || agents.has(id)) return;
    agents.set(id, { at, session: await at.connect(id) });
  }

  async function disconnect(id: string): Promise<void> {
    const agent = agents.get(id);
    agents.delete(id);
    await agent?.session.disconnect();
  }

  async function heartbeat(id: string, { at, session }: Agent): Promise<void> {
    const { l4_chain, l4_upstream } = at.gateway.fleet.tables;
    const hops = [...l4_chain.values()].flatMap(({ deployed }) => deployed?.hops ?? []);
    const runtime_listeners = hops
      .filter(({ node_id }) => node_id === id && dice.chance(0.8))
      .map(({ outer, listen_addr, listen_port }) => {
        const transport = outer === 'udp' || outer === 'quic' ? ('udp' as const) : ('tcp' as const);
        const state = dice.chance(0.3) ? ('failed' as const) : ('running' as const);
        return { transport, listen_addr, listen_port, state, routes: [] };
      });
    await session.report({ runtime_listeners });
    await at.reportUpstreams(id, Object.fromEntries([...l4_upstream.ids()].map((one) => [one, dice.chance(0.5)])));
  }

  async function applyOrReject(id: string, { at, session }: Agent): Promise<void> {
    // The secrets of random credentials cannot be opened, and so a configuration with one is not pushed.
    const isWithheld = (): boolean => at.logged.some((line) => line.includes('withheld') && line.includes(id));
    // A held node gets nothing.
    if ((await at.data('GET', `/api/nodes/${id}`)).held_by !== null) return;
    await at.data('POST', `/api/nodes/${id}/config`);
    const push = await Promise.race([session.receive(), until(isWithheld, 'a push is withheld')]);
    if (push !== undefined) await (dice.chance(0.3) ? session.reject(push) : session.apply(push));
  }

  /** What the service refuses changes nothing. */
  async function act(rest: RestFixture, move: Move): Promise<void> {
    const set = `set-${dice.below(2)}`;
    const itemOf = async (list: string): Promise<JsonData | undefined> =>
      anyOf((await rest.data('GET', `/api/${list}?page_size=20`)).items as JsonData[]);
    const post = (path: string, body?: unknown): Promise<unknown> => rest.call('POST', `/api/${path}`, { body });
    const policy = `policy-${dice.below(2)}`;
    switch (dice.below(16)) {
      case 0: {
        const entry = anyOf((await rest.data('GET', '/api/audit?page_size=20')).items as JsonData[]);
        if (entry !== undefined) await rest.call('POST', `/api/audit/${entry.id}/revert`);
        return;
      }
      case 1: {
        const name = anyOf(rest.gateway.fleet.tables.node.values())?.name;
        if (name === undefined) return;
        const document = JSON.stringify({ svc: 1, set, nodes: { [name]: { labels: { rack: `${dice.below(3)}` } } } });
        const flags = { prune: dice.chance(0.3), adopt: true, adopt_from: ['set-0', 'set-1'] };
        await rest.call('POST', '/api/fleet/apply', { body: { document, ...flags } });
        return;
      }
      case 2:
        await rest.call('POST', `/api/fleet/sets/${set}/release`);
        return;
      case 3: {
        const chain = anyOf(rest.gateway.fleet.tables.l4_chain.ids());
        const how = dice.chance(0.7) ? `rollout=${policy}` : 'confirm=manual&confirm_secs=30';
        const body = { multiplex: true, multiplex_port: 20_000 + (step += 1) };
        const settings = `/api/settings/connectivity?${how}`;
        if (chain === undefined || dice.chance(0.5)) await rest.call('PUT', settings, { body });
        else await post(`l4-chains/${chain}/deploy?${how}`);
        return;
      }
      case 4: {
        const rollout = await itemOf('rollouts');
        const step = anyOf(['pause', 'resume', 'advance', 'complete', 'revert']);
        if (rollout !== undefined) await post(`rollouts/${rollout.id}/${step}`);
        return;
      }
      case 5: {
        const entry = await itemOf('audit');
        if (entry !== undefined) await post(`audit/${entry.id}/confirm`);
        return;
      }
      case 6:
      case 7: {
        const name = `${(step += 1)}`;
        const [list, body] = anyOf(
          Object.entries({
            'rollout-policies': { name: policy, waves: [{ nodes: 1 }] },
            webhooks: { name, url: 'https://hooks.example/' },
            'auth/tokens': { name, role: 'viewer' },
          }),
        )!;
        const old = await itemOf(list);
        if (old === undefined || dice.chance(0.6)) await post(list, body);
        else await rest.call('DELETE', `/api/${list}/${old.id}`);
        return;
      }
      case 8:
        await post(`service/identity/${dice.chance(0.6) ? 'rotate' : 'retire'}`);
        return;
      default: {
        const command = commandOf(rest.gateway.fleet, move, (step += 1));
        if (command !== undefined) await rest.gateway.run(command).catch(() => undefined);
      }
    }
  }

  return async (both: readonly RestFixture[], moves: readonly Move[]): Promise<void> => {
    const either = (): RestFixture => both[dice.below(both.length)]!;
    await Promise.all(moves.map((move) => act(either(), move)));
    // The sessions of deleted nodes end.
    const log = await both[0]!.log();
    for (const { type, data } of log.slice(read)) if (type === 'NodeDeleted') await disconnect(String(data['node_id']));
    read = log.length;
    if (dice.chance(0.5)) await connect(either());
    const [id, agent] = anyOf(agents) ?? [];
    if (id === undefined || agent === undefined || !agent.at.gateway.fleet.tables.node.has(id)) return;
    if (dice.chance(0.3)) await disconnect(id);
    else await (dice.chance(0.3) ? applyOrReject : heartbeat)(id, agent);
  };
}

test('instances that lived through much show what a new one shows', async () => {
  const both = [await start(), await start()];
  const { seed = 0 } = fc.readConfigureGlobal() ?? {};
  const live = createLife(seed);
  const dice = createDice(seed);
  // What the compiler is raised to is not what these instances compile for.
  const moves = fc.sample(histories(120), 3).flatMap((some) => some.filter(({ kind }) => !kind.endsWith('Compiler')));
  while (moves.length > 0) await live(both, moves.splice(0, 1 + dice.below(6)));
  const fresh = await start();
  // They tell one another of reports and statuses within a second or so.
  await expect
    .poll(
      async () => {
        const [now, ...lived] = [await shownBy(fresh), ...(await Promise.all(both.map(shownBy)))];
        return lived.flatMap((shown) =>
          [...now].flatMap(([path, text]) => (shown.get(path) === text ? [] : [[path, text, shown.get(path)]])),
        );
      },
      { timeout: 30_000, interval: 200 },
    )
    .toEqual([]);
});
