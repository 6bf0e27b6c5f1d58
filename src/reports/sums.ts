/** Sums of the counts of nodes, chains and upstreams, and a list of what is wrong. Implements `docs/contract/rest.md#dashboard`. */
import { credentialKey } from '../domain/credential/credential.js';
import type { ChainHealth } from '../domain/chain/health.js';
import { nothingUnwell, type Unwell, type UnwellLists } from '../domain/matters/matters.js';
import type { UpstreamStatus } from '../domain/upstream/health.js';
import { hasEnded, unendedStates } from '../domain/rollout/rollout.js';
import { timestamp } from '../kernel/clock.js';
import { limits } from '../kernel/limits.js';
import { missing } from './listener-states.js';
import type { ChainCount, NodeCount } from './node-count.js';
import type { Traffic } from './port.js';
import type { NodeStatus, StatusDeps } from './status.js';

export interface FleetCounts {
  /** When it was counted, RFC 3339. */
  readonly at: string;
  readonly nodes: Record<NodeStatus | 'total' | 'converged' | 'rejected' | 'held', number>;
  readonly listeners: Record<'intended' | 'running' | 'missing' | 'unexpected', number>;
  /** The intended listeners of online nodes by reported state. */
  readonly listenerStates: ReadonlyMap<string, number>;
  readonly traffic: Traffic;
  /** Deployed and enabled ones. */
  readonly chains: Record<ChainHealth['state'], number>;
  /** Enabled ones. */
  readonly upstreams: Record<UpstreamStatus, number>;
  /** Rollouts that have not ended. */
  readonly rollouts: ReadonlyMap<string, number>;
  /** Without webhooks. */
  readonly unwell: Unwell;
}

/** By id. */
export interface Counted {
  readonly nodes: ReadonlyMap<string, { readonly count: NodeCount }>;
  readonly chains: ReadonlyMap<string, ChainCount>;
  readonly upstreams: ReadonlyMap<string, UpstreamStatus>;
}

type Deps = Pick<StatusDeps, 'fleet' | 'clock'>;

export function sumUp(deps: Deps, counted: Counted): FleetCounts {
  const unwell = nothingUnwell();
  return {
    at: timestamp(deps.clock.now()),
    ...sumNodes(deps, counted, unwell),
    chains: sumChains(deps, counted, unwell),
    upstreams: sumUpstreams(deps, counted, unwell),
    ...sumRollouts(deps, unwell),
    unwell: withCertificates(deps, unwell),
  };
}

function sumNodes(
  { fleet }: Deps,
  counted: Counted,
  unwell: UnwellLists,
): Pick<FleetCounts, 'nodes' | 'listeners' | 'listenerStates' | 'traffic'> {
  const nodes = { total: 0, online: 0, offline: 0, pending: 0, converged: 0, rejected: 0, held: 0 };
  const listeners = { intended: 0, running: 0, missing: 0, unexpected: 0 };
  const traffic = { bytes_in: 0, bytes_out: 0, active_sessions: 0, total_sessions: 0, error_sessions: 0 };
  const otherStates = new Map([[missing, 0]]);
  for (const [id, { count }] of counted.nodes) {
    const node = { id, name: fleet.node(id)?.name ?? id };
    nodes.total += 1;
    nodes[count.status] += 1;
    if (count.converged) nodes.converged += 1;
    if (count.rejected !== undefined) nodes.rejected += 1;
    if (count.held) nodes.held += 1;
    // An offline node that has rejected is listed only as offline.
    if (count.status === 'offline') unwell.offlineNodes.push({ ...node, reason: 'its agent has no session' });
    else if (count.status === 'online' && count.rejected !== undefined) {
      unwell.rejectingNodes.push({ ...node, reason: count.rejected });
    }
    if (count.unable !== undefined) unwell.unableNodes.push({ ...node, reason: count.unable });
    for (const name of ['intended', 'running', 'missing'] as const) listeners[name] += count[name];
    listeners.unexpected += count.unexpected.length;
    for (const [listener, state] of count.notRunning) {
      otherStates.set(state, (otherStates.get(state) ?? 0) + 1);
      unwell.missingListeners.push({ node, listener, state });
    }
    for (const [listener, state] of count.unexpected) unwell.unexpectedListeners.push({ node, listener, state });
    addTraffic(traffic, count.traffic);
  }
  return { nodes, listeners, listenerStates: new Map([['running', listeners.running], ...otherStates]), traffic };
}

function addTraffic(sums: { -readonly [K in keyof Traffic]: number }, traffic: Traffic): void {
  for (const name of Object.keys(sums) as (keyof Traffic)[]) {
    sums[name] = Math.min(sums[name] + traffic[name], Number.MAX_SAFE_INTEGER);
  }
}

function sumChains({ fleet }: Deps, { chains }: Counted, unwell: UnwellLists): FleetCounts['chains'] {
  const counts = { ok: 0, degraded: 0, down: 0, unknown: 0 };
  for (const [id, chain] of chains) {
    if (chain.health !== null) counts[chain.health] += 1;
    if (chain.unwell !== undefined) unwell.chains.push(chain.unwell);
    if (!chain.isModified) continue;
    const name = fleet.chain(id)?.name ?? id;
    unwell.modifiedChains.push({ id, name, reason: 'its definition differs from what is deployed' });
  }
  return counts;
}

function sumUpstreams({ fleet }: Deps, { upstreams }: Counted, unwell: UnwellLists): FleetCounts['upstreams'] {
  const counts = { healthy: 0, unhealthy: 0, unknown: 0 };
  for (const [id, status] of upstreams) {
    const upstream = fleet.upstream(id);
    if (upstream?.enabled !== true) continue;
    counts[status] += 1;
    if (status !== 'unhealthy') continue;
    unwell.unhealthyUpstreams.push({ id, name: upstream.name, reason: 'a node that dials it says so' });
  }
  return counts;
}

function sumRollouts({ fleet }: Deps, unwell: UnwellLists): Pick<FleetCounts, 'rollouts'> {
  const rollouts = new Map<string, number>(unendedStates.map((state) => [state, 0]));
  for (const rollout of fleet.rollouts()) {
    if (hasEnded(rollout)) continue;
    const { id, state, resource, reason } = rollout;
    rollouts.set(state, (rollouts.get(state) ?? 0) + 1);
    if (state !== 'halted') continue;
    unwell.haltedRollouts.push({
      id,
      name: resource.name ?? resource.type,
      reason: reason ?? 'somebody has to decide',
    });
  }
  return { rollouts };
}

function withCertificates({ fleet, clock }: Deps, unwell: UnwellLists): Unwell {
  const now = clock.now();
  for (const { id, name, certificate } of fleet.credentials()) {
    if (certificate === null) continue;
    const left = Date.parse(certificate.not_after) - now;
    if (left > limits.rest.expiringSoonMs || fleet.firstReferrers(credentialKey.type, id, 0).total === 0) continue;
    const reason = `${left <= 0 ? 'ended' : 'ends'} at ${certificate.not_after}`;
    (left <= 0 ? unwell.endedCertificates : unwell.endingCertificates).push({ id, name, reason });
  }
  return unwell;
}
