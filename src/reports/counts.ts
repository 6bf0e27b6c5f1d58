/**
 * How the whole fleet is, kept as it changes: what every node, chain and upstream adds to the counts, judged anew when what is
 * told of it, or what it should do, has changed. Whoever asks gets sums over what is kept; whoever listens is told each change
 * of status. Judging is done in slices. Implements `docs/contract/rest.md#dashboard` and
 * `docs/contract/automation.md#event-feed`, `status`.
 */
import type { ChainHealth } from '../domain/chain/health.js';
import { upstreamStatus } from '../domain/upstream/health.js';
import type { UpstreamStatus } from '../domain/upstream/health.js';
import { startLoop, yieldToEventLoop } from '../kernel/background.js';
import type { Clock } from '../kernel/clock.js';
import { errorText } from '../kernel/errors.js';
import { createListeners } from '../kernel/listeners.js';
import type { Logger } from '../kernel/logger.js';
import type { FoldBatch } from '../projections/fleet/fold-batch.js';
import { createCertificateTimes } from './certificates.js';
import { countChain, countNode, trafficOf } from './node-count.js';
import type { ChainCount, NodeCount } from './node-count.js';
import type { Told } from './status.js';
import { sumUp } from './sums.js';
import type { FleetCounts } from './sums.js';
import { tuning } from './tuning.js';

/** A change of status that no command made. */
export interface StatusChange {
  readonly resource: { readonly type: StatusType; readonly id: string; readonly name: string };
  readonly was: string;
  readonly status: string;
}
export type StatusType = 'node' | 'l4_chain' | 'l4_upstream' | 'credential';

export interface Counts {
  /** Counts that hold all that was told, and committed, before the call. */
  now(): Promise<FleetCounts>;
  /** As judged so far; undefined before all was judged once. For a scrape of metrics. */
  soFar(): FleetCounts | undefined;
  /** As judged last; null of a chain that is not deployed or not enabled. */
  chainHealth(chainId: string): ChainHealth['state'] | null;
  upstreamStatus(upstreamId: string): UpstreamStatus;
  /** Calls back with changes of status. @returns how to stop */
  onStatus(listener: (changes: readonly StatusChange[]) => void): () => void;
  close(): Promise<void>;
}

export interface CountsDeps extends Told {
  /** Calls back with each node that has told something, or is there no longer. @returns how to stop, as the next two */
  onTold(listener: (nodeId: string) => void): () => void;
  onFact(listener: (nodeId: string) => void): () => void;
  onBatch(listener: (batch: Pick<FoldBatch, 'touched' | 'changed'>) => void): () => void;
  readonly clock: Pick<Clock, 'now' | 'monotonic'>;
  readonly logger: Logger;
}

interface KeptNode {
  readonly count: NodeCount;
  /** What its count, but for the traffic, and the health of its chains depend on, compared one by one. */
  readonly sign: readonly unknown[];
}

interface KeptUpstream {
  readonly status: UpstreamStatus;
  readonly version: number;
}

