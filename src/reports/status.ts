/**
 * The status of nodes and the health of chains and upstreams. Joins the committed fleet with reports for the rules of
 * `domain/chain/health.ts` and `domain/upstream/health.ts`; has no state. Implements `docs/contract/domain.md#health-of-a-chain`.
 */
import { warnings } from '../domain/agents/features.js';
import { tellsOfApplied } from '../domain/agents/node-agent-facts.js';
import {
  liveDefinition,
  upstreamOf,
  type ChainState,
  type DeployedDefinition,
  type Hop,
} from '../domain/chain/chain.js';
import {
  chainFaults,
  healthOfFaults,
  healthWithoutDeploy,
  type ChainHealth,
  type DeployedUpstream,
  type Fault,
  type HopReport,
} from '../domain/chain/health.js';
import { listenerOf } from '../domain/chain/transports.js';
import { listenerKey } from '../domain/port-table/port-table.js';
import type { Needs } from '../domain/snapshot/features.js';
import { seenUpstream, upstreamStatus, type UpstreamStatus } from '../domain/upstream/health.js';
import { formatHostPort } from '../kernel/host-port.js';
import type { FleetQueries } from '../projections/fleet/fleet-queries.js';
import { applyState } from './apply-state.js';
import type { AgentFacts } from './facts.js';
import { byResource, measurement } from './link-samples.js';
import { stateNow, type ListenerStates } from './listener-states.js';
import type { Reports } from './port.js';

/** What the status of resources depends on: configuration, facts of the log, reports. */
export interface StatusDeps {
  readonly fleet: FleetQueries;
  readonly agentFacts: Pick<AgentFacts, 'of'>;
  readonly reports: Pick<Reports, 'presence' | 'listenerStates' | 'traffic' | 'lossyLinks' | 'reportedMetrics'>;
  readonly clock: { now(): number };
}

export const nodeStatuses = ['pending', 'online', 'offline'] as const;
export type NodeStatus = (typeof nodeStatuses)[number];

export function statusOf(
  { reports, agentFacts }: Pick<StatusDeps, 'reports' | 'agentFacts'>,
  nodeId: string,
): NodeStatus {
  if (reports.presence(nodeId) !== undefined) return 'online';
  return agentFacts.of(nodeId).connected_once ? 'offline' : 'pending';
}

/** The node keeps what it runs until its wave of a rollout is released. Implements `docs/contract/rollouts.md#hold`. */
export function isHeld({ fleet, agentFacts }: Pick<StatusDeps, 'fleet' | 'agentFacts'>, nodeId: string): boolean {
  const { applied } = agentFacts.of(nodeId);
  return applied !== null && fleet.heldBy(nodeId, applied.generation) !== undefined;
}

export const listenerKeyOf = (hop: Hop): string => listenerKey(listenerOf(hop));

export const nameOfNode = ({ fleet }: Pick<StatusDeps, 'fleet'>, id: string): string => fleet.node(id)?.name ?? id;

export function healthOf(deps: StatusDeps, chain: ChainState): ChainHealth {
  const live = liveDefinition(chain);
  if (live === null) return healthWithoutDeploy(chain);
  const { state, reasons } = healthOfFaults(faultsOf(deps, chain, live));
  return { state, reasons: [...reasons, ...warningsOf(deps, deps.fleet.needs('l4_chain', chain.id, 'deployed'))] };
}

/** Sentences about the agents that cannot run what is required of them. */
export function warningsOf(deps: Pick<StatusDeps, 'fleet' | 'agentFacts'>, needs: Needs): readonly string[] {
  return warnings(needs, (id) => nameOfNode(deps, id), deps.agentFacts.of);
}

/** What is wrong with a deployed and enabled chain, see `chainFaults`. */
export function faultsOf(deps: StatusDeps, chain: ChainState, live: DeployedDefinition): readonly Fault[] {
  const hops = live.hops.map((hop, index) => hopReport(deps, chain, { live, hop, next: live.hops[index + 1] }));
  return chainFaults(hops, deployedUpstream(deps, live));
}

/** The state of a deployed hop: its route's own, or else its listener's; null as in `stateNow`. */
export function hopState({ fleet, reports, agentFacts }: Omit<StatusDeps, 'clock'>, hop: Hop): string | null {
  const states = reports.listenerStates(hop.node_id);
  const state = stateNow(states, agentFacts.of(hop.node_id), listenerKeyOf(hop));
  return state === 'running' ? (routeState(fleet, hop, states) ?? state) : state;
}

/**
 * Keys of the listeners that a node should run but that its newest report shows in another state; undefined while the
 * report is older than the configuration that the node applied.
 */
export function failingListeners(
  { fleet, reports, agentFacts }: Omit<StatusDeps, 'clock'>,
  nodeId: string,
): readonly string[] | undefined {
  const report = reports.listenerStates(nodeId);
  if (report === undefined || !tellsOfApplied(report.runs, agentFacts.of(nodeId))) return undefined;
  return [...fleet.liveListeners(nodeId)].filter((key) => report.states.get(key) !== 'running');
}

/** The nodes that dial an upstream: the last hops of the chains deployed with it. */
export function diallersOf(fleet: FleetQueries, upstreamId: string): ReadonlySet<string> {
  return new Set(liveWith(fleet, upstreamId).flatMap(({ hops }) => hops.at(-1)?.node_id ?? []));
}

