/**
 * The links between nodes that chains, routes and networks intend, each with the measurements of an agent at one end.
 * Implements `docs/contract/rest.md#nodes`, `GET /api/nodes/links`.
 */
import { z } from 'zod';
import type { IntendedLink } from '../../../domain/port-table/intended-links.js';
import { originTypes } from '../../../domain/snapshot/snapshot.js';
import type { RestApp, RestDeps } from '../deps.js';
import { answers } from '../answers/envelope.js';
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
  .object({ items: documented(z.array(linkSchema), 'All links') })
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
}

async function* linkPieces(deps: RestDeps): AsyncGenerator<string, void> {
  yield '{"items":';
  yield* listInPieces(deps.fleet.nodeNames(), (slice) => linksOf(deps, slice));
  yield '}';
}

/** The links from these nodes. */
async function linksOf(deps: RestDeps, nodes: readonly { readonly id: string }[]): Promise<readonly LinkView[]> {
  const links = nodes.flatMap(({ id }) => deps.fleet.links(id));
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
