/**
 * The fleet as a picture, grouped by a label or node by node. `src/domain/topology/` draws it; here is what it is drawn from.
 * Implements `docs/contract/rest.md#topology`.
 */
import { z } from 'zod';
import { liveDefinition } from '../../../domain/chain/chain.js';
import { healthStates } from '../../../domain/chain/health.js';
import {
  drawGroups,
  drawNodes,
  type DrawnLink,
  type DrawnNode,
  type Seen,
  type SeenChain,
  type SeenNode,
} from '../../../domain/topology/topology.js';
import { nfc } from '../../../kernel/compare-text.js';
import { ServiceError } from '../../../kernel/errors.js';
import { limits } from '../../../kernel/limits.js';
import { forEach, withPauses } from '../../../kernel/pieces.js';
import { applyState, applyStates } from '../../../reports/apply-state.js';
import { nodeStatuses, statusOf } from '../../../reports/status.js';
import { answers } from '../answers/envelope.js';
import { listInPieces, objectInPieces, sendPieces } from '../answers/streamed-json.js';
import type { RestApp, RestDeps } from '../deps.js';
import { component, documented, sample } from '../schemas/documented.js';
import { labelKeyFilter, text } from '../schemas/fields.js';
import { query } from '../schemas/query.js';
import { idOf, nodeId } from '../schemas/shared-schemas.js';
import { expected } from '../schemas/validation.js';
import { tuning } from '../tuning.js';
import { applyOf } from './node-view.js';

const count = (what: string, example: number) => documented(z.int(), what, example);
const groupValue = z.string().nullable();

const ofLink = {
  chains: count('Number of deployed and enabled chains that run over it', 3),
  state: documented(z.enum(healthStates), 'The worst health of these chains', 'ok'),
  rtt_ms: documented(
    z.number().nullable(),
    'The largest round trip in milliseconds; null where none is measured',
    12.5,
  ),
};

const groupedSchema = component('GroupedTopology', 'The fleet, grouped by a label', {
  groups: documented(
    z.array(
      component('TopologyGroup', 'The nodes with one value of a label', {
        value: documented(groupValue, 'Value of the label; null for nodes without it', 'eu'),
        nodes: count('Number of its nodes', 12),
        by_status: documented(
          z.object({ online: count('Online', 11), offline: count('Offline', 1), pending: count('Pending', 0) }),
          'The same, by status',
        ),
        rejected: count('Those that have rejected their newest generation', 0),
        chains_down: count('Chains over its nodes that are down', 1),
      }),
    ),
    'By value; nodes without the label last',
  ),
  links: documented(
    z.array(
      component('TopologyGroupLink', 'The chains from one group to another', {
        from: documented(groupValue, 'Group that dials', 'eu'),
        to: documented(groupValue, 'Group that is dialled', 'us'),
        ...ofLink,
      }),
    ),
    'Between different groups',
  ),
});

const nodesSchema = component('Topology', 'Nodes of the fleet, and the links between them', {
  nodes: documented(
    z.array(
      component('TopologyNode', 'A node of the picture', {
        id: nodeId,
        name: documented(z.string(), 'Its name', 'edge-1'),
        group: documented(groupValue, 'Value of the label; null without it, or without `group_by`', 'eu'),
        status: documented(z.enum(nodeStatuses), 'As in the list of nodes', 'online'),
        apply: documented(z.enum(applyStates), 'How far the node is with its newest generation', 'applied'),
        chains: documented(
          z.object({ total: count('All', 3), down: count('Those that are down', 0) }),
          'Deployed and enabled chains over it',
        ),
      }),
    ),
    'By name',
  ),
  links: documented(
    z.array(
      component('TopologyLink', 'The chains from one node to another', {
        from_node_id: idOf('Node that dials', sample.entryNode),
        to_node_id: idOf('Node that is dialled', sample.exitNode),
        ...ofLink,
      }),
    ),
    'Between these nodes',
  ),
});

const querystring = query({
  group_by: labelKeyFilter.optional().meta({ description: 'Key of the label to group by', examples: ['region'] }),
  group: text(0, limits.rest.stringChars)
    .overwrite(nfc)
    .optional()
    .meta({
      description: 'Only the nodes with this value of the label, with their direct neighbours; empty: those without it',
      examples: ['eu'],
    }),
  only: z
    .literal('wrong', { error: expected('wrong') })
    .optional()
    .meta({
      description: 'Only what is not online, has rejected its configuration, or is on a chain that is down or degraded',
    }),
});

