/**
 * Combines the samples that agents report of an intended link into one measurement per end. Pure. Implements `docs/contract/rest.md#nodes`, `GET /api/nodes/links`.
 */
import type { IntendedLink } from '../domain/port-table/intended-links.js';
import type { LinkSample, ReportedLinks } from './port.js';
import { groupBy } from '../kernel/maps.js';

export interface Measured {
  readonly rtt_ms: number | null;
  readonly jitter_ms: number | null;
  readonly loss_ratio: number | null;
  readonly bytes_in: number | null;
  readonly bytes_out: number | null;
  /** RFC 3339. */
  readonly measured_at: string | null;
}

/** The last reported samples of a node. */
export interface NodeSamples {
  readonly reportedAt: string;
  /** By `resourceKey`. */
  readonly samples: ReadonlyMap<string, readonly LinkSample[]>;
}

const resourceKey = (type: string, id: string): string => `${type}/${id}`;

export function byResource(reported: ReportedLinks | undefined): NodeSamples | undefined {
  if (reported === undefined) return undefined;
  const { reported_at, links } = reported;
  const samples = groupBy(links, ({ resource_type, resource_id }) => resourceKey(resource_type, resource_id));
  return { reportedAt: reported_at, samples };
}

/**
 * A link as measured by the node at one end; undefined if it reports nothing. An agent that does not know its peer's node names
 * the endpoint that it dials. Of several samples, bytes are added up, and the worst of each other value counts.
 */
export function measurement(
  node: NodeSamples | undefined,
  link: IntendedLink,
  end: 'from' | 'to',
): Measured | undefined {
  const peerId = end === 'from' ? link.toNodeId : link.fromNodeId;
  const samples = (node?.samples.get(resourceKey(link.kind, link.resourceId)) ?? []).filter(
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
    // One end receives what the other sends.
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
