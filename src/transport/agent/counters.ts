/** The transport's counters and gauges, and how `/metrics` shows them. Totals only: no node is named. */
import type { MetricSource } from '../../instance/metrics.js';
import { createReportedTotals } from './reported-totals.js';
import type { ReportedTotals } from './reported-totals.js';

export interface Counters {
  /** OpenSession calls by outcome: `ok`, or why they were refused. */
  readonly handshakes: Map<string, number>;
  /** Ended streams and sessions, by cause. */
  readonly ends: Map<string, number>;
  framesIn: number;
  framesOut: number;
  ignoredReports: number;
  /** Snapshots, pushed and asked for, by what became of them. */
  readonly snapshots: Map<'offered' | 'sent' | 'superseded' | 'discarded', number>;
  /** How often a session's reads were paused because it had sent more than it may. */
  readPauses: number;
  heartbeats: number;
  /** What agents report of their traffic. */
  readonly reported: ReportedTotals;
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
    reported: createReportedTotals(),
  };
}

export function countIn<Key extends string>(counts: Map<Key, number>, key: Key): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

/** Current values, beside the counted totals. */
export interface Gauges {
  readonly sessions: number;
  readonly pending: number;
  readonly waiting: number;
  readonly unfinishedBytes: number;
  /** Streams whose peer has not taken a fragment for more than a second. */
  readonly slowStreams: number;
  /** Sessions that are not read now because they have sent more than they may. */
  readonly throttledSessions: number;
}

/** What the listener tells of its connections. */
export interface ConnectionStats {
  readonly accepted: number;
  /** Open now, by kind. */
  readonly open: Readonly<Record<string, number>>;
  /** Closed by the listener, by reason. */
  readonly closed: Readonly<Record<string, number>>;
  /** What REALITY met, by outcome; undefined without it. */
  readonly met?: Readonly<Record<string, number>> | undefined;
  /** Connections to the target of REALITY that are open or being opened. */
  readonly targetConnections: number;
}

export function metricSources(
  counters: Counters,
  gauges: () => Gauges,
  connections: () => ConnectionStats,
): readonly MetricSource[] {
  const byName = (numbers: Readonly<Record<string, number>>): ReadonlyMap<string, number> =>
    new Map(Object.entries(numbers));
  return [
    {
      type: 'gauge',
      name: 'svc_agent_connections',
      help: 'Open agent connections: first bytes awaited, mirrored to the target of REALITY, without a session, with one',
      label: 'kind',
      read: () => byName(connections().open),
    },
    {
      type: 'counter',
      name: 'svc_agent_connections_accepted_total',
      help: 'Agent connections accepted',
      read: () => connections().accepted,
    },
    {
      type: 'counter',
      name: 'svc_agent_connections_closed_total',
      help: 'Agent connections that the listener closed, by reason',
      label: 'reason',
      read: () => byName(connections().closed),
    },
    {
      type: 'counter',
      name: 'svc_agent_reality_total',
      help: 'Connections that REALITY met, by what they turned out to be; nothing without REALITY',
      label: 'outcome',
      read: () => byName(connections().met ?? {}),
    },
    {
      type: 'gauge',
      name: 'svc_agent_reality_target_connections',
      help: 'Connections to the target of REALITY: one for each mirrored connection, and visits of the service itself',
      read: () => connections().targetConnections,
    },
    { type: 'gauge', name: 'svc_agent_sessions', help: 'Attached agent sessions', read: () => gauges().sessions },
    {
      type: 'gauge',
      name: 'svc_agent_pending_sessions',
      help: 'Agent sessions opened, not yet attached',
      read: () => gauges().pending,
    },
    {
      type: 'gauge',
      name: 'svc_agent_waiting_handshakes',
      help: 'OpenSession calls waiting for admission',
      read: () => gauges().waiting,
    },
    {
      type: 'gauge',
      name: 'svc_agent_unfinished_bytes',
      help: 'Bytes held of unfinished messages',
      read: () => gauges().unfinishedBytes,
    },
    {
      type: 'gauge',
      name: 'svc_agent_slow_streams',
      help: 'Streams whose peer reads slowly',
      read: () => gauges().slowStreams,
    },
    {
      type: 'gauge',
      name: 'svc_agent_throttled_sessions',
      help: 'Sessions whose reads are paused because they sent more than they may',
      read: () => gauges().throttledSessions,
    },
    {
      type: 'counter',
      name: 'svc_agent_read_pauses_total',
      help: 'Times that the reads of a session were paused because it sent more than it may',
      read: () => counters.readPauses,
    },
    {
      type: 'counter',
      name: 'svc_agent_handshakes_total',
      help: 'OpenSession by outcome',
      label: 'outcome',
      read: () => counters.handshakes,
    },
    {
      type: 'counter',
      name: 'svc_agent_session_ends_total',
      help: 'Ended streams by cause',
      label: 'cause',
      read: () => counters.ends,
    },
    { type: 'counter', name: 'svc_agent_frames_in_total', help: 'Frames received', read: () => counters.framesIn },
    { type: 'counter', name: 'svc_agent_frames_out_total', help: 'Frames sent', read: () => counters.framesOut },
    {
      type: 'counter',
      name: 'svc_agent_ignored_reports_total',
      help: 'Apply reports with an unknown status',
      read: () => counters.ignoredReports,
    },
    {
      type: 'counter',
      name: 'svc_agent_snapshots_total',
      help: 'Snapshots, pushed and asked for: offered, then sent whole, superseded by a newer one, or discarded at the end of the stream',
      label: 'outcome',
      read: () => counters.snapshots,
    },
    {
      type: 'counter',
      name: 'svc_agent_heartbeats_total',
      help: 'Heartbeats received',
      read: () => counters.heartbeats,
    },
    ...counters.reported.metrics(),
  ];
}
