/** The intervals that a session was last told: by its grant, then by each HeartbeatResponse. It is judged by these. */
import { offlineAfterSeconds } from '../../delivery/port.js';
import type { Delivery } from '../../delivery/port.js';

export interface Told {
  readonly heartbeatSecs: number;
  readonly metricsSecs: number;
  /** Silence after which the node counts as offline and its session as idle. */
  readonly offlineAfterMs: number;
}

/** What a session would be told now. */
export function toldBy(settings: ReturnType<Delivery['settings']>): Told {
  return {
    heartbeatSecs: settings.heartbeat_interval_secs,
    metricsSecs: settings.metrics_interval_secs,
    offlineAfterMs: offlineAfterSeconds(settings) * 1000,
  };
}
