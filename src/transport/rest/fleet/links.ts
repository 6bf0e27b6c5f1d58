/**
 * The links between nodes that the configuration intends, with the measurements of the agent at one end. Implements
 * `docs/contract/rest.md#nodes`, `GET /api/nodes/links`.
 */
import { z } from 'zod';
import type { IntendedLink } from '../../../domain/port-table/intended-links.js';
import { originTypes } from '../../../domain/snapshot/snapshot.js';
import { byResource, measurement, type Measured, type NodeSamples } from '../../../reports/link-samples.js';
import type { RestApp, RestDeps } from '../deps.js';
import { definitionsOf, nodesOf } from '../../../domain/chain/chain.js';
import { answers, ok, type Shown } from '../answers/envelope.js';
import { orNotFound, pathId } from '../checks/path-id.js';
import { listInPieces, sendPieces } from '../answers/streamed-json.js';
import { component, documented, sample } from '../schemas/documented.js';
import { idOf, time } from '../schemas/shared-schemas.js';

const measured = {
  rtt_ms: documented(z.number().nullable(), 'Round trip in milliseconds', 12.5),
  jitter_ms: documented(z.number().nullable(), 'Jitter in milliseconds', 0.8),
  loss_ratio: documented(z.number().nullable(), 'Lost share, 0 to 1', 0),
  bytes_in: documented(z.int().nullable(), 'Bytes from `to_node_id`', 1_048_576),
  bytes_out: documented(z.int().nullable(), 'Bytes to `to_node_id`', 524_288),
  measured_at: documented(time.nullable(), 'When an agent reported this; null if none did', sample.later),
};
const unmeasured: Measured = {
  rtt_ms: null,
  jitter_ms: null,
  loss_ratio: null,
  bytes_in: null,
  bytes_out: null,
  measured_at: null,
};

const linkSchema = component('NodeLink', 'An intended link between two nodes, with measurements', {
  from_node_id: idOf('Node that dials', sample.entryNode),
  to_node_id: idOf('Node that is dialled', sample.exitNode),
  kind: documented(z.enum(originTypes), 'Type of the resource that needs the link', 'l4_chain'),
  resource_id: idOf('Its id', sample.chain),
  ...measured,
});
const linksSchema = z
  .object({ items: documented(z.array(linkSchema), 'The links') })
  .meta({ description: 'The links' });
type LinkView = Shown<typeof linkSchema>;

export function linkRoutes(app: RestApp, deps: RestDeps): void {
  app.get('/api/nodes/links', {
    config: { access: 'anyone', takes: 'none' },
    schema: {
      operationId: 'listNodeLinks',
      summary: 'List the links between nodes, with measurements',
      description:
        'One entry for each link that the configuration intends, not paged. Figures that no agent has measured are null.',
      response: answers(linksSchema),
    },
    handler: async (_request, reply) => sendPieces(reply, linkPieces(deps)),
  });

  app.get('/api/l4-chains/:id/links', {
    config: { access: 'anyone', takes: 'none' },
    schema: {
      operationId: 'listLinksOfL4Chain',
      summary: 'List the links of an L4 chain, with measurements',
      description: 'Those of its current and its deployed definition, by the node that dials.',
      response: answers(linksSchema),
    },
    handler: async (request) => {
      const chain = orNotFound(deps.fleet.chain(pathId(request.params, 'L4 chain')), 'L4 chain');
      const links = nodesOf(...definitionsOf(chain)).flatMap((id) => deps.fleet.links(id));
      const own = links.filter(({ resourceId }) => resourceId === chain.id);
      return ok({ items: withMeasurements(deps, own) });
    },
  });

  app.get('/api/nodes/:id/links', {
    config: { access: 'anyone', takes: 'none' },
    schema: {
      operationId: 'listLinksOfNode',
      summary: 'List the links of a node, with measurements',
      description: 'Those that it dials, then those on which it is dialled.',
      response: answers(linksSchema),
    },
    handler: async (request) => {
      const { id } = orNotFound(deps.fleet.node(pathId(request.params, 'node')), 'node');
      return ok({ items: withMeasurements(deps, deps.fleet.linksOfNode(id)) });
    },
  });
}

async function* linkPieces(deps: RestDeps): AsyncGenerator<string, void> {
  yield '{"items":';
  yield* listInPieces(deps.fleet.allNodes(), (slice) =>
    withMeasurements(
      deps,
      slice.flatMap(({ id }) => deps.fleet.links(id)),
    ),
  );
  yield '}';
}

function withMeasurements({ reports }: RestDeps, links: readonly IntendedLink[]): readonly LinkView[] {
  const samples = new Map<string, NodeSamples | undefined>();
  const samplesOf = (nodeId: string): NodeSamples | undefined => {
    if (!samples.has(nodeId)) samples.set(nodeId, byResource(reports.links(nodeId)));
    return samples.get(nodeId);
  };
  return links.map((link) => ({
    from_node_id: link.fromNodeId,
    to_node_id: link.toNodeId,
    kind: link.kind,
    resource_id: link.resourceId,
    // Usually the node that dials has measured the link; otherwise the other end may have.
    ...(measurement(samplesOf(link.fromNodeId), link, 'from') ??
      measurement(samplesOf(link.toNodeId), link, 'to') ??
      unmeasured),
  }));
}
