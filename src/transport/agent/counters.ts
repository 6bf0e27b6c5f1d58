/** The transport's counters and gauges, and how `/metrics` shows them. Totals only: no node is named. */
import type { MetricSource } from '../../operations/metrics.js';

export interface Counters {
  /** OpenSession calls by outcome: `ok`, or why they were refused. */
  readonly handshakes: Map<string, number>;
  /** Ended streams and sessions, by cause. */
  readonly ends: Map<string, number>;
  framesIn: number;
  framesOut: number;
  ignoredReports: number;
  snapshotsSent: number;
  /** How often a session's reads were paused because it had sent more than it may. */
  readPauses: number;
}

export function createCounters(): Counters {
  return {
    handshakes: new Map(),
    ends: new Map(),
    framesIn: 0,
    framesOut: 0,
    ignoredReports: 0,
    snapshotsSent: 0,
    readPauses: 0,
  };
}

export function countIn(counts: Map<string, number>, key: string): void {
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
      name: 'svc_agent_connections',
      help: 'Open agent connections: first bytes awaited, without a session, with one',
      label: 'kind',
      read: () => byName(connections().open),
    },
    {
      name: 'svc_agent_connections_accepted',
      help: 'Agent connections accepted',
      read: () => connections().accepted,
    },
    {
      name: 'svc_agent_connections_closed',
      help: 'Agent connections that the listener closed, by reason',
      label: 'reason',
      read: () => byName(connections().closed),
    },
    { name: 'svc_agent_sessions', help: 'Attached agent sessions', read: () => gauges().sessions },
    {
      name: 'svc_agent_pending_sessions',
      help: 'Agent sessions opened, not yet attached',
      read: () => gauges().pending,
    },
    {
      name: 'svc_agent_waiting_handshakes',
      help: 'OpenSession calls waiting for admission',
      read: () => gauges().waiting,
    },
    {
      name: 'svc_agent_unfinished_bytes',
      help: 'Bytes held of unfinished messages',
      read: () => gauges().unfinishedBytes,
    },
    { name: 'svc_agent_slow_streams', help: 'Streams whose peer reads slowly', read: () => gauges().slowStreams },
    {
      name: 'svc_agent_throttled_sessions',
      help: 'Sessions whose reads are paused because they sent more than they may',
      read: () => gauges().throttledSessions,
    },
    {
      name: 'svc_agent_read_pauses_total',
      help: 'Times that the reads of a session were paused because it sent more than it may',
      read: () => counters.readPauses,
    },
    { name: 'svc_agent_handshakes', help: 'OpenSession by outcome', label: 'outcome', read: () => counters.handshakes },
    { name: 'svc_agent_session_ends', help: 'Ended streams by cause', label: 'cause', read: () => counters.ends },
    { name: 'svc_agent_frames_in', help: 'Frames received', read: () => counters.framesIn },
    { name: 'svc_agent_frames_out', help: 'Frames sent', read: () => counters.framesOut },
    {
      name: 'svc_agent_ignored_reports',
      help: 'Apply reports with an unknown status',
      read: () => counters.ignoredReports,
    },
    { name: 'svc_agent_snapshots_sent', help: 'Snapshots sent completely', read: () => counters.snapshotsSent },
  ];
}
