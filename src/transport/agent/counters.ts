/**
 * The counters and gauges of the transport for `/metrics`; `src/reports/traffic-metrics.ts` has those of what agents report. Totals
 * only: no node is named.
 */
import { counter, gauge, type MetricSource } from '../../instance/metrics.js';
import type { ListenerStats } from '../listener/listener.js';

export interface Counters {
  /** OpenSession calls by outcome: `ok`, or the reason of the refusal. */
  readonly handshakes: Map<string, number>;
  /** Ended streams and sessions, by cause. */
  readonly ends: Map<string, number>;
  framesIn: number;
  framesOut: number;
  ignoredReports: number;
  /** Snapshots, pushed and requested, by outcome. */
  readonly snapshots: Map<'offered' | 'sent' | 'superseded' | 'discarded', number>;
  /** How often a session's reads were paused because it exceeded its budget. */
  readPauses: number;
  heartbeats: number;
}

export function createCounters(): Counters {
  return {
    handshakes: new Map(),
    ends: new Map(),
    framesIn: 0,
    framesOut: 0,
    ignoredReports: 0,
    snapshots: new Map(),
    readPauses: 0,
    heartbeats: 0,
  };
}

export function countIn<Key extends string>(counts: Map<Key, number>, key: Key): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

/** Current values, in addition to the counters. */
export interface Gauges {
  readonly sessions: number;
  readonly pending: number;
  readonly waiting: number;
  readonly unfinishedBytes: number;
  /** Streams whose peer has not taken a fragment for more than a second. */
  readonly slowStreams: number;
  /** Sessions that are not being read because they exceeded their budget. */
  readonly throttledSessions: number;
}

/** The counters and gauges as `/metrics` shows them. */
export function metricSources(
  counters: Counters,
  gauges: () => Gauges,
  connections: () => ListenerStats,
): readonly MetricSource[] {
  const byName = (numbers: Readonly<Record<string, number>>): ReadonlyMap<string, number> =>
    new Map(Object.entries(numbers));
  const openHelp =
    'Open agent connections: first bytes awaited, mirrored to the target of REALITY, without a session, with one';
  const realityHelp = 'Connections that REALITY received, by outcome; absent without REALITY';
  const targetsHelp =
    'Connections to the target of REALITY: one for each mirrored connection, and visits of the service itself';
  const throttledHelp = 'Sessions whose reads are paused because they exceeded their read budget';
  const pausesHelp = 'Times that the reads of a session were paused because it exceeded its read budget';
  const snapshotsHelp =
    'Snapshots, pushed and asked for: offered, then sent whole, superseded by a newer one, or discarded at the end of the stream';
  return [
    gauge('svc_agent_connections', openHelp, () => byName(connections().open), 'kind'),
    counter('svc_agent_connections_accepted_total', 'Agent connections accepted', () => connections().accepted),
    counter(
      'svc_agent_connections_closed_total',
      'Agent connections that the listener closed, by reason',
      () => byName(connections().closed),
      'reason',
    ),
    counter('svc_agent_reality_total', realityHelp, () => byName(connections().met ?? {}), 'outcome'),
    gauge('svc_agent_reality_target_connections', targetsHelp, () => connections().targetConnections),
    gauge('svc_agent_sessions', 'Attached agent sessions', () => gauges().sessions),
    gauge('svc_agent_pending_sessions', 'Agent sessions opened, not yet attached', () => gauges().pending),
    gauge('svc_agent_waiting_handshakes', 'OpenSession calls waiting for admission', () => gauges().waiting),
    gauge('svc_agent_unfinished_bytes', 'Bytes held of unfinished messages', () => gauges().unfinishedBytes),
    gauge('svc_agent_slow_streams', 'Streams whose peer reads slowly', () => gauges().slowStreams),
    gauge('svc_agent_throttled_sessions', throttledHelp, () => gauges().throttledSessions),
    counter('svc_agent_read_pauses_total', pausesHelp, () => counters.readPauses),
    counter('svc_agent_handshakes_total', 'OpenSession by outcome', () => counters.handshakes, 'outcome'),
    counter('svc_agent_session_ends_total', 'Ended streams by cause', () => counters.ends, 'cause'),
    counter('svc_agent_frames_in_total', 'Frames received', () => counters.framesIn),
    counter('svc_agent_frames_out_total', 'Frames sent', () => counters.framesOut),
    counter('svc_agent_ignored_reports_total', 'Apply reports with an unknown status', () => counters.ignoredReports),
    counter('svc_agent_snapshots_total', snapshotsHelp, () => counters.snapshots, 'outcome'),
    counter('svc_agent_heartbeats_total', 'Heartbeats received', () => counters.heartbeats),
  ];
}
