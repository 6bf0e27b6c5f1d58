/**
 * The health of an upstream: how one node sees it, by its newest metrics, and what follows from all that dial it. Pure.
 * Implements `docs/contract/notices.md#status-changes-are-facts`, an upstream's status, and
 * `docs/contract/domain.md#health-of-a-chain`, the wait for a MetricsReport.
 */
export const upstreamStatuses = ['healthy', 'unhealthy', 'unknown'] as const;
export type UpstreamStatus = (typeof upstreamStatuses)[number];

/** What the newest metrics of a node say of an upstream. */
export interface UpstreamInMetrics {
  /** When they came, RFC 3339. */
  readonly at: string;
  /** Whether they tell of what the node has applied, and not of something earlier. */
  readonly current: boolean;
  /** Undefined when they do not name the upstream. */
  readonly healthy: boolean | undefined;
}

interface Seeing {
  /** Undefined before the first metrics. */
  readonly metrics: UpstreamInMetrics | undefined;
  /** When the session of the node's agent was opened, RFC 3339; undefined before the first. */
  readonly sessionAt: string | undefined;
  /** When the upstream was last edited, and when the chain was deployed that leads to it, RFC 3339. */
  readonly editedAt: string;
  readonly deployedAt: string;
  /** Milliseconds since the epoch. */
  readonly now: number;
  readonly metricsIntervalSecs: number;
}

/** How long an agent may take to name an upstream that it was given. */
const awaitedIntervals = 2;

/**
 * How a node sees an upstream that it dials. `awaited`: it was given the upstream, or a new endpoint of it, a short while ago,
 * and its metrics do not name that yet; `unnamed`: it had the time, and says nothing of it.
 */
export function seenUpstream(seeing: Seeing): {
  readonly seen: 'healthy' | 'unhealthy' | 'awaited' | 'unnamed';
  /** Since when the node may be expected to tell, RFC 3339. */
  readonly since: string;
} {
  const { metrics, sessionAt = '', editedAt, deployedAt, now, metricsIntervalSecs } = seeing;
  const since = [editedAt, deployedAt, sessionAt].reduce((latest, at) => (at > latest ? at : latest));
  const patienceMs = awaitedIntervals * metricsIntervalSecs * 1000;
  // An earlier endpoint's health is not this one's.
  const ofThis = metrics !== undefined && (metrics.at >= editedAt || metrics.current);
  if (ofThis && metrics.healthy === false) return { seen: 'unhealthy', since };
  // A session that has just begun may be of an agent that was away for long.
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
