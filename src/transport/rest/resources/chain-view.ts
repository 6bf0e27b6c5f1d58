/**
 * An L4 chain in answers: its definition, what agents report of the deployed one, and its health (`src/reports/status.ts`).
 * Implements `docs/contract/rest.md#l4-chains`, and `listeners` and `hop_status` of `docs/contract/rest.md#nodes`.
 */
import { z } from 'zod';
import { chainStatuses, liveDefinition, type ChainState, type Hop } from '../../../domain/chain/chain.js';
import { healthStates } from '../../../domain/chain/health.js';
import { chainStatus } from '../../../domain/chain/status.js';
import { listenerOf } from '../../../domain/chain/transports.js';
import { missing } from '../../../reports/listener-states.js';
import { reportedKey } from '../../../reports/listener-table.js';
import { healthOf, hopState, listenerKeyOf, nameOfNode, statusOf } from '../../../reports/status.js';
import { chainShape } from './chain-schema.js';
import type { RestDeps } from '../deps.js';
import { listenersShown, shownListeners } from '../fleet/listener-states.js';
import { nodeStatus } from '../fleet/node-status.js';
import { resourceSchema } from './resource-shape.js';
import { component, documented, sample } from '../schemas/documented.js';
import type { Shown } from '../answers/envelope.js';
import { idOf, nodeId, time } from '../schemas/shared-schemas.js';

const hopStatus = component('HopStatus', 'A hop with the report of its agent', {
  node_id: nodeId,
  node_name: documented(z.string(), 'Its name', 'edge-1'),
  listen_addr: documented(z.string(), 'Where the hop listens', '0.0.0.0'),
  listen_port: documented(z.int(), 'Its port', 443),
  deployed: documented(z.boolean(), 'Whether the hop is deployed; false if only the draft has it', true),
  status: nodeStatus,
  state: documented(
    z.string().nullable(),
    `The state of the hop's route in the last report, such as \`target_unreachable\`, else that of its listener, or \`${missing}\` if the report lacks it. Null without a report since the last apply, for a hop that is not deployed, and for a disabled chain`,
    'running',
  ),
  stale: documented(z.boolean(), 'Whether the node is offline, so that the state may be out of date', false),
  reported_at: documented(time.nullable(), 'When the last heartbeat came; null before the first', sample.later),
});

const healthSchema = component('ChainHealth', 'Whether a chain works, and why not', {
  state: documented(
    z.enum(healthStates),
    'Health of the deployed definition, from the reports of agents: the worst of its hops, in the order `down`, `degraded`, `unknown`, `ok`',
    'ok',
  ),
  reasons: documented(z.array(z.string()), 'Why it is not `ok`, worst first', []),
});

export const chainSchema = resourceSchema('L4Chain', 'An L4 chain', chainShape, {
  id: idOf('Id, a UUID', sample.chain),
  hop_status: documented(
    z.array(hopStatus),
    'The deployed hops in order, then those that only the draft has, by node, address and port',
  ),
  listeners: documented(shownListeners, 'Listeners of all hops; null also while the chain is not deployed'),
  status: documented(
    z.enum(chainStatuses),
    '`draft` was never deployed, `modified` differs from what is deployed',
    'deployed',
  ),
  health: healthSchema,
  traffic: documented(
    component('ChainTraffic', 'The traffic of a chain now', {
      bytes_per_sec: documented(z.number(), 'Bytes a second, in and out together', 184_320.5),
      sessions_per_min: documented(z.number(), 'New sessions a minute', 12),
    }).nullable(),
    "At the first hop's listener, over the last five minutes or between its last two reports; null before two, while the chain is not deployed, and once nothing was reported for longer",
  ),
  deployed_version: documented(z.int().nullable(), 'Deployed version; null before the first deploy', 2),
  deployed_at: documented(time.nullable(), 'When it was last deployed', sample.later),
});

/** A chain as answers show it; the schema leaves out the deployed definition. */
export type ChainView = ChainState & Shown<typeof chainSchema>;

export function chainView(deps: RestDeps, chain: ChainState): ChainView {
  const live = liveHops(chain);
  const [first] = live;
  return {
    ...chain,
    managed_by: chain.managed_by ?? null,
    hop_status: hopStatuses(deps, chain),
    listeners: listenersShown(
      deps,
      live.map((hop) => ({ nodeId: hop.node_id, keys: [listenerKeyOf(hop)] })),
    ),
    status: chainStatus(chain),
    health: healthOf(deps, chain),
    traffic: first === undefined ? null : deps.reports.listenerRate(first.node_id, reportedKey(listenerOf(first))),
    deployed_version: chain.deployed?.chain_version ?? null,
    deployed_at: chain.deployed?.at ?? null,
  };
}

function hopStatuses(deps: RestDeps, chain: ChainState): ChainView['hop_status'] {
  const status = (hop: Hop, deployed: boolean): ChainView['hop_status'][number] => {
    const { node_id, listen_addr, listen_port } = hop;
    const known = statusOf(deps, node_id);
    return {
      node_id,
      node_name: nameOfNode(deps, node_id),
      listen_addr,
      listen_port,
      deployed,
      status: known,
      state: deployed && chain.enabled ? hopState(deps, hop) : null,
      stale: known !== 'online',
      reported_at: deps.reports.listenerStates(node_id)?.reportedAt ?? null,
    };
  };
  const deployed = chain.deployed?.hops ?? [];
  const drafted = chain.hops.filter((hop) => !deployed.some((one) => samePlace(one, hop)));
  return [...deployed.map((hop) => status(hop, true)), ...drafted.map((hop) => status(hop, false))];
}

const samePlace = (a: Hop, b: Hop): boolean =>
  a.node_id === b.node_id && a.listen_addr === b.listen_addr && a.listen_port === b.listen_port;

/** The keys of a deployed chain's listeners on a node. */
export function listenersOn(chain: ChainState, nodeId: string): readonly string[] {
  return liveHops(chain)
    .filter(({ node_id }) => node_id === nodeId)
    .map(listenerKeyOf);
}

const liveHops = (chain: ChainState): readonly Hop[] => liveDefinition(chain)?.hops ?? [];