export function keepCounts(deps: CountsDeps): Counts {
  const { fleet, logger } = deps;
  const nodes = new Map<string, KeptNode>();
  const chains = new Map<string, ChainCount>();
  const upstreams = new Map<string, KeptUpstream>();
  const certificates = createCertificateTimes(deps);
  /** What is to be judged. */
  let dirty = everything();
  let isComplete = false;
  const statusListeners = createListeners<readonly StatusChange[]>((error) =>
    logger.error({ error: errorText(error) }, 'a listener for changes of status failed'),
  );

  function everything() {
    return {
      nodes: new Set(fleet.nodeIds()),
      chains: new Set(Array.from(fleet.chains(), ({ id }) => id)),
      upstreams: new Set(Array.from(fleet.upstreams(), ({ id }) => id)),
    };
  }
  const addChainsOf = (type: string, id: string): void => {
    for (const user of fleet.referrers(type, id)) if (user.type === 'l4_chain') dirty.chains.add(user.id);
  };

  function onChanged(type: string, id: string): void {
    switch (type) {
      case 'node':
        dirty.nodes.add(id);
        return addChainsOf(type, id);
      case 'l4_chain':
        dirty.chains.add(id);
        return;
      case 'l4_upstream':
        dirty.upstreams.add(id);
        for (const chain of fleet.chainsWith(id)) dirty.chains.add(chain.id);
        return;
      case 'credential':
        certificates.edited();
        return addChainsOf(type, id);
      case 'connectivity':
        dirty = everything();
        return;
      default:
        // What else there is says nothing of a chain; the nodes that it touches are named.
        return;
    }
  }

  const stops = [
    deps.onTold((nodeId) => dirty.nodes.add(nodeId)),
    deps.onFact((nodeId) => dirty.nodes.add(nodeId)),
    deps.onBatch(({ touched, changed }) => {
      for (const nodeId of touched) dirty.nodes.add(nodeId);
      for (const resource of changed) {
        const slash = resource.indexOf('/');
        onChanged(resource.slice(0, slash), resource.slice(slash + 1));
      }
    }),
  ];

  function judgeNode(id: string, changes: StatusChange[]): void {
    const [node, before] = [fleet.node(id), nodes.get(id)];
    if (node === undefined) {
      nodes.delete(id);
      return;
    }
    const sign = signOf(deps, id);
    if (before !== undefined && sign.every((value, index) => value === before.sign[index])) {
      // As with nearly every heartbeat, it has carried something, and that is all.
      nodes.set(id, { count: { ...before.count, traffic: trafficOf(deps, id) }, sign: before.sign });
      return;
    }
    const count = countNode(deps, id);
    nodes.set(id, { count, sign });
    addChainsOf('node', id);
    if (before === undefined || before.count.status === count.status) return;
    const resource = { type: 'node', id, name: node.name } as const;
    changes.push({ resource, was: before.count.status, status: count.status });
  }

  function judgeChain(id: string, changes: StatusChange[]): void {
    const [chain, before] = [fleet.chain(id), chains.get(id)];
    const count = chain === undefined ? undefined : countChain(deps, chain);
    if (before?.upstream !== count?.upstream || before?.seen !== count?.seen) {
      for (const upstream of [before?.upstream, count?.upstream]) {
        if (upstream !== undefined) dirty.upstreams.add(upstream);
      }
    }
    if (chain === undefined || count === undefined) {
      chains.delete(id);
      return;
    }
    chains.set(id, count);
    const resource = { type: 'l4_chain', id, name: chain.name } as const;
    noteChange(
      changes,
      resource,
      before?.health ?? unknown,
      count.health ?? unknown,
      before?.version !== count.version,
    );
  }

  function judgeUpstream(id: string, changes: StatusChange[]): void {
    const [upstream, before] = [fleet.upstream(id), upstreams.get(id)];
    if (upstream === undefined) {
      upstreams.delete(id);
      return;
    }
    const { name, version } = upstream;
    const seen = fleet.chainsWith(id).map((chain) => chains.get(chain.id));
    const status = upstreamStatus(seen.flatMap((chain) => (chain?.upstream === id ? (chain.seen ?? []) : [])));
    upstreams.set(id, { status, version });
    const resource = { type: 'l4_upstream', id, name } as const;
    noteChange(changes, resource, before?.status ?? unknown, status, before?.version !== version);
  }

  /** Judges what is dirty now, nodes before the chains and these before the upstreams that they make dirty. */
  async function judge(): Promise<void> {
    const changes: StatusChange[] = [];
    const inSlices = async (kind: keyof typeof dirty, one: (id: string, changes: StatusChange[]) => void) => {
      const ids = dirty[kind];
      dirty = { ...dirty, [kind]: new Set<string>() };
      let judged = 0;
      for (const id of ids) {
        one(id, changes);
        if ((judged += 1) % tuning.judgedPerTurn === 0) await yieldToEventLoop();
      }
    };
    await inSlices('nodes', judgeNode);
    await inSlices('chains', judgeChain);
    await inSlices('upstreams', judgeUpstream);
    changes.push(...certificates.changes());
    if (isComplete && changes.length > 0) statusListeners.tell(changes);
    isComplete = true;
  }
  let judging: Promise<void> = Promise.resolve();
  /** Holds all that was dirty at the call once it resolves. */
  const settled = (): Promise<void> => {
    const turn = judging.then(judge);
    judging = turn.catch(() => undefined);
    return turn;
  };

  /** Chains are also judged anew by and by: time alone can change their health. */
  let again: Iterator<string> = [][Symbol.iterator]();
  function* allChainIds(): Generator<string> {
    yield* Array.from(fleet.chains(), ({ id }) => id);
  }
  const judgeAgain = (): void => {
    const perTurn = Math.ceil((chains.size * tuning.judgeEveryMs) / tuning.judgeAgainMs);
    for (let count = 0; count < perTurn; count += 1) {
      const next = again.next();
      if (next.done === true) {
        again = allChainIds();
        return;
      }
      dirty.chains.add(next.value);
    }
  };
  const loop = startLoop(
    tuning.judgeEveryMs,
    async () => {
      judgeAgain();
      await settled();
    },
    (error) => logger.warn({ error: errorText(error) }, 'the fleet could not be counted'),
  );

  const sums = (): FleetCounts => sumUp(deps, { nodes, chains, upstreams });

  return {
    async now() {
      await settled();
      return sums();
    },
    soFar: () => (isComplete ? sums() : undefined),
    chainHealth: (id) => chains.get(id)?.health ?? null,
    upstreamStatus: (id) => upstreams.get(id)?.status ?? 'unknown',
    onStatus: statusListeners.add,
    async close() {
      for (const stop of stops) stop();
      await loop.close();
    },
  };
}

const unknown = 'unknown';

/**
 * A command may change a status as well: a chain that is disabled is unknown. Its own entry tells of that, so it is no change
 * here.
 */
function noteChange(
  changes: StatusChange[],
  resource: StatusChange['resource'],
  was: string,
  status: string,
  isEdited: boolean,
): void {
  if (was !== status && !(isEdited && status === unknown)) changes.push({ resource, was, status });
}

/** What the count of a node, but for the traffic, and the health of its chains depend on, beside the fleet. */
function signOf({ fleet, agentFacts, reports }: Told, nodeId: string): readonly unknown[] {
  const facts = agentFacts.of(nodeId);
  const [listeners, metrics] = [reports.listenerStates(nodeId), reports.reportedMetrics(nodeId)];
  const sessionAt = facts.session?.at ?? '';
  return [
    facts,
    fleet.generation(nodeId),
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
