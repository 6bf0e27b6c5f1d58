/**
 * The links between nodes: those that chains, routes and networks intend, each with what an agent at one of its ends has
 * measured. Implements `docs/contract/rest.md#nodes`, `GET /api/nodes/links`.
 */
import { z } from 'zod';
import type { IntendedLink } from '../../domain/port-table/intended-links.js';
import { originTypes } from '../../domain/snapshot/snapshot.js';
import type { LinkSample, ReportedLinks } from '../../telemetry/port.js';
import type { RestApp, RestDeps } from './deps.js';
import { answers } from './envelope.js';
import { readHeaders } from './headers.js';
import { listInPieces, sendPieces } from './pieces.js';
import { noQuery } from './query.js';
import { described, sample } from './samples.js';
import { idOf, time } from './shared-schemas.js';

const measured = {
  rtt_ms: described(z.number().nullable(), 'Round trip in milliseconds', 12.5),
  jitter_ms: described(z.number().nullable(), 'Jitter in milliseconds', 0.8),
  loss_ratio: described(z.number().nullable(), 'Lost share, 0 to 1', 0),
  bytes_in: described(z.number().nullable(), 'Bytes from `to_node_id`', 1_048_576),
  bytes_out: described(z.number().nullable(), 'Bytes to `to_node_id`', 524_288),
  measured_at: described(time.nullable(), 'When an agent reported this; null if none did', sample.later),
};
type Measured = z.output<z.ZodObject<typeof measured>>;

const linkSchema = z
  .object({
    from_node_id: idOf('Node that dials', sample.entryNode),
    to_node_id: idOf('Node that is dialled', sample.exitNode),
    kind: described(z.enum(originTypes), 'Type of the resource that needs the link', 'l4_chain'),
    resource_id: idOf('Its id', sample.chain),
    ...measured,
  })
  .meta({ id: 'NodeLink', description: 'A link that the configuration intends, and what agents have measured of it' });
const linksSchema = z.object({ items: described(z.array(linkSchema), 'All links') }).meta({ description: 'The links' });
type LinkView = z.output<typeof linkSchema>;

const unmeasured: Measured = {
  rtt_ms: null,
  jitter_ms: null,
  loss_ratio: null,
  bytes_in: null,
  bytes_out: null,
  measured_at: null,
};

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
  yield* listInPieces(deps.delivery.nodeNames(), (slice) => linksOf(deps, slice));
  yield '}';
}

/** The links from these nodes. */
async function linksOf(deps: RestDeps, nodes: readonly { readonly id: string }[]): Promise<readonly LinkView[]> {
  const links = nodes.flatMap(({ id }) => deps.delivery.links(id));
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

interface NodeSamples {
  readonly reportedAt: string;
  /** By resource. */
  readonly samples: ReadonlyMap<string, readonly LinkSample[]>;
}

async function samplesOf(
  deps: RestDeps,
  links: readonly IntendedLink[],
  nodeOf: (link: IntendedLink) => string,
): Promise<ReadonlyMap<string, NodeSamples>> {
  const reports = await deps.telemetry.links([...new Set(links.map(nodeOf))]);
  return new Map([...reports].map(([id, report]) => [id, byResource(report)]));
}

function byResource({ reported_at, links }: ReportedLinks): NodeSamples {
  const samples = new Map<string, LinkSample[]>();
  for (const sample of links) {
    const key = `${sample.resource_type}/${sample.resource_id}`;
    const known = samples.get(key);
    if (known === undefined) samples.set(key, [sample]);
    else known.push(sample);
  }
  return { reportedAt: reported_at, samples };
}

/**
 * What the node at one end reports of a link; undefined when it reports nothing. An agent that knows no nodes names the
 * endpoint that it dials. Several samples are one link: their bytes are added up, and the worst of each other value counts.
 */
function measurement(node: NodeSamples | undefined, link: IntendedLink, end: 'from' | 'to'): Measured | undefined {
  const peerId = end === 'from' ? link.toNodeId : link.fromNodeId;
  const samples = (node?.samples.get(`${link.kind}/${link.resourceId}`) ?? []).filter(
    ({ peer_node_id, peer_endpoint }) =>
      peer_node_id === peerId || (end === 'from' && peer_node_id === '' && link.endpoints.includes(peer_endpoint)),
  );
  if (node === undefined || samples.length === 0) return undefined;
  const bytesIn = sumOf(samples.map(({ bytes_in }) => bytes_in));
  const bytesOut = sumOf(samples.map(({ bytes_out }) => bytes_out));
  return {
    rtt_ms: worstOf(samples.map(({ rtt_ms }) => rtt_ms)),
    jitter_ms: worstOf(samples.map(({ jitter_ms }) => jitter_ms)),
    loss_ratio: worstOf(samples.map(({ loss_ratio }) => loss_ratio)),
    // What one end takes in, the other end sends.
    bytes_in: end === 'from' ? bytesIn : bytesOut,
    bytes_out: end === 'from' ? bytesOut : bytesIn,
    measured_at: node.reportedAt,
  };
}

const sumOf = (values: readonly number[]): number =>
  Math.min(
    values.reduce((sum, value) => sum + value, 0),
    Number.MAX_SAFE_INTEGER,
  );

function worstOf(values: readonly (number | null)[]): number | null {
  const known = values.filter((value) => value !== null);
  return known.length === 0 ? null : Math.max(...known);
}
