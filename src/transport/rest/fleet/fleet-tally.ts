/**
 * The wanted state of each node and chain beside what agents report: counts for the dashboard and for metrics, and what is
 * not well, for `domain/matters`. Counted in slices, so that a large fleet holds up nothing. Implements
 * `docs/contract/rest.md#dashboard`.
 */
import { liveDefinition } from '../../../domain/chain/chain.js';
import { healthOfFaults, mainCause } from '../../../domain/chain/health.js';
import type { ChainHealth } from '../../../domain/chain/health.js';
import { chainStatus } from '../../../domain/chain/status.js';
import { credentialKey } from '../../../domain/credential/credential.js';
import { nothingUnwell } from '../../../domain/matters/matters.js';
import type { ListenerOfNode, Unwell, UnwellLists } from '../../../domain/matters/matters.js';
import { listenerOfKey } from '../../../domain/port-table/port-table.js';
import type { UpstreamStatus } from '../../../domain/upstream/health.js';
import { yieldToEventLoop } from '../../../kernel/background.js';
import { formatHostPort } from '../../../kernel/host-port.js';
import { limits } from '../../../kernel/limits.js';
import type { RestDeps } from '../deps.js';
import { tuning } from '../tuning.js';
import { applyState } from './apply-state.js';
import { faultsOf, statusesOfUpstreams } from './fleet-health.js';
import { addTraffic, noTraffic } from './fleet-reports.js';
import type { FleetReports, NodeReport, Traffic } from './fleet-reports.js';
import { missing, stateNow } from './listener-states.js';
import { statusOf } from './node-status.js';
import type { NodeStatus } from './node-status.js';

export interface FleetTally {
  readonly nodes: Record<NodeStatus | 'total' | 'converged' | 'rejected' | 'held', number>;
  readonly listeners: Record<'intended' | 'running' | 'missing' | 'unexpected', number>;
  /** The intended listeners of online nodes, by the agent's word, as far as reports tell. */
  readonly listenerStates: ReadonlyMap<string, number>;
  readonly traffic: Traffic;
  /** Of chains that are deployed and enabled. */
  readonly chains: Record<ChainHealth['state'], number>;
  /** Of upstreams that are enabled. */
  readonly upstreams: Record<UpstreamStatus, number>;
  /** Without webhooks. */
  readonly unwell: Unwell;
}

type Deps = Pick<RestDeps, 'clock' | 'fleet'>;

export async function tallyFleet(deps: Deps, reports: FleetReports): Promise<FleetTally> {
  const unwell = nothingUnwell();
  return {
    ...(await tallyNodes(deps, reports, unwell)),
    chains: await tallyChains(deps, reports, unwell),
    upstreams: await tallyUpstreams(deps, reports, unwell),
    unwell: await withCertificates(deps, unwell),
  };
}

async function tallyNodes(
  { fleet }: Deps,
  reports: FleetReports,
  unwell: UnwellLists,
): Promise<Pick<FleetTally, 'nodes' | 'listeners' | 'listenerStates' | 'traffic'>> {
  const nodes = { total: 0, online: 0, offline: 0, pending: 0, converged: 0, rejected: 0, held: 0 };
  const listeners = { intended: 0, running: 0, missing: 0, unexpected: 0 };
  const listenerStates = new Map([
    ['running', 0],
    [missing, 0],
  ]);
  let traffic = noTraffic;
  for (const [index, id] of [...fleet.nodeIds()].entries()) {
    if (index % tuning.dashboard.nodesPerTurn === 0) await yieldToEventLoop();
    const report = reports.nodes.get(id);
    const status = statusOf(reports.online.has(id), report?.agent);
    const node = { id, name: fleet.node(id)?.name ?? id };
    nodes.total += 1;
    nodes[status] += 1;
    countApply(nodes, fleet.generation(id), report?.agent);
    noteNode(unwell, node, status, report?.agent, fleet.generation(id));
    countListeners(listeners, listenerStates, unwell, {
      node,
      intended: fleet.liveListeners(id),
      report: status === 'online' ? report : undefined,
      isOnline: status === 'online',
    });
    // Bytes of a silent node still count; its sessions have ended, or nobody knows.
    const own = report?.traffic ?? noTraffic;
    traffic = addTraffic(traffic, status === 'online' ? own : { ...own, active_sessions: 0 });
  }
  return { nodes, listeners, listenerStates, traffic };
}

function countApply(nodes: FleetTally['nodes'], generation: number | undefined, agent: NodeReport['agent']): void {
  if (generation === undefined || agent === undefined) return;
  // A reject does not depend on what was pushed.
  const { state } = applyState(generation, agent, undefined);
  if (state === 'rejected') nodes.rejected += 1;
  else if (agent.applied?.generation === generation) nodes.converged += 1;
}

type Named = ListenerOfNode['node'];

