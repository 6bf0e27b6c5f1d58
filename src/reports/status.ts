/**
 * The status of nodes and the health of chains and upstreams, from the committed fleet and what its agents tell. Brings both
 * together for the rules of `domain/chain/health.ts` and `domain/upstream/health.ts`; holds nothing. Implements
 * `docs/contract/domain.md#health-of-a-chain`.
 */
import { tellsOfApplied } from '../domain/agents/node-agent-facts.js';
import type { ChainState, DeployedDefinition, Hop } from '../domain/chain/chain.js';
import { liveDefinition, upstreamOf } from '../domain/chain/chain.js';
import type { ChainHealth, DeployedUpstream, Fault, HopReport } from '../domain/chain/health.js';
import { chainFaults, healthOfFaults, healthWithoutDeploy } from '../domain/chain/health.js';
import { listenerOf } from '../domain/chain/transports.js';
import { listenerKey } from '../domain/port-table/port-table.js';
import { seenUpstream, upstreamStatus } from '../domain/upstream/health.js';
import type { UpstreamStatus } from '../domain/upstream/health.js';
import { formatHostPort } from '../kernel/host-port.js';
import type { FleetQueries } from '../projections/port.js';
import { applyState } from './apply-state.js';
import type { AgentFacts } from './facts.js';
import { byResource, measurement } from './link-samples.js';
import type { ListenerStates } from './listener-states.js';
import { stateNow } from './listener-states.js';
import type { Reports } from './port.js';

/** What nodes and their log say, beside what they should do. */
export interface Told {
  readonly fleet: FleetQueries;
  readonly agentFacts: Pick<AgentFacts, 'of'>;
  readonly reports: Pick<Reports, 'presence' | 'listenerStates' | 'traffic' | 'lossyLinks' | 'reportedMetrics'>;
  readonly clock: { now(): number };
}

export const nodeStatuses = ['pending', 'online', 'offline'] as const;
export type NodeStatus = (typeof nodeStatuses)[number];

export function statusOf({ reports, agentFacts }: Pick<Told, 'reports' | 'agentFacts'>, nodeId: string): NodeStatus {
  if (reports.presence(nodeId) !== undefined) return 'online';
  return agentFacts.of(nodeId).connected_once ? 'offline' : 'pending';
}

export const listenerKeyOf = (hop: Hop): string => listenerKey(listenerOf(hop));

export const nameOfNode = ({ fleet }: Pick<Told, 'fleet'>, id: string): string => fleet.node(id)?.name ?? id;

export function healthOf(told: Told, chain: ChainState): ChainHealth {
  const live = liveDefinition(chain);
  return live === null ? healthWithoutDeploy(chain) : healthOfFaults(faultsOf(told, chain, live));
}

/** What is wrong with a chain that is deployed and enabled, as of `chainFaults`. */
export function faultsOf(told: Told, chain: ChainState, live: DeployedDefinition): readonly Fault[] {
  const hops = live.hops.map((hop, index) => hopReport(told, chain, { live, hop, next: live.hops[index + 1] }));
  return chainFaults(hops, deployedUpstream(told, live));
}

/** The state of a deployed hop: its route's where that has one of its own, else its listener's; null as of `stateNow`. */
export function hopState({ fleet, reports, agentFacts }: Omit<Told, 'clock'>, hop: Hop): string | null {
  const states = reports.listenerStates(hop.node_id);
  const state = stateNow(states, agentFacts.of(hop.node_id), listenerKeyOf(hop));
  return state === 'running' ? (routeState(fleet, hop, states) ?? state) : state;
}

/** The nodes that dial an upstream: the last hops of the chains that are deployed with it. */
export function diallersOf(fleet: FleetQueries, upstreamId: string): ReadonlySet<string> {
  return new Set(liveWith(fleet, upstreamId).flatMap(({ hops }) => hops.at(-1)?.node_id ?? []));
}

/** As the nodes that dial it see it; others say nothing about it. */
export function statusOfUpstream(told: Told, upstreamId: string): UpstreamStatus {
  return upstreamStatus(liveWith(told.fleet, upstreamId).flatMap((live) => seenWhereOnline(told, live) ?? []));
}

/** The definitions that nodes run with an upstream. */
function liveWith(fleet: FleetQueries, upstreamId: string): readonly DeployedDefinition[] {
  const live = fleet.chainsWith(upstreamId).map(liveDefinition);
  return live.filter((definition) => definition !== null).filter((definition) => upstreamOf(definition) === upstreamId);
}

/** How the node that dials the upstream of a definition sees it; undefined while it is not online. */
export function seenWhereOnline(told: Told, live: DeployedDefinition): DeployedUpstream['seen'] | undefined {
  const dialler = live.hops.at(-1)?.node_id ?? '';
  return told.reports.presence(dialler) === undefined ? undefined : deployedUpstream(told, live)?.seen;
}

function deployedUpstream(
  { fleet, agentFacts, reports, clock }: Told,
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

function hopReport(told: Told, chain: ChainState, { live, hop, next }: HopInChain): HopReport {
  const { node_id: id, listen_addr, listen_port } = hop;
  const [agent, listeners] = [told.agentFacts.of(id), told.reports.listenerStates(id)];
  // Before the first heartbeat of a session nothing is known of now.
  const now = listeners !== undefined && listeners.reportedAt >= (agent.session?.at ?? '') ? listeners : undefined;
  return {
    node: { id, name: nameOfNode(told, id) },
    status: statusOf(told, id),
    listener: `${listenerOf(hop).transport} ${formatHostPort({ host: listen_addr, port: listen_port })}`,
    state: stateNow(now, agent, listenerKeyOf(hop)),
    route: routeState(told.fleet, hop, now),
    since: latest(live.at, agent.session?.at, agent.applied?.at),
    apply: applyOf(told, id),
    loss: next === undefined ? null : lossBetween(told, chain, id, next.node_id),
  };
}

const latest = (...times: readonly (string | undefined)[]): string =>
  times.reduce<string>((newest, at) => (at !== undefined && at > newest ? at : newest), '');

/** The state that a hop's route has of its own, by one of the names that the route is chosen by. */
function routeState(fleet: FleetQueries, hop: Hop, states: ListenerStates | undefined): string | null {
  // Hardly any node has such a route.
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

function applyOf({ fleet, agentFacts }: Told, nodeId: string): HopReport['apply'] {
  const { state } = applyState(fleet.generation(nodeId) ?? null, agentFacts.of(nodeId), undefined);
  return state === 'applied' || state === 'rejected' ? state : 'behind';
}

/** The loss that either end reports of the chain's link, if it is worth telling. */
function lossBetween({ fleet, reports }: Told, chain: ChainState, fromId: string, toId: string): number | null {
  const [from, to] = [byResource(reports.lossyLinks(fromId)), byResource(reports.lossyLinks(toId))];
  if (from === undefined && to === undefined) return null;
  const link = fleet.links(fromId).find((one) => one.toNodeId === toId && one.resourceId === chain.id);
  if (link === undefined) return null;
  return (measurement(from, link, 'from') ?? measurement(to, link, 'to'))?.loss_ratio ?? null;
}