export function topologyRoutes(app: RestApp, deps: RestDeps): void {
  app.get('/api/topology', {
    config: { access: 'anyone', takes: 'none' },
    schema: {
      operationId: 'getTopology',
      summary: 'Get the fleet as a picture: groups of nodes, or nodes, and the links between them',
      description: `With \`group_by\`: the groups. With \`group\` too: its nodes, their direct neighbours, and the links among these. Without both: all nodes, at most ${limits.rest.topologyNodes}. Links are those of deployed and enabled L4 chains, in the direction of traffic.`,
      querystring,
      response: answers(
        z.union([groupedSchema, nodesSchema]).meta({ description: 'Groups, or nodes, and the links between them' }),
      ),
    },
    handler: async (request, reply) => {
      const { group_by: key, group, only } = request.query;
      if (key === undefined && group !== undefined) {
        throw new ServiceError('invalid_request', 'group: expected together with group_by');
      }
      await deps.counts.now();
      const seen = await withPauses(look(deps, key, only === 'wrong'));
      if (key !== undefined && group === undefined) {
        return sendPieces(reply, objectInPieces(await withPauses(drawGroups(seen))));
      }
      const asked = key === undefined ? undefined : group === '' ? null : group;
      const { nodes, links } = await withPauses(drawNodes(seen, asked));
      if (key === undefined && nodes.length > limits.rest.topologyNodes) {
        const message = `group_by: required for more than ${limits.rest.topologyNodes} nodes, expected the key of a label`;
        throw new ServiceError('invalid_request', message);
      }
      return sendPieces(reply, partInPieces(deps, nodes, links));
    },
  });
}

async function* partInPieces(
  deps: RestDeps,
  nodes: readonly DrawnNode[],
  links: readonly DrawnLink<string>[],
): AsyncGenerator<string, void> {
  yield '{"nodes":';
  yield* listInPieces(nodes, (slice) =>
    slice.map(({ id, name, group, status, chains }) => {
      return { id, name, group, status, apply: applyOf(deps, id).state, chains };
    }),
  );
  yield ',"links":';
  yield* listInPieces(links, (slice) =>
    slice.map(({ from, to, ...link }) => ({ from_node_id: from, to_node_id: to, ...link })),
  );
  yield '}';
}

/** @param groupBy undefined: all nodes are in the group null */
function* look(deps: RestDeps, groupBy: string | undefined, onlyWrong: boolean): Generator<void, Seen> {
  const nodes: SeenNode[] = [];
  yield* forEach(deps.fleet.allNodes(), tuning.nodesPerTurn, ({ id, name }) => {
    const labels = deps.fleet.node(id)?.labels ?? {};
    const group = groupBy !== undefined && Object.hasOwn(labels, groupBy) ? labels[groupBy] || null : null;
    const { state } = applyState(deps.fleet.generation(id) ?? null, deps.agentFacts.of(id), undefined);
    nodes.push({ id, name, group, status: statusOf(deps, id), isRejected: state === 'rejected' });
  });
  const chains: SeenChain[] = [];
  yield* forEach(deps.fleet.chains(), tuning.chainsPerTurn, (chain) => {
    const ids = liveDefinition(chain)?.hops.map(({ node_id }) => node_id);
    if (ids === undefined) return;
    const roundTrips = ids.slice(1).map((to, index) => roundTrip(deps, chain.id, ids[index] ?? '', to));
    chains.push({ state: deps.counts.chainHealth(chain.id) ?? 'unknown', nodes: ids, roundTrips });
  });
  return { nodes, chains, onlyWrong };
}

/** As the node that dials measured it, or else the one that is dialled; the former need not know the node of its peer. */
function roundTrip({ reports }: RestDeps, chainId: string, from: string, to: string): number | null {
  const longest = (nodeId: string, ...peers: readonly string[]): number | null => {
    let longestMs: number | null = null;
    for (const [resourceId, ms, peer] of reports.roundTrips(nodeId)) {
      if (resourceId === chainId && peers.includes(peer)) longestMs = Math.max(longestMs ?? 0, ms);
    }
    return longestMs;
  };
  return longest(from, to, '') ?? longest(to, from);
}
