/**
 * The intervals in force for one session: first from its grant, then from each HeartbeatResponse. The session is judged
 * by the intervals that it was last sent, not by the current settings.
 */
import { offlineAfterSeconds } from '../../delivery/port.js';
import type { Delivery } from '../../delivery/port.js';

export interface AgentIntervals {
  readonly heartbeatSecs: number;
  readonly metricsSecs: number;
  /** Silence after which the node counts as offline and its session as idle. */
  readonly offlineAfterMs: number;
}

/** The intervals that the current settings ask for. */
export function intervalsOf(settings: ReturnType<Delivery['settings']>): AgentIntervals {
  return {
    heartbeatSecs: settings.heartbeat_interval_secs,
    metricsSecs: settings.metrics_interval_secs,
    offlineAfterMs: offlineAfterSeconds(settings) * 1000,
  };
}

export function sameIntervals(a: AgentIntervals, b: AgentIntervals): boolean {
  return (
    a.heartbeatSecs === b.heartbeatSecs && a.metricsSecs === b.metricsSecs && a.offlineAfterMs === b.offlineAfterMs
  );
}
