/**
 * The health of chains and upstreams, from the committed fleet and what its agents reported. Brings both together for the
 * rules of `domain/chain/health.ts` and `domain/upstream/health.ts`; `fleet-reports.ts` reads the reports. Implements
 * `docs/contract/domain.md#health-of-a-chain`.
 */
import { tellsOfApplied } from '../../../domain/agents/node-agent-facts.js';
import type { ChainState, DeployedDefinition, Hop } from '../../../domain/chain/chain.js';
import { liveDefinition, upstreamOf } from '../../../domain/chain/chain.js';
import type { ChainHealth, DeployedUpstream, Fault, HopReport } from '../../../domain/chain/health.js';
import { chainFaults, healthOfFaults, healthWithoutDeploy } from '../../../domain/chain/health.js';
import { listenerOf } from '../../../domain/chain/transports.js';
import { listenerKey } from '../../../domain/port-table/port-table.js';
import { seenUpstream, upstreamStatus } from '../../../domain/upstream/health.js';
import type { UpstreamStatus } from '../../../domain/upstream/health.js';
import { yieldToEventLoop } from '../../../kernel/background.js';
import { formatHostPort } from '../../../kernel/host-port.js';
import type { FleetQueries } from '../../../projections/port.js';
import type { RestDeps } from '../deps.js';
import { applyState } from './apply-state.js';
import type { FleetReports, NodeReport } from './fleet-reports.js';
import { measurement } from './link-measurements.js';
import type { ListenerStates } from './listener-states.js';
import { stateNow } from './listener-states.js';
import { statusOf } from './node-status.js';
import type { NodeStatus } from './node-status.js';
import { tuning } from '../tuning.js';

/** The reports of the nodes that are asked about, and which of them are online. */
export type Reports = Pick<FleetReports, 'nodes'> & { readonly online: { has(nodeId: string): boolean } };

type Deps = Pick<RestDeps, 'clock'> & { readonly fleet: FleetQueries };

export const listenerKeyOf = (hop: Hop): string => listenerKey(listenerOf(hop));

export const nameOfNode = ({ fleet }: Pick<Deps, 'fleet'>, id: string): string => fleet.node(id)?.name ?? id;

export function statusIn({ nodes, online }: Reports, id: string): NodeStatus {
  return statusOf(online.has(id), nodes.get(id)?.agent);
}

/** @param reports of all nodes of the deployed definition */
export function healthOf(deps: Deps, chain: ChainState, reports: Reports): ChainHealth {
  const live = liveDefinition(chain);
  return live === null ? healthWithoutDeploy(chain) : healthOfFaults(faultsOf(deps, chain, live, reports));
}

/** What is wrong with a chain that is deployed and enabled, as of `chainFaults`. */
export function faultsOf(deps: Deps, chain: ChainState, live: DeployedDefinition, reports: Reports): readonly Fault[] {
  const hops = live.hops.map((hop, index) =>
    hopReport(deps, chain, { live, hop, next: live.hops[index + 1] }, reports),
  );
  return chainFaults(hops, deployedUpstream(deps, live, reports));
}

/** The state of a deployed hop: its route's where that has one of its own, else its listener's; null as of `stateNow`. */
export function hopState({ fleet }: Pick<Deps, 'fleet'>, hop: Hop, states: ListenerStates | undefined): string | null {
  const state = stateNow(states, listenerKeyOf(hop));
  return state === 'running' ? (routeState(fleet, hop, states) ?? state) : state;
}

/** The nodes that dial an upstream: the last hops of the chains that are deployed with it. */
export function diallersOf(fleet: FleetQueries, upstreamId: string): ReadonlySet<string> {
  return new Set(liveWith(fleet, upstreamId).flatMap(({ hops }) => hops.at(-1)?.node_id ?? []));
}

/** @param reports of the nodes that dial it; others say nothing about it */
export function statusOfUpstream(deps: Deps, upstreamId: string, reports: Reports): UpstreamStatus {
  return upstreamStatus(liveWith(deps.fleet, upstreamId).flatMap((live) => seenWhereOnline(deps, live, reports)));
}

