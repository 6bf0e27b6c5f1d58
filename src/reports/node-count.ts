/**
 * What one node or chain adds to the counts of the fleet, and what is wrong with it: compares the configuration with reports.
 * `counts.ts` keeps the results. Implements `docs/contract/rest.md#dashboard`.
 */
import { agentWords, lacking } from '../domain/agents/features.js';
import { tellsOfApplied } from '../domain/agents/node-agent-facts.js';
import { liveDefinition, upstreamOf, type ChainState } from '../domain/chain/chain.js';
import { healthOfFaults, mainCause, type ChainHealth } from '../domain/chain/health.js';
import { chainStatus } from '../domain/chain/status.js';
import type { UnwellChain } from '../domain/matters/matters.js';
import { listenerOfKey } from '../domain/port-table/port-table.js';
import { formatHostPort } from '../kernel/host-port.js';
import { applyState } from './apply-state.js';
import { missing, stateNow } from './listener-states.js';
import type { Traffic } from './port.js';
import { faultsOf, isHeld, seenWhereOnline, statusOf, type NodeStatus, type StatusDeps } from './status.js';

/** A listener such as `tcp 0.0.0.0:443`, and its state as reported, or `missing`. */
export type ListenerAndState = readonly [listener: string, state: string];

export interface NodeCount {
  readonly status: NodeStatus;
  /** It has applied its newest generation, and has not rejected it since. */
  readonly converged: boolean;
  /** It waits for its wave of a rollout. */
  readonly held: boolean;
  /** Why it rejected its newest generation, if it did. */
  readonly rejected: string | undefined;
  /** The part of its newest generation that its agent cannot run, if any. */
  readonly unable: string | undefined;
  readonly intended: number;
  readonly running: number;
  /** Includes listeners of nodes that are not online, which are not in `notRunning`. */
  readonly missing: number;
  readonly notRunning: readonly ListenerAndState[];
  readonly unexpected: readonly ListenerAndState[];
  readonly traffic: Traffic;
}

const none: readonly ListenerAndState[] = [];

export function countNode(deps: StatusDeps, nodeId: string): NodeCount {
  const { fleet, agentFacts } = deps;
  const [status, agent, generation] = [statusOf(deps, nodeId), agentFacts.of(nodeId), fleet.generation(nodeId)];
  const apply = generation === undefined ? undefined : applyState(generation, agent, undefined);
  const isRejected = apply?.state === 'rejected';
  const lacks = agent.features.length === 0 ? [] : lacking(agent, fleet.needsOfNode(nodeId));
  return {
    status,
    converged: generation !== undefined && !isRejected && agent.applied?.generation === generation,
    held: isHeld(deps, nodeId),
    rejected: isRejected ? rejectReason(apply.errors) : undefined,
    unable: lacks.length === 0 ? undefined : `its agent, ${agentWords(agent)}, cannot run ${lacks.join(', ')}`,
    ...countListeners(deps, nodeId, status),
    traffic: trafficOf(deps, nodeId),
  };
}

/** Bytes of an offline node still count; its sessions do not. */
export function trafficOf({ reports }: StatusDeps, nodeId: string): Traffic {
  const traffic = reports.traffic(nodeId);
  return reports.presence(nodeId) === undefined ? { ...traffic, active_sessions: 0 } : traffic;
}

function rejectReason([first]: ReturnType<typeof applyState>['errors']): string {
  return first === undefined ? 'its agent gave no reason' : [first.path, first.message].filter(Boolean).join(': ');
}

function countListeners(
  deps: StatusDeps,
  nodeId: string,
  status: NodeStatus,
): Pick<NodeCount, 'intended' | 'running' | 'missing' | 'notRunning' | 'unexpected'> {
  const { fleet, agentFacts, reports } = deps;
  const intended = fleet.liveListeners(nodeId);
  if (status !== 'online') {
    return { intended: intended.size, running: 0, missing: intended.size, notRunning: none, unexpected: none };
  }
  const [report, facts] = [reports.listenerStates(nodeId), agentFacts.of(nodeId)];
  if (report === undefined || !tellsOfApplied(report.runs, facts)) {
    return { intended: intended.size, running: 0, missing: 0, notRunning: none, unexpected: none };
  }
  const held = isHeld(deps, nodeId);
  // Listeners that come with its wave are neither running nor missing.
  let awaited = 0;
  const notRunning: ListenerAndState[] = [];
  for (const key of intended) {
    const state = stateNow(report, facts, key) ?? missing;
    if (state === missing && held) awaited += 1;
    else if (state !== 'running') notRunning.push([wordsOf(key), state]);
  }
  const unexpected: ListenerAndState[] = [];
  for (const [key, state] of report.states) if (!intended.has(key)) unexpected.push([wordsOf(key), state]);
  return {
    intended: intended.size,
    running: intended.size - notRunning.length - awaited,
    missing: notRunning.length,
    notRunning: notRunning.length === 0 ? none : notRunning,
    unexpected: unexpected.length === 0 ? none : unexpected,
  };
}

function wordsOf(key: string): string {
  const { transport, listenAddr, listenPort } = listenerOfKey(key);
  return `${transport} ${formatHostPort({ host: listenAddr, port: listenPort })}`;
}

export interface ChainCount {
  /** Null for one that is not deployed or not enabled. */
  readonly health: ChainHealth['state'] | null;
  /** Undefined while it is healthy. */
  readonly unwell: UnwellChain | undefined;
  readonly isModified: boolean;
  /** The upstream it is deployed with, and how the dialling node sees it while online. */
  readonly upstream: string | undefined;
  readonly seen: ReturnType<typeof seenWhereOnline>;
}

export function countChain(deps: StatusDeps, chain: ChainState): ChainCount {
  const { id, name } = chain;
  const [live, isModified] = [liveDefinition(chain), chainStatus(chain) === 'modified'];
  if (live === null) {
    return { health: null, unwell: undefined, isModified, upstream: undefined, seen: undefined };
  }
  const faults = faultsOf(deps, chain, live);
  const { state, reasons } = healthOfFaults(faults);
  const since = Math.min(...faults.map((fault) => Date.parse(fault.since ?? '')).filter((at) => !Number.isNaN(at)));
  return {
    health: state,
    unwell: state === 'ok' ? undefined : { id, name, state, reason: reasons[0] ?? '', cause: mainCause(faults), since },
    isModified,
    upstream: upstreamOf(live),
    seen: seenWhereOnline(deps, live),
  };
}
