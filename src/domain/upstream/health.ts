/**
 * The health of an upstream: as one node sees it, by its newest metrics, and overall, by all nodes that dial it. Pure.
 * Implements `docs/contract/notices.md#status-changes-are-facts`, an upstream's status, and
 * `docs/contract/domain.md#health-of-a-chain`, the wait for a MetricsReport.
 */
export const upstreamStatuses = ['healthy', 'unhealthy', 'unknown'] as const;
export type UpstreamStatus = (typeof upstreamStatuses)[number];

/** An upstream in the newest metrics of a node. */
export interface UpstreamInMetrics {
  /** When the metrics arrived, RFC 3339. */
  readonly at: string;
  /** Whether they reflect what the node has applied, rather than something earlier. */
  readonly current: boolean;
  /** Undefined when they do not name the upstream. */
  readonly healthy: boolean | undefined;
}

interface Seeing {
  /** Undefined before the first metrics. */
  readonly metrics: UpstreamInMetrics | undefined;
  /** When the agent's session was opened, RFC 3339; undefined before the first. */
  readonly sessionAt: string | undefined;
  /** When the upstream was last edited, and when the chain to it was deployed, RFC 3339. */
  readonly editedAt: string;
  readonly deployedAt: string;
  /** Milliseconds since the epoch. */
  readonly now: number;
  readonly metricsIntervalSecs: number;
}

/** The number of metrics intervals within which an agent should report a new upstream. */
const awaitedIntervals = 2;

/**
 * How a node sees an upstream that it dials. `awaited`: the upstream or its endpoint is new to the node, and not reported
 * yet; `unnamed`: the node has had time and does not report it.
 */
export function seenUpstream(seeing: Seeing): {
  readonly seen: 'healthy' | 'unhealthy' | 'awaited' | 'unnamed';
  /** When the node should begin to report it, RFC 3339. */
  readonly since: string;
} {
  const { metrics, sessionAt = '', editedAt, deployedAt, now, metricsIntervalSecs } = seeing;
  const since = [editedAt, deployedAt, sessionAt].reduce((latest, at) => (at > latest ? at : latest));
  const patienceMs = awaitedIntervals * metricsIntervalSecs * 1000;
  // The health of an earlier endpoint does not count.
  const ofThis = metrics !== undefined && (metrics.at >= editedAt || metrics.current);
  if (ofThis && metrics.healthy === false) return { seen: 'unhealthy', since };
  // The agent of a new session may have been away for long.
  const fresh = metrics !== undefined && (metrics.at >= sessionAt || now - Date.parse(metrics.at) <= patienceMs);
  if (ofThis && fresh && metrics.healthy === true) return { seen: 'healthy', since };
  return { seen: now - Date.parse(since) < patienceMs ? 'awaited' : 'unnamed', since };
}

/** @param seen by the nodes that dial the upstream and are online */
export function upstreamStatus(seen: Iterable<ReturnType<typeof seenUpstream>['seen']>): UpstreamStatus {
  let status: UpstreamStatus = 'unknown';
  for (const one of seen) {
    if (one === 'unhealthy') return 'unhealthy';
    if (one === 'healthy') status = 'healthy';
  }
  return status;
}
