/**
 * The links between nodes that chains, routes and networks intend, each with the measurements of an agent at one end.
 * Implements `docs/contract/rest.md#nodes`, `GET /api/nodes/links`.
 */
import { z } from 'zod';
import type { IntendedLink } from '../../../domain/port-table/intended-links.js';
import { originTypes } from '../../../domain/snapshot/snapshot.js';
import type { RestApp, RestDeps } from '../deps.js';
import { definitionsOf, nodesOf } from '../../../domain/chain/chain.js';
import { answers, ok } from '../answers/envelope.js';
import { idParams, orNotFound, pathId } from '../checks/path-id.js';
import { readHeaders } from '../schemas/headers.js';
import type { NodeSamples } from './link-measurements.js';
import { byResource, measured, measurement, unmeasured } from './link-measurements.js';
import { listInPieces, sendPieces } from '../answers/streamed-json.js';
import { noQuery } from '../schemas/query.js';
import { documented, sample } from '../openapi/openapi-text.js';
import { idOf } from '../schemas/shared-schemas.js';

const linkSchema = z
  .object({
    from_node_id: idOf('Node that dials', sample.entryNode),
    to_node_id: idOf('Node that is dialled', sample.exitNode),
    kind: documented(z.enum(originTypes), 'Type of the resource that needs the link', 'l4_chain'),
    resource_id: idOf('Its id', sample.chain),
    ...measured,
  })
  .meta({ id: 'NodeLink', description: 'A link that the configuration intends, and what agents have measured of it' });
const linksSchema = z
  .object({ items: documented(z.array(linkSchema), 'The links') })
  .meta({ description: 'The links' });
type LinkView = z.output<typeof linkSchema>;

export function linkRoutes(app: RestApp, deps: RestDeps): void {
  app.route({
    method: 'GET',
    url: '/api/nodes/links',
    config: { access: 'anyone', takes: 'none' },
    schema: {
      operationId: 'listNodeLinks',
      summary: 'The links between nodes, with what agents have measured of them',
      description:
        'One entry for each link that the configuration intends, not paged. What no agent has measured is null.',
      tags: ['nodes'],
      querystring: noQuery,
      headers: readHeaders,
      response: answers(linksSchema),
    },
    handler: async (_request, reply) => sendPieces(reply, linkPieces(deps)),
  });

  app.route({
    method: 'GET',
    url: '/api/l4-chains/:id/links',
    config: { access: 'anyone', takes: 'none' },
    schema: {
      operationId: 'listLinksOfL4Chain',
      summary: 'The links between the nodes of an L4 chain, with what agents have measured of them',
      description: 'Those of its current and of its deployed definition, by the node that dials.',
      tags: ['l4-chains'],
      params: idParams,
      querystring: noQuery,
      headers: readHeaders,
      response: answers(linksSchema),
    },
    handler: async (request) => {
      const chain = orNotFound(deps.fleet.chain(pathId(request.params, 'L4 chain')), 'L4 chain');
      const links = nodesOf(...definitionsOf(chain)).flatMap((id) => deps.fleet.links(id));
      const own = links.filter(({ resourceId }) => resourceId === chain.id);
      return ok({ items: [...(await withMeasurements(deps, own))] });
    },
  });

  app.route({
    method: 'GET',
    url: '/api/nodes/:id/links',
    config: { access: 'anyone', takes: 'none' },
    schema: {
      operationId: 'listLinksOfNode',
      summary: 'The links of one node with others, with what agents have measured of them',
      description: 'Those that it dials, then those that are dialled to it.',
      tags: ['nodes'],
      params: idParams,
      querystring: noQuery,
      headers: readHeaders,
      response: answers(linksSchema),
    },
    handler: async (request) => {
      const { id } = orNotFound(deps.fleet.node(pathId(request.params, 'node')), 'node');
      return ok({ items: [...(await withMeasurements(deps, deps.fleet.linksOfNode(id)))] });
    },
  });
}

async function* linkPieces(deps: RestDeps): AsyncGenerator<string, void> {
  yield '{"items":';
  yield* listInPieces(deps.fleet.nodeNames(), (slice) =>
    withMeasurements(
      deps,
      slice.flatMap(({ id }) => deps.fleet.links(id)),
    ),
  );
  yield '}';
}

async function withMeasurements(deps: RestDeps, links: readonly IntendedLink[]): Promise<readonly LinkView[]> {
  const atStart = await samplesOf(deps, links, ({ fromNodeId }) => fromNodeId);
  const measuredAtStart = links.map((link) => measurement(atStart.get(link.fromNodeId), link, 'from'));
  // Usually the node that dials has measured it, and the other end need not be asked.
  const others = links.filter((_, index) => measuredAtStart[index] === undefined);
  const atEnd = await samplesOf(deps, others, ({ toNodeId }) => toNodeId);
  return links.map((link, index) => ({
    from_node_id: link.fromNodeId,
    to_node_id: link.toNodeId,
    kind: link.kind,
    resource_id: link.resourceId,
    ...(measuredAtStart[index] ?? measurement(atEnd.get(link.toNodeId), link, 'to') ?? unmeasured),
  }));
}

async function samplesOf(
  deps: RestDeps,
  links: readonly IntendedLink[],
  nodeOf: (link: IntendedLink) => string,
): Promise<ReadonlyMap<string, NodeSamples>> {
  const reports = await deps.telemetry.links([...new Set(links.map(nodeOf))]);
  return new Map([...reports].map(([id, report]) => [id, byResource(report)]));
}
