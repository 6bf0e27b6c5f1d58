/**
 * Rollouts over a fleet of light agents: one node, a tenth, the rest. What becomes of a change when some nodes reject
 * it, depending on their waves, when nodes of a wave leave, when a listener does not come up, when people take steps,
 * and when the service is away or killed meanwhile. Every generation that an agent gets is checked against what its
 * wave allowed: `early_pushes` must be 0.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { eventually } from '../scripts/stack/process.js';
import { startLightFleet, type LightCredentials, type LightFleet } from '../scripts/simulate/light/fleet.js';
import { createSite } from '../scripts/simulate/site.js';
import type { Figure, Report } from './figures.js';
import type { BenchOptions } from './options.js';
import { withService, type BenchService } from './stack.js';

/** The longest wait between two tries of an agent. */
const offlineAfterSecs = 30;
const awayMs = 120_000;
const endWithinMs = 300_000;
const kills = 4;

interface RolloutView {
  readonly state: string;
  readonly wave: number;
  readonly reason: string | null;
  readonly entry_id: string;
  readonly ended_at: string | null;
  readonly waves: readonly { readonly released_at: string | null }[];
}
interface NodeOfWave {
  readonly node_id: string;
  readonly generation: number;
}

/** What some of the nodes do in a play. */
interface Troop {
  readonly nodes: readonly LightCredentials[];
  readonly does: 'rejects' | 'leaves' | 'loses a listener';
}

interface Play {
  /** The nodes, in the order of names, that do something other than apply. */
  readonly troop?: Omit<Troop, 'nodes'> & { readonly from: number; readonly count: number };
  readonly policy?: object;
  /** What people and accidents do once it runs. */
  meddle?(stage: Stage, id: string): Promise<unknown>;
}

interface Stage {
  readonly service: BenchService;
  /** All nodes in the order in which waves take them. */
  readonly nodes: readonly LightCredentials[];
  view(id: string): Promise<RolloutView>;
  /** Waits until a rollout is as asked. */
  reaches(id: string, what: string, is: (one: RolloutView) => boolean): Promise<RolloutView>;
  step(id: string, verb: string): Promise<unknown>;
}

const inWave =
  (wave: number, state: string) =>
  (one: RolloutView): boolean =>
    one.wave === wave && one.state === state;

/** @param count of all nodes @param percent of them that are unwell */
function plays(count: number): { readonly [name: string]: Play } {
  const share = Math.max(1, Math.round(count * 0.03));
  const [second, last] = [1, 1 + Math.ceil(count / 10)];
  const rejects = (from: number) => ({ does: 'rejects', from, count: share }) as const;
  const restarted: Play['meddle'] = async ({ service }) => {
    for (let kill = 0; kill < kills; kill += 1) {
      await delay(500 + Math.random() * 6_000);
      await service.process.kill();
      await service.process.start();
    }
  };
  return {
    'all apply': {},
    '3 % reject, from the first node on': { troop: rejects(0) },
    '3 % reject, in the second wave': { troop: rejects(second) },
    '3 % reject, in the last wave': { troop: rejects(last) },
    '3 % reject in the last wave, 5 % may': { troop: rejects(last), policy: { max_failed: '5%' } },
    'the first rejects, revert': { troop: rejects(0), policy: { on_failure: 'revert' } },
    '3 % reject in the last wave, revert': { troop: rejects(last), policy: { on_failure: 'revert' } },
    '3 % of the second wave leave': { troop: { does: 'leaves', from: second, count: share } },
    'a listener of 3 % does not come up': { troop: { does: 'loses a listener', from: second, count: share } },
    'paused for 10 s, resumed': {
      async meddle({ reaches, step }, id) {
        await reaches(id, 'bakes', inWave(2, 'baking'));
        await step(id, 'pause');
        await delay(10_000);
        await step(id, 'resume');
      },
    },
    'advanced twice': {
      policy: { bake_secs: 3_600 },
      async meddle({ reaches, step }, id) {
        for (const wave of [1, 2, 3]) {
          await reaches(id, `wave ${wave} bakes`, inWave(wave, 'baking'));
          await step(id, 'advance');
        }
      },
    },
    'completed by hand': {
      policy: { bake_secs: 3_600 },
      async meddle({ reaches, step }, id) {
        await reaches(id, 'bakes', inWave(1, 'baking'));
        await step(id, 'complete');
      },
    },
    'its entry reverted by hand': {
      async meddle({ service, reaches }, id) {
        const { entry_id } = await reaches(id, 'bakes', inWave(2, 'baking'));
        await service.admin.call('POST', `/api/audit/${entry_id}/revert`);
      },
    },
    'the service away for 2 minutes': {
      async meddle({ service, reaches }, id) {
        await reaches(id, 'bakes', inWave(2, 'baking'));
        await service.process.kill();
        await delay(awayMs);
        await service.process.start();
      },
    },
    [`killed ${kills} times`]: { meddle: restarted },
    [`killed ${kills} times, 3 % reject in the last wave, revert`]: {
      troop: rejects(last),
      policy: { on_failure: 'revert' },
      meddle: restarted,
    },
  };
}