/** As seen by the online nodes that dial it. */
export function statusOfUpstream(deps: StatusDeps, upstreamId: string): UpstreamStatus {
  return upstreamStatus(liveWith(deps.fleet, upstreamId).flatMap((live) => seenWhereOnline(deps, live) ?? []));
}

/** The online nodes that say it is unhealthy. */
export function unhealthyAt(deps: StatusDeps, upstreamId: string): readonly string[] {
  const live = liveWith(deps.fleet, upstreamId).filter((one) => seenWhereOnline(deps, one) === 'unhealthy');
  return [...new Set(live.flatMap(({ hops }) => hops.at(-1)?.node_id ?? []))];
}

/** The deployed definitions that end at an upstream. */
function liveWith(fleet: FleetQueries, upstreamId: string): readonly DeployedDefinition[] {
  const live = fleet.chainsWith(upstreamId).map(liveDefinition);
  return live.filter((definition) => definition !== null).filter((definition) => upstreamOf(definition) === upstreamId);
}

/** How the dialling node sees the upstream of a definition; undefined while that node is not online. */
export function seenWhereOnline(deps: StatusDeps, live: DeployedDefinition): DeployedUpstream['seen'] | undefined {
  const dialler = live.hops.at(-1)?.node_id ?? '';
  return deps.reports.presence(dialler) === undefined ? undefined : deployedUpstream(deps, live)?.seen;
}

function deployedUpstream(
  { fleet, agentFacts, reports, clock }: StatusDeps,
  live: DeployedDefinition,
): DeployedUpstream | undefined {
  const upstreamId = upstreamOf(live);
  const upstream = upstreamId === undefined ? undefined : fleet.upstream(upstreamId);
  const dialler = live.hops.at(-1)?.node_id;
  if (upstream === undefined || dialler === undefined) return undefined;
  const [agent, metrics] = [agentFacts.of(dialler), reports.reportedMetrics(dialler)];
  const seen = seenUpstream({
    metrics: metrics && {
      at: metrics.reported_at,
      current: tellsOfApplied(metrics.runs_generation, agent),
      healthy: metrics.report.gateway?.upstreams.find(({ cluster }) => cluster === upstream.id)?.healthy,
    },
    sessionAt: agent.session?.at,
    editedAt: upstream.updated_at,
    deployedAt: live.at,
    now: clock.now(),
    metricsIntervalSecs: fleet.settings().metrics_interval_secs,
  });
  return { id: upstream.id, name: upstream.name, enabled: upstream.enabled, ...seen };
}

interface HopInChain {
  readonly live: DeployedDefinition;
  readonly hop: Hop;
  readonly next: Hop | undefined;
}

function hopReport(deps: StatusDeps, chain: ChainState, { live, hop, next }: HopInChain): HopReport {
  const { node_id: id, listen_addr, listen_port } = hop;
  const [agent, listeners] = [deps.agentFacts.of(id), deps.reports.listenerStates(id)];
  // Before the first heartbeat of a session, the current state is unknown.
  const now = listeners !== undefined && listeners.reportedAt >= (agent.session?.at ?? '') ? listeners : undefined;
  return {
    node: { id, name: nameOfNode(deps, id) },
    status: statusOf(deps, id),
    listener: `${listenerOf(hop).transport} ${formatHostPort({ host: listen_addr, port: listen_port })}`,
    state: stateNow(now, agent, listenerKeyOf(hop)),
    route: routeState(deps.fleet, hop, now),
    since: latest(live.at, agent.session?.at, agent.applied?.at),
    apply: applyOf(deps, id),
    loss: next === undefined ? null : lossBetween(deps, chain, id, next.node_id),
  };
}

const latest = (...times: readonly (string | undefined)[]): string =>
  times.reduce<string>((newest, at) => (at !== undefined && at > newest ? at : newest), '');

/** The own state of a hop's route, found by one of the names that select the route. */
function routeState(fleet: FleetQueries, hop: Hop, states: ListenerStates | undefined): string | null {
  if (states === undefined || states.routes.size === 0) return null;
  const routes = states.routes.get(listenerKeyOf(hop));
  if (routes === undefined) return null;
  const credential = hop.credential_id === undefined ? undefined : fleet.resources.credential.get(hop.credential_id);
  const own = hop.server_names ?? [];
  const names = own.length > 0 ? own : (credential?.server_names ?? []);
  const route = routes.find(
    ({ matchValue }) => names.includes(matchValue) || (names.length === 0 && matchValue === ''),
  );
  return route?.state ?? null;
}

function applyOf(deps: StatusDeps, nodeId: string): HopReport['apply'] {
  const { fleet, agentFacts } = deps;
  if (isHeld(deps, nodeId)) return 'held';
  const { state } = applyState(fleet.generation(nodeId) ?? null, agentFacts.of(nodeId), undefined);
  return state === 'applied' || state === 'rejected' ? state : 'behind';
}

/** The loss on the chain's link that either end reports, if it is too high. */
function lossBetween({ fleet, reports }: StatusDeps, chain: ChainState, fromId: string, toId: string): number | null {
  const [from, to] = [byResource(reports.lossyLinks(fromId)), byResource(reports.lossyLinks(toId))];
  if (from === undefined && to === undefined) return null;
  const link = fleet.links(fromId).find((one) => one.toNodeId === toId && one.resourceId === chain.id);
  if (link === undefined) return null;
  return (measurement(from, link, 'from') ?? measurement(to, link, 'to'))?.loss_ratio ?? null;
}
