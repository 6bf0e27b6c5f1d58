/**
 * The state of the whole fleet, kept current: what each node, chain and upstream adds to the counts is judged again
 * when its reports or its configuration change. Listeners learn whose status may have changed; `src/status/` decides
 * what people are told. Implements `docs/contract/rest.md#dashboard`.
 */
import type { ChainHealth } from '../domain/chain/health.js';
import { upstreamStatus, type UpstreamStatus } from '../domain/upstream/health.js';
import { nodesIn, rolloutKey } from '../domain/rollout/rollout.js';
import type { StatusKey } from '../domain/status/status.js';
import { startLoop, yieldToEventLoop } from '../kernel/background.js';
import type { Clock } from '../kernel/clock.js';
import { createListeners } from '../kernel/listeners.js';
import { logsError, logsWarning, type Logger } from '../kernel/logger.js';
import type { FoldBatch } from '../projections/fleet/fold-batch.js';
import { createCertificateTimes } from './certificates.js';
import { countChain, countNode, trafficOf, type ChainCount, type NodeCount } from './node-count.js';
import type { StatusDeps } from './status.js';
import { sumUp, type FleetCounts } from './sums.js';
import { tuning } from './tuning.js';

export interface CountsDeps extends StatusDeps {
  /** Calls back with each node that has reported, or was deleted. @returns how to stop, like the next two */
  onReport(listener: (nodeId: string) => void): () => void;
  onFact(listener: (nodeId: string) => void): () => void;
  onBatch(listener: (batch: Pick<FoldBatch, 'touched' | 'changed'>) => void): () => void;
  readonly clock: Pick<Clock, 'now' | 'monotonic'>;
  readonly logger: Logger;
}

interface KeptNode {
  readonly count: NodeCount;
  /** See `signOf`. */
  readonly sign: readonly unknown[];
}

/** Collects the resources to judge again. @returns how to stop, among others */
function trackDirty(deps: CountsDeps, onCredential: () => void) {
  const { fleet } = deps;
  let dirty = { nodes: new Set<string>(), chains: new Set<string>(), upstreams: new Set<string>() };
  /** Keeps what is already dirty, which may have been deleted. */
  const addEverything = (): void => {
    for (const id of fleet.nodeIds()) dirty.nodes.add(id);
    for (const { id } of fleet.chains()) dirty.chains.add(id);
    for (const { id } of fleet.upstreams()) dirty.upstreams.add(id);
  };
  addEverything();
  const addChainsOf = (type: string, id: string): void => {
    for (const user of fleet.referrers(type, id)) if (user.type === 'l4_chain') dirty.chains.add(user.id);
  };
  const addNode = (id: string): void => void dirty.nodes.add(id);

  function edited(type: string, id: string): void {
    switch (type) {
      case 'node':
        addNode(id);
        return addChainsOf(type, id);
      case 'l4_chain':
        dirty.chains.add(id);
        return;
      case 'l4_upstream':
        dirty.upstreams.add(id);
        for (const chain of fleet.chainsWith(id)) dirty.chains.add(chain.id);
        return;
      case 'credential':
        onCredential();
        return addChainsOf(type, id);
      case 'connectivity':
        return addEverything();
      case rolloutKey.type: {
        const rollout = fleet.rollout(id);
        for (const { nodeId } of rollout === undefined ? [] : nodesIn(rollout)) addNode(nodeId);
        return;
      }
      default:
        // Other resources do not affect chains; the nodes that they touch are in the batch.
        return;
    }
  }

  const stops = [
    deps.onReport(addNode),
    deps.onFact(addNode),
    deps.onBatch(({ touched, changed }) => {
      for (const nodeId of touched) addNode(nodeId);
      for (const resource of changed) {
        const slash = resource.indexOf('/');
        edited(resource.slice(0, slash), resource.slice(slash + 1));
      }
    }),
  ];
  return {
    add: (kind: keyof typeof dirty, id: string): void => void dirty[kind].add(id),
    addChainsOf,
    /** Removes and returns all of a kind. */
    take(kind: keyof typeof dirty): ReadonlySet<string> {
      const ids = dirty[kind];
      dirty = { ...dirty, [kind]: new Set<string>() };
      return ids;
    },
    stop(): void {
      for (const stop of stops) stop();
    },
  };
}