export async function rollouts({ quick, agents = quick ? 40 : 1_000, only }: BenchOptions): Promise<Report> {
  return withService({ env: { SVC_MAX_CONNECTIONS: '5000' } }, async (service) => {
    const { admin, process } = service;
    await admin.call('PUT', '/api/settings/connectivity', {
      heartbeat_interval_secs: 3,
      offline_after_secs: offlineAfterSecs,
    });
    const site = await createSite(admin, 'bench', agents, new AbortController().signal, () => undefined);
    const { items } = await admin.call<{ items: readonly { id: string }[] }>('GET', '/api/l4-upstreams?q=shared');
    const names = await namesOf(service);
    const byName = (one: LightCredentials, other: LightCredentials): number =>
      (names.get(one.nodeId) ?? 0) - (names.get(other.nodeId) ?? 0);
    const view = (id: string): Promise<RolloutView> => admin.call<RolloutView>('GET', `/api/rollouts/${id}`);
    const stage: Stage = {
      service,
      nodes: site.nodes.toSorted(byName),
      view,
      reaches: (id, what, is) =>
        eventually(
          `the rollout ${what}`,
          async () => {
            const one = await view(id).catch(() => undefined);
            return one !== undefined && is(one) ? one : undefined;
          },
          endWithinMs,
          100,
        ),
      step: (id, verb) => admin.call('POST', `/api/rollouts/${id}/${verb}`),
    };
    const figures: Record<string, Figure> = {};
    let port = 0;
    for (const [name, one] of Object.entries(plays(agents))) {
      if (only.length > 0 && !only.some((begin) => name.startsWith(begin))) continue;
      port += 1;
      const endpoint = `192.0.2.20:${1_000 + port}`;
      figures[name] = await played(stage, one, `policy-${port}`, { upstream: items[0]?.id ?? '', endpoint });
      globalThis.process.stderr.write(`${name}: ${JSON.stringify(figures[name])}\n`);
      await process.stop();
      await process.start();
    }
    return { bench: 'rollouts', figures };
  });
}

/** The place of each node in the order of names. */
async function namesOf({ admin }: BenchService): Promise<ReadonlyMap<string, number>> {
  const places = new Map<string, number>();
  for (let page = 1; ; page += 1) {
    const path = `/api/nodes?page_size=500&sort=name&page=${page}`;
    const { items } = await admin.call<{ items: readonly { id: string }[] }>('GET', path);
    for (const { id } of items) places.set(id, places.size);
    if (items.length < 500) return places;
  }
}