/** The statuses of all upstreams that a chain is deployed with, by id. Others are unknown. */
export async function statusesOfUpstreams(deps: Deps, reports: Reports): Promise<ReadonlyMap<string, UpstreamStatus>> {
  const statuses = new Map<string, UpstreamStatus>();
  let looked = 0;
  for (const chain of deps.fleet.chains()) {
    if ((looked += 1) % tuning.chainsPerTurn === 0) await yieldToEventLoop();
    const live = liveDefinition(chain);
    const id = live === null ? undefined : upstreamOf(live);
    if (live === null || id === undefined || statuses.get(id) === 'unhealthy') continue;
    const status = upstreamStatus(seenWhereOnline(deps, live, reports));
    if (status !== 'unknown' || !statuses.has(id)) statuses.set(id, status);
  }
  return statuses;
}

/** The definitions that nodes run with an upstream. */
function liveWith(fleet: FleetQueries, upstreamId: string): readonly DeployedDefinition[] {
  const live = fleet.chainsWith(upstreamId).map(liveDefinition);
  return live.filter((definition) => definition !== null).filter((definition) => upstreamOf(definition) === upstreamId);
}

/** How the node that dials the upstream of a definition sees it, while it is online. */
function seenWhereOnline(deps: Deps, live: DeployedDefinition, reports: Reports): readonly DeployedUpstream['seen'][] {
  const dialler = live.hops.at(-1)?.node_id ?? '';
  const upstream = reports.online.has(dialler) ? deployedUpstream(deps, live, reports) : undefined;
  return upstream === undefined ? [] : [upstream.seen];
}

function deployedUpstream(
  { fleet, clock }: Deps,
  live: DeployedDefinition,
  { nodes }: Reports,
): DeployedUpstream | undefined {
  const upstreamId = upstreamOf(live);
  const upstream = upstreamId === undefined ? undefined : fleet.upstream(upstreamId);
  const dialler = live.hops.at(-1)?.node_id;
  if (upstream === undefined || dialler === undefined) return undefined;
  const { agent, upstreams } = nodes.get(dialler) ?? {};
  const seen = seenUpstream({
    metrics: upstreams && {
      at: upstreams.at,
      current: tellsOfApplied(upstreams.runs, agent),
      healthy: upstreams.healthy.get(upstream.id),
    },
    sessionAt: agent?.session?.at,
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

function hopReport(deps: Deps, chain: ChainState, { live, hop, next }: HopInChain, reports: Reports): HopReport {
  const { node_id: id, listen_addr, listen_port } = hop;
  const report = reports.nodes.get(id);
  const { agent, listeners } = report ?? {};
  // Before the first heartbeat of a session nothing is known of now.
  const told = listeners !== undefined && listeners.reportedAt >= (agent?.session?.at ?? '') ? listeners : undefined;
  return {
    node: { id, name: nameOfNode(deps, id) },
    status: statusIn(reports, id),
    listener: `${listenerOf(hop).transport} ${formatHostPort({ host: listen_addr, port: listen_port })}`,
    state: stateNow(told, listenerKeyOf(hop)),
    route: routeState(deps.fleet, hop, told),
    since: latest(live.at, agent?.session?.at, agent?.applied?.at),
    apply: applyOf(deps, id, report),
    loss: next === undefined ? null : lossBetween(deps, chain, id, next.node_id, reports),
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

function applyOf({ fleet }: Deps, nodeId: string, report: NodeReport | undefined): HopReport['apply'] {
  if (report?.agent === undefined) return 'behind';
  const { state } = applyState(fleet.generation(nodeId) ?? null, report.agent, undefined);
  return state === 'applied' || state === 'rejected' ? state : 'behind';
}

/** The loss that either end reports of the chain's link, if it is worth telling. */
function lossBetween(
  { fleet }: Deps,
  chain: ChainState,
  fromId: string,
  toId: string,
  reports: Reports,
): number | null {
  const [from, to] = [reports.nodes.get(fromId)?.lossy, reports.nodes.get(toId)?.lossy];
  if (from === undefined && to === undefined) return null;
  const link = fleet.links(fromId).find((one) => one.toNodeId === toId && one.resourceId === chain.id);
  if (link === undefined) return null;
  return (measurement(from, link, 'from') ?? measurement(to, link, 'to'))?.loss_ratio ?? null;
}