/** Judges resources, and keeps the results. */
function createJudges(deps: CountsDeps, dirty: Pick<ReturnType<typeof trackDirty>, 'add' | 'addChainsOf'>) {
  const { fleet } = deps;
  const kept = {
    nodes: new Map<string, KeptNode>(),
    chains: new Map<string, ChainCount>(),
    upstreams: new Map<string, UpstreamStatus>(),
  };

  function judgeNode(id: string, changes: StatusKey[]): void {
    const before = kept.nodes.get(id);
    if (fleet.node(id) === undefined) {
      kept.nodes.delete(id);
      return;
    }
    const sign = signOf(deps, id);
    if (before !== undefined && sign.every((value, index) => value === before.sign[index])) {
      // Like nearly every heartbeat, it has changed nothing but the traffic.
      kept.nodes.set(id, { count: { ...before.count, traffic: trafficOf(deps, id) }, sign: before.sign });
      return;
    }
    const count = countNode(deps, id);
    kept.nodes.set(id, { count, sign });
    dirty.addChainsOf('node', id);
    if (before?.count.status !== count.status) changes.push({ type: 'node', id });
  }

  function judgeChain(id: string, changes: StatusKey[]): void {
    const [chain, before] = [fleet.chain(id), kept.chains.get(id)];
    const count = chain === undefined ? undefined : countChain(deps, chain);
    if (before?.upstream !== count?.upstream || before?.seen !== count?.seen) {
      for (const upstream of [before?.upstream, count?.upstream]) {
        if (upstream !== undefined) dirty.add('upstreams', upstream);
      }
    }
    if (chain === undefined || count === undefined) {
      kept.chains.delete(id);
      return;
    }
    kept.chains.set(id, count);
    if (before?.health !== count.health) changes.push({ type: 'l4_chain', id });
  }

  function judgeUpstream(id: string, changes: StatusKey[]): void {
    const before = kept.upstreams.get(id);
    if (fleet.upstream(id) === undefined) {
      kept.upstreams.delete(id);
      return;
    }
    const seen = fleet.chainsWith(id).map((chain) => kept.chains.get(chain.id));
    const status = upstreamStatus(seen.flatMap((chain) => (chain?.upstream === id ? (chain.seen ?? []) : [])));
    kept.upstreams.set(id, status);
    if (before !== status) changes.push({ type: 'l4_upstream', id });
  }

  return { kept, judgeNode, judgeChain, judgeUpstream };
}

/**
 * Every chain is also judged from time to time, because time alone can change its health.
 * @returns a function that adds the next few
 */
function createRechecks(fleet: CountsDeps['fleet'], add: (chainId: string) => void): (chains: number) => void {
  let waiting: string[] = [];
  return (chains) => {
    if (waiting.length === 0) waiting = Array.from(fleet.chains(), ({ id }) => id);
    const perTurn = Math.ceil((chains * tuning.judgeEveryMs) / tuning.judgeAgainMs);
    waiting.splice(0, perTurn).forEach(add);
  };
}

export type Counts = ReturnType<typeof keepCounts>;

export function keepCounts(deps: CountsDeps) {
  const { fleet, logger } = deps;
  const certificates = createCertificateTimes(deps);
  const dirty = trackDirty(deps, certificates.edited);
  const { kept, judgeNode, judgeChain, judgeUpstream } = createJudges(deps, dirty);
  const recheck = createRechecks(fleet, (id) => dirty.add('chains', id));
  let isComplete = false;
  const statusListeners = createListeners<readonly StatusKey[]>(
    logsError(logger, 'a listener for changes of status failed'),
  );

  /**
   * Judges everything dirty: nodes first, because they make chains dirty, and chains before upstreams for the same reason.
   * @throws the first error, once all others are judged
   */
  async function judge(): Promise<void> {
    const changes: StatusKey[] = [];
    const errors: unknown[] = [];
    for (const [kind, judgeOne] of [
      ['nodes', judgeNode],
      ['chains', judgeChain],
      ['upstreams', judgeUpstream],
    ] as const) {
      let judged = 0;
      for (const id of dirty.take(kind)) {
        try {
          judgeOne(id, changes);
        } catch (error) {
          errors.push(error);
        }
        if ((judged += 1) % tuning.judgedPerTurn === 0) await yieldToEventLoop();
      }
    }
    changes.push(...certificates.changes());
    if (changes.length > 0) statusListeners.tell(changes);
    isComplete = true;
    if (errors.length > 0) throw errors[0];
  }
  let judging: Promise<void> = Promise.resolve();
  /** Resolves once everything that was dirty at the call is judged. */
  const settled = (): Promise<void> => {
    const turn = judging.then(judge);
    judging = turn.catch(() => undefined);
    return turn;
  };
  const loop = startLoop(
    tuning.judgeEveryMs,
    async () => {
      recheck(kept.chains.size);
      await settled();
    },
    logsWarning(logger, 'the fleet could not be counted'),
  );

  return {
    /** Counts that include everything reported and committed before the call. */
    async now(): Promise<FleetCounts> {
      await settled();
      return sumUp(deps, kept);
    },
    /** The counts as last judged, for a scrape of metrics; undefined until everything has been judged once. */
    soFar: (): FleetCounts | undefined => (isComplete ? sumUp(deps, kept) : undefined),
    /** As last judged; null for a chain that is not deployed or not enabled. */
    chainHealth: (id: string): ChainHealth['state'] | null => kept.chains.get(id)?.health ?? null,
    upstreamStatus: (id: string): UpstreamStatus => kept.upstreams.get(id) ?? 'unknown',
    /** Calls back with resources whose status has changed. @returns how to stop */
    onStatus: statusListeners.add,
    async close(): Promise<void> {
      dirty.stop();
      await loop.close();
    },
  };
}

/** Everything outside the fleet that a node's count, except its traffic, and the health of its chains depend on. */
function signOf({ fleet, agentFacts, reports }: StatusDeps, nodeId: string): readonly unknown[] {
  const facts = agentFacts.of(nodeId);
  const [listeners, metrics] = [reports.listenerStates(nodeId), reports.reportedMetrics(nodeId)];
  const sessionAt = facts.session?.at ?? '';
  return [
    facts,
    fleet.generation(nodeId),
    fleet.heldBy(nodeId),
    reports.presence(nodeId)?.session_id,
    listeners?.states,
    listeners?.routes,
    listeners?.runs,
    listeners !== undefined && listeners.reportedAt >= sessionAt,
    metrics?.health_since,
    metrics?.runs_generation,
    metrics !== undefined && metrics.reported_at >= sessionAt,
    reports.lossyLinks(nodeId)?.reported_at,
  ];
}
