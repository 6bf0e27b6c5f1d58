/**
 * What one node, one chain, one upstream adds to the counts of the fleet, and what is not well with it: the wanted state beside
 * what agents tell. Pure but for what it is given; `counts.ts` keeps the results. Implements
 * `docs/contract/rest.md#dashboard`.
 */
import { liveDefinition, upstreamOf } from '../domain/chain/chain.js';
import type { ChainState } from '../domain/chain/chain.js';
import { healthOfFaults, mainCause } from '../domain/chain/health.js';
import type { ChainHealth } from '../domain/chain/health.js';
import { chainStatus } from '../domain/chain/status.js';
import type { UnwellChain } from '../domain/matters/matters.js';
import { listenerOfKey } from '../domain/port-table/port-table.js';
import { formatHostPort } from '../kernel/host-port.js';
import { applyState } from './apply-state.js';
import { isCurrent, missing, stateNow } from './listener-states.js';
import type { Traffic } from './port.js';
import { faultsOf, seenWhereOnline, statusOf } from './status.js';
import type { NodeStatus, Told } from './status.js';

/** A listener, `tcp 0.0.0.0:443`, and the agent's word for it or `missing`. */
export type ListenerAndState = readonly [listener: string, state: string];

export interface NodeCount {
  readonly status: NodeStatus;
  /** Whether it has applied its newest generation and not rejected it since. */
  readonly converged: boolean;
  /** Why it rejected its newest generation; undefined if it did not. */
  readonly rejected: string | undefined;
  readonly intended: number;
  readonly running: number;
  /** How many are missing, and which of them an online node's report tells. */
  readonly missing: number;
  readonly notRunning: readonly ListenerAndState[];
  readonly unexpected: readonly ListenerAndState[];
  readonly traffic: Traffic;
}

const none: readonly ListenerAndState[] = [];

export function countNode(told: Told, nodeId: string): NodeCount {
  const { fleet, agentFacts } = told;
  const [status, agent, generation] = [statusOf(told, nodeId), agentFacts.of(nodeId), fleet.generation(nodeId)];
  // A reject does not depend on what was pushed.
  const apply = generation === undefined ? undefined : applyState(generation, agent, undefined);
  const isRejected = apply?.state === 'rejected';
  return {
    status,
    converged: generation !== undefined && !isRejected && agent.applied?.generation === generation,
    rejected: isRejected ? rejectReason(apply.errors) : undefined,
    ...countListeners(told, nodeId, status),
    traffic: trafficOf(told, nodeId),
  };
}

/** Bytes of a silent node still count; its sessions have ended, or nobody knows. */
export function trafficOf({ reports }: Told, nodeId: string): Traffic {
  const traffic = reports.traffic(nodeId);
  return reports.presence(nodeId) === undefined ? { ...traffic, active_sessions: 0 } : traffic;
}

function rejectReason([first]: ReturnType<typeof applyState>['errors']): string {
  return first === undefined ? 'its agent gave no reason' : [first.path, first.message].filter(Boolean).join(': ');
}

function countListeners(
  { fleet, agentFacts, reports }: Told,
  nodeId: string,
  status: NodeStatus,
): Pick<NodeCount, 'intended' | 'running' | 'missing' | 'notRunning' | 'unexpected'> {
  const intended = fleet.liveListeners(nodeId);
  if (status !== 'online') {
    return { intended: intended.size, running: 0, missing: intended.size, notRunning: none, unexpected: none };
  }
  const [report, facts] = [reports.listenerStates(nodeId), agentFacts.of(nodeId)];
  if (report === undefined || !isCurrent(report, facts)) {
    return { intended: intended.size, running: 0, missing: 0, notRunning: none, unexpected: none };
  }
  const notRunning: ListenerAndState[] = [];
  for (const key of intended) {
    const state = stateNow(report, facts, key) ?? missing;
    if (state !== 'running') notRunning.push([wordsOf(key), state]);
  }
  const unexpected: ListenerAndState[] = [];
  for (const [key, state] of report.states) if (!intended.has(key)) unexpected.push([wordsOf(key), state]);
  return {
    intended: intended.size,
    running: intended.size - notRunning.length,
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
  /** Null of one that is not deployed or not enabled. */
  readonly health: ChainHealth['state'] | null;
  /** Undefined while all is well with it. */
  readonly unwell: UnwellChain | undefined;
  readonly isModified: boolean;
  /** The upstream that it is deployed with, and how the node that dials it sees it, while that is online. */
  readonly upstream: string | undefined;
  readonly seen: ReturnType<typeof seenWhereOnline>;
  readonly version: number;
}

export function countChain(told: Told, chain: ChainState): ChainCount {
  const { id, name, version } = chain;
  const [live, isModified] = [liveDefinition(chain), chainStatus(chain) === 'modified'];
  if (live === null) {
    return { health: null, unwell: undefined, isModified, upstream: undefined, seen: undefined, version };
  }
  const faults = faultsOf(told, chain, live);
  const { state, reasons } = healthOfFaults(faults);
  const since = Math.min(...faults.map((fault) => Date.parse(fault.since ?? '')).filter((at) => !Number.isNaN(at)));
  return {
    health: state,
    unwell: state === 'ok' ? undefined : { id, name, state, reason: reasons[0] ?? '', cause: mainCause(faults), since },
    isModified,
    upstream: upstreamOf(live),
    seen: seenWhereOnline(told, live),
    version,
  };
}
