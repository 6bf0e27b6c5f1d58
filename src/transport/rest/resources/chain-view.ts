/**
 * An L4 chain as answers show it: its definition beside what agents report of the deployed one, with its health, which
 * `src/reports/status.ts` works out. Implements `docs/contract/rest.md#nodes`, `listeners` and `hop_status`, and
 * `docs/contract/rest.md#l4-chains`.
 */
import { z } from 'zod';
import type { ChainState, Hop } from '../../../domain/chain/chain.js';
import { chainStatuses, liveDefinition } from '../../../domain/chain/chain.js';
import type { ChainHealth } from '../../../domain/chain/health.js';
import { healthStates } from '../../../domain/chain/health.js';
import { chainStatus } from '../../../domain/chain/status.js';
import { missing } from '../../../reports/listener-states.js';
import { healthOf, hopState, listenerKeyOf, nameOfNode, statusOf } from '../../../reports/status.js';
import { chainShape } from './chain-schema.js';
import type { RestDeps } from '../deps.js';
import type { ShownListeners } from '../fleet/listener-states.js';
import { listenersShown, shownListeners } from '../fleet/listener-states.js';
import { nodeStatus } from '../fleet/node-status.js';
import { resourceSchema } from './resource-shape.js';
import { documented, sample } from '../schemas/documented.js';
import { idOf, nodeId, time } from '../schemas/shared-schemas.js';

const hopStatus = z
  .object({
    node_id: nodeId,
    node_name: documented(z.string(), 'Its name', 'edge-1'),
    listen_addr: documented(z.string(), 'Where the hop listens', '0.0.0.0'),
    listen_port: documented(z.int(), 'Its port', 443),
    deployed: documented(z.boolean(), 'Whether the hop is deployed; false for one that only the draft has', true),
    status: nodeStatus,
    state: documented(
      z.string().nullable(),
      `What the agent last reported of the hop: its route's own state, such as \`target_unreachable\`, else its listener's, \`${missing}\` if it reported others only. Null before a report, while it is older than the last apply, for a hop that is not deployed, and of a disabled chain`,
      'running',
    ),
    stale: documented(z.boolean(), 'The node is not online: this is what its agent said last', false),
    reported_at: documented(time.nullable(), 'When the last heartbeat came; null before one', sample.later),
  })
  .meta({ id: 'HopStatus', description: 'A hop, and what the agent of its node reports of it' });

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
  hop_status: documented(
    z.array(hopStatus),
    'The deployed hops in their order, then those that only the draft has, by node, address and port',
  ),
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

export function chainView(deps: RestDeps, chain: ChainState): ChainView {
  const live = liveHops(chain);
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

/** The listeners that a chain has on a node as it is deployed, as `listenerKey` names them. */
export function listenersOn(chain: ChainState, nodeId: string): readonly string[] {
  return liveHops(chain)
    .filter(({ node_id }) => node_id === nodeId)
    .map(listenerKeyOf);
}

const liveHops = (chain: ChainState): readonly Hop[] => liveDefinition(chain)?.hops ?? [];
