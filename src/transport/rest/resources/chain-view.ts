/**
 * An L4 chain as answers show it: its definition beside what agents report of the deployed one, with its health.
 * `domain/chain/health.ts` judges the reports. Implements `docs/contract/rest.md#nodes`, `listeners` and `hop_status`,
 * and `docs/contract/rest.md#l4-chains`.
 */
import { z } from 'zod';
import type { ChainState, Hop } from '../../../domain/chain/chain.js';
import { chainStatuses, definitionsOf, liveDefinition, nodesOf, upstreamOf } from '../../../domain/chain/chain.js';
import type { ChainHealth, HopReport } from '../../../domain/chain/health.js';
import { chainHealth, healthStates } from '../../../domain/chain/health.js';
import { chainStatus } from '../../../domain/chain/status.js';
import { listenerOf } from '../../../domain/chain/transports.js';
import { listenerKey } from '../../../domain/port-table/port-table.js';
import { formatHostPort } from '../../../kernel/host-port.js';
import { applyState } from '../fleet/apply-state.js';
import { chainShape } from './chain-schema.js';
import type { RestDeps } from '../deps.js';
import type { FleetReports, NodeReport } from '../fleet/fleet-reports.js';
import { readReports } from '../fleet/fleet-reports.js';
import { measurement } from '../fleet/link-measurements.js';
import type { ShownListeners } from '../fleet/listener-states.js';
import { listenersShown, missing, shownListeners, stateOf } from '../fleet/listener-states.js';
import { nodeStatus } from '../fleet/node-status.js';
import type { NodeStatus } from '../fleet/node-status.js';
import { presencesOf, statusOf } from '../fleet/node-status.js';
import { resourceSchema } from './resource-shape.js';
import { documented, sample } from '../openapi/openapi-text.js';
import { idOf, nodeId, time } from '../schemas/shared-schemas.js';

const hopStatus = z
  .object({
    node_id: nodeId,
    node_name: documented(z.string(), 'Its name', 'edge-1'),
    status: nodeStatus,
    state: documented(
      z.string().nullable(),
      `What the agent last reported of the listener that the chain has there as it is deployed, \`${missing}\` if it reported others only; null before a report, and where nothing of the chain is deployed`,
      'running',
    ),
    reported_at: documented(time.nullable(), 'When the last heartbeat came; null before one', sample.later),
  })
  .meta({ id: 'HopStatus', description: 'The node of a hop, and what its agent reports of the chain' });

const healthSchema = z
  .object({
    state: documented(
      z.enum(healthStates),
      'Of what is deployed, by what agents report; the worst of its hops counts: `down`, `degraded`, `unknown`, `ok`',
      'ok',
    ),
    reasons: documented(z.array(z.string()), 'Sentences, those of the worst state first; none when all is well', []),
  })
  .meta({ id: 'ChainHealth', description: 'Whether a chain works, and why not' });

export const chainSchema = resourceSchema('L4Chain', 'An L4 chain', chainShape, {
  id: idOf('Id, a UUID', sample.chain),
  hop_status: documented(z.array(hopStatus), 'One for each of `hops`, in their order'),
  listeners: documented(shownListeners, 'Of all hops; null also while nothing of the chain is deployed'),
  status: documented(
    z.enum(chainStatuses),
    '`draft` was never deployed, `modified` differs from what is deployed',
    'deployed',
  ),
  health: healthSchema,
  deployed_version: documented(z.int().nullable(), 'Version that is deployed; null before the first deploy', 2),
  deployed_at: documented(time.nullable(), 'When it was deployed last', sample.later),
});

/** A chain as answers show it; the schema leaves out the deployed definition. */
export interface ChainView extends ChainState {
  readonly hop_status: readonly z.output<typeof hopStatus>[];
  readonly listeners: ShownListeners;
  readonly status: (typeof chainStatuses)[number];
  readonly health: ChainHealth;
  readonly deployed_version: number | null;
  readonly deployed_at: string | null;
}

/** The reports of the nodes of chains, and which of them are online. */
type Reports = Pick<FleetReports, 'nodes'> & { readonly online: { has(nodeId: string): boolean } };

/** Views of several chains, with one read of the reports of all their nodes. @throws ServiceError `unavailable` */
export async function chainViews(deps: RestDeps, chains: readonly ChainState[]): Promise<ChainView[]> {
  const [online, nodes] = await Promise.all([deps.telemetry.online(), reportsOf(deps, chains)]);
  return chains.map((chain) => chainView(deps, chain, { online, nodes }));
}

/** The view of one chain. @throws ServiceError `unavailable` */
export async function oneChainView(deps: RestDeps, chain: ChainState): Promise<ChainView> {
  const ids = nodesOf(...definitionsOf(chain));
  const [online, nodes] = await Promise.all([presencesOf(deps, ids), reportsOf(deps, [chain])]);
  return chainView(deps, chain, { online, nodes });
}