/** A node that is offline and has rejected is offline first. */
function noteNode(
  unwell: UnwellLists,
  node: Named,
  status: NodeStatus,
  agent: NodeReport['agent'],
  generation: number | undefined,
): void {
  if (status === 'offline') unwell.offlineNodes.push({ ...node, reason: 'its agent has no session' });
  if (status !== 'online' || agent === undefined || generation === undefined) return;
  const { state, errors } = applyState(generation, agent, undefined);
  if (state !== 'rejected') return;
  const [first] = errors;
  const reason =
    first === undefined ? 'its agent gave no reason' : [first.path, first.message].filter(Boolean).join(': ');
  unwell.rejectingNodes.push({ ...node, reason });
}

interface ListenersOfNode {
  readonly node: Named;
  /** As `listenerKey` names them. */
  readonly intended: ReadonlySet<string>;
  /** Undefined of a node that is not online: its last report says nothing about now. */
  readonly report: NodeReport | undefined;
  readonly isOnline: boolean;
}

function countListeners(
  listeners: FleetTally['listeners'],
  states: Map<string, number>,
  unwell: UnwellLists,
  { node, intended, report, isOnline }: ListenersOfNode,
): void {
  listeners.intended += intended.size;
  if (!isOnline) {
    listeners.missing += intended.size;
    return;
  }
  const reported = report?.listeners;
  if (reported?.current !== true) return;
  for (const key of intended) {
    const state = stateNow(reported, key) ?? missing;
    states.set(state, (states.get(state) ?? 0) + 1);
    if (state === 'running') listeners.running += 1;
    else {
      listeners.missing += 1;
      unwell.missingListeners.push({ node, listener: wordsOf(key), state });
    }
  }
  for (const [key, state] of reportedKeys(reported)) {
    if (intended.has(key)) continue;
    listeners.unexpected += 1;
    unwell.unexpectedListeners.push({ node, listener: wordsOf(key), state });
  }
}

function* reportedKeys({
  running,
  notRunning,
}: NonNullable<NodeReport['listeners']>): Generator<readonly [key: string, state: string]> {
  for (const key of running) yield [key, 'running'];
  yield* notRunning;
}

/** `tcp 0.0.0.0:443`. */
function wordsOf(key: string): string {
  const { transport, listenAddr, listenPort } = listenerOfKey(key);
  return `${transport} ${formatHostPort({ host: listenAddr, port: listenPort })}`;
}

async function tallyChains(deps: Deps, reports: FleetReports, unwell: UnwellLists): Promise<FleetTally['chains']> {
  const counts = { ok: 0, degraded: 0, down: 0, unknown: 0 };
  let looked = 0;
  for (const chain of deps.fleet.chains()) {
    if ((looked += 1) % tuning.chainsPerTurn === 0) await yieldToEventLoop();
    const { id, name } = chain;
    if (chainStatus(chain) === 'modified') {
      unwell.modifiedChains.push({ id, name, reason: 'its definition differs from what is deployed' });
    }
    const live = liveDefinition(chain);
    if (live === null) continue;
    const faults = faultsOf(deps, chain, live, reports);
    const { state, reasons } = healthOfFaults(faults);
    counts[state] += 1;
    if (state === 'ok') continue;
    const since = Math.min(...faults.map((fault) => Date.parse(fault.since ?? '')).filter((at) => !Number.isNaN(at)));
    unwell.chains.push({ id, name, state, reason: reasons[0] ?? '', cause: mainCause(faults), since });
  }
  return counts;
}

async function tallyUpstreams(
  deps: Deps,
  reports: FleetReports,
  unwell: UnwellLists,
): Promise<FleetTally['upstreams']> {
  const counts = { healthy: 0, unhealthy: 0, unknown: 0 };
  const statuses = await statusesOfUpstreams(deps, reports);
  let looked = 0;
  for (const { id, name, enabled } of deps.fleet.upstreams()) {
    if ((looked += 1) % tuning.chainsPerTurn === 0) await yieldToEventLoop();
    if (!enabled) continue;
    const status = statuses.get(id) ?? 'unknown';
    counts[status] += 1;
    if (status === 'unhealthy') unwell.unhealthyUpstreams.push({ id, name, reason: 'a node that dials it says so' });
  }
  return counts;
}

async function withCertificates({ fleet, clock }: Deps, unwell: UnwellLists): Promise<Unwell> {
  const now = clock.now();
  let looked = 0;
  for (const { id, name, certificate } of fleet.credentials()) {
    if ((looked += 1) % tuning.chainsPerTurn === 0) await yieldToEventLoop();
    if (certificate === null) continue;
    const left = Date.parse(certificate.not_after) - now;
    if (left > limits.rest.expiringSoonMs || fleet.firstReferrers(credentialKey.type, id, 0).total === 0) continue;
    const reason = `${left <= 0 ? 'ended' : 'ends'} at ${certificate.not_after}`;
    (left <= 0 ? unwell.endedCertificates : unwell.endingCertificates).push({ id, name, reason });
  }
  return unwell;
}