async function played(
  stage: Stage,
  { troop, policy, meddle }: Play,
  name: string,
  change: { readonly upstream: string; readonly endpoint: string },
): Promise<Figure> {
  const { service, nodes } = stage;
  const special = troop === undefined ? [] : nodes.slice(troop.from, troop.from + troop.count);
  const rest = nodes.filter((node) => !special.includes(node));
  /** When each node got each generation first, milliseconds since the epoch. */
  const got = new Map<string, number>();
  const note = (nodeId: string, generation: number): void => {
    const key = `${nodeId} ${generation}`;
    if (!got.has(key)) got.set(key, Date.now());
  };
  const fleets: LightFleet[] = [];
  const { hostname: host, port } = new URL(service.process.controlEndpoint);
  const startFleet = (agents: readonly LightCredentials[], rejecting: number): LightFleet => {
    const endpoint = { host, port: Number(port) };
    const changed = new Set<string>();
    const fleet = startLightFleet({
      endpoint,
      agents,
      rejecting,
      onApplied(nodeId, generation) {
        note(nodeId, generation);
        if (changed.has(nodeId) && troop?.does === 'loses a listener' && agents === special)
          fleet.beat({ table: { listeners: 1, routesPerListener: 0, changing: false } });
        if (changed.has(nodeId) && troop?.does === 'leaves' && agents === special) void fleet.close();
        changed.add(nodeId);
      },
      onRejected: note,
    });
    fleets.push(fleet);
    return fleet;
  };
  startFleet(rest, 0);
  if (special.length > 0) startFleet(special, troop?.does === 'rejects' ? special.length : 0);
  const configured = (): number => fleets.reduce((sum, fleet) => sum + fleet.configured(), 0);
  try {
    await eventually('all agents are configured', async () => configured() === nodes.length || undefined, endWithinMs);
    // For this long after a start, the service judges nothing.
    await delay((offlineAfterSecs + 1) * 1_000);
    const { admin } = service;
    const waves = [{ nodes: 1 }, { nodes: '10%' }];
    await admin.call('POST', '/api/rollout-policies', { name, waves, bake_secs: 5, apply_timeout_secs: 30, ...policy });
    const began = Date.now();
    const { rollout_id: id } = await admin.call<{ rollout_id: string }>(
      'PUT',
      `/api/l4-upstreams/${change.upstream}?rollout=${name}`,
      { endpoint: change.endpoint },
    );
    await meddle?.(stage, id);
    const ends = ['completed', 'halted', 'reverted', 'cancelled'];
    const { state, wave, reason, waves: all } = await stage.reaches(id, 'ends', (one) => ends.includes(one.state));
    const seconds = Math.round((Date.now() - began) / 100) / 10;
    const early = await earlyPushes(service, id, got);
    if (state === 'halted') await admin.call('POST', `/api/rollouts/${id}/revert`);
    const released = all.map(({ released_at: at }) => at && Math.round((Date.parse(at) - began) / 100) / 10);
    return { state, wave, seconds, reason, released_at_s: released as Figure, early_pushes: early };
  } finally {
    await Promise.all(fleets.map((fleet) => fleet.close()));
  }
}

/** Nodes that got the rollout's generation before their wave was released. */
async function earlyPushes(service: BenchService, id: string, got: ReadonlyMap<string, number>): Promise<number> {
  const { waves, state, ended_at } = await service.admin.call<RolloutView>('GET', `/api/rollouts/${id}`);
  let early = 0;
  for (const [index, { released_at: own }] of waves.entries()) {
    // Completing releases what is left.
    const released_at = own ?? (state === 'completed' ? ended_at : null);
    for (let page = 1; ; page += 1) {
      const path = `/api/rollouts/${id}?wave=${index + 1}&page=${page}`;
      const { nodes } = await service.admin.call<{ nodes: readonly NodeOfWave[] }>('GET', path);
      for (const { node_id, generation } of nodes) {
        const at = got.get(`${node_id} ${generation}`);
        if (at !== undefined && (released_at === null || at < Date.parse(released_at))) early += 1;
      }
      if (nodes.length === 0) break;
    }
  }
  return early;
}