function reportsOf(deps: RestDeps, chains: readonly ChainState[]): Promise<FleetReports['nodes']> {
  return readReports(deps, nodesOf(...chains.flatMap(definitionsOf)), { links: true });
}

/** The view of a chain, made from the reports of all its nodes. */
export function chainView(deps: RestDeps, chain: ChainState, reports: Reports): ChainView {
  const live = liveHops(chain);
  return {
    ...chain,
    managed_by: chain.managed_by ?? null,
    hop_status: chain.hops.map(({ node_id }) => {
      const states = reports.nodes.get(node_id)?.listeners;
      const hop = live.find((one) => one.node_id === node_id);
      return {
        node_id,
        node_name: nameOf(deps, node_id),
        status: statusIn(reports, node_id),
        state: states === undefined || hop === undefined ? null : (stateOf(states, keyOf(hop)) ?? missing),
        reported_at: states?.reportedAt ?? null,
      };
    }),
    listeners: listenersShown(
      live.map((hop) => ({ keys: [keyOf(hop)], states: reports.nodes.get(hop.node_id)?.listeners })),
    ),
    status: chainStatus(chain),
    health: healthOf(deps, chain, reports),
    deployed_version: chain.deployed?.chain_version ?? null,
    deployed_at: chain.deployed?.at ?? null,
  };
}

/** The health of a chain, made from the reports of all its nodes. */
export function healthOf(deps: RestDeps, chain: ChainState, reports: Reports): ChainHealth {
  const live = liveHops(chain);
  const upstreamId = chain.deployed === null ? undefined : upstreamOf(chain.deployed);
  const upstream = upstreamId === undefined ? undefined : deps.fleet.upstream(upstreamId);
  const dialler = reports.nodes.get(live.at(-1)?.node_id ?? '');
  return chainHealth(
    chain,
    live.map((hop, index) => hopReport(deps, chain, hop, live[index + 1], reports)),
    upstream && { ...upstream, unhealthy: dialler?.unhealthy.has(upstream.id) ?? false },
  );
}

/** The listeners that a chain has on a node as it is deployed, as `listenerKey` names them. */
export function listenersOn(chain: ChainState, nodeId: string): readonly string[] {
  return liveHops(chain)
    .filter(({ node_id }) => node_id === nodeId)
    .map(keyOf);
}

const liveHops = (chain: ChainState): readonly Hop[] => liveDefinition(chain)?.hops ?? [];

const keyOf = (hop: Hop): string => listenerKey(listenerOf(hop));

const nameOf = ({ fleet }: RestDeps, id: string): string => fleet.node(id)?.name ?? id;

function statusIn({ nodes, online }: Reports, id: string): NodeStatus {
  return statusOf(online.has(id), nodes.get(id)?.agent);
}

function hopReport(deps: RestDeps, chain: ChainState, hop: Hop, next: Hop | undefined, reports: Reports): HopReport {
  const { node_id: id, listen_addr, listen_port } = hop;
  const report = reports.nodes.get(id);
  return {
    nodeName: nameOf(deps, id),
    status: statusIn(reports, id),
    listener: `${listenerOf(hop).transport} ${formatHostPort({ host: listen_addr, port: listen_port })}`,
    state: stateNow(report, keyOf(hop)),
    apply: applyOf(deps, id, report),
    loss: next === undefined ? null : lossBetween(deps, chain, id, next.node_id, reports),
  };
}

/**
 * The present state of a listener: unknown before the session's first heartbeat, and for a listener missing in the last
 * one if the agent has applied a snapshot since.
 */
function stateNow(report: NodeReport | undefined, key: string): string | null {
  const { agent, listeners } = report ?? {};
  if (listeners === undefined || listeners.reportedAt < (agent?.session?.at ?? '')) return null;
  const state = stateOf(listeners, key);
  if (state === undefined && listeners.reportedAt < (agent?.applied?.at ?? '')) return null;
  return state ?? missing;
}

function applyOf(deps: RestDeps, nodeId: string, report: NodeReport | undefined): HopReport['apply'] {
  if (report?.agent === undefined) return 'behind';
  const { state } = applyState(deps.fleet.generation(nodeId) ?? null, report.agent, undefined);
  return state === 'applied' || state === 'rejected' ? state : 'behind';
}

/** The loss that either end reports of the chain's link, if it is worth telling. */
function lossBetween(deps: RestDeps, chain: ChainState, fromId: string, toId: string, reports: Reports): number | null {
  const [from, to] = [reports.nodes.get(fromId)?.lossy, reports.nodes.get(toId)?.lossy];
  if (from === undefined && to === undefined) return null;
  const link = deps.fleet.links(fromId).find((one) => one.toNodeId === toId && one.resourceId === chain.id);
  if (link === undefined) return null;
  return (measurement(from, link, 'from') ?? measurement(to, link, 'to'))?.loss_ratio ?? null;
}
