/**
 * Telemetry as the agent transport and REST see it: presence and the newest reports of each node. None of it is an
 * event. Implements `docs/contract/agent-protocol.md#heartbeats-commands-metrics`.
 */
import type { Metric } from 'prom-client';
import type { History } from './history/history.js';
import type { ListenerStates } from './listener-states.js';
import type { LinkMetric } from '../gen/svc/control/v1/heartbeat.js';
import type { listenerCounters } from './counted-rows.js';
import type { ListenerTable } from './listener-table.js';
import type { diagnosticsFacts, linkSample, metricsFacts, runtimeListener } from './from-wire.js';

/** A row of a runtime table. Counters are absent when the agent did not report them. */
export type RuntimeListener = ReturnType<typeof runtimeListener> & Partial<Traffic>;

export type LinkSample = ReturnType<typeof linkSample>;

/** A measured link of a node; the peer is empty where the agent does not know its node. */
export type RoundTrip = readonly [resourceId: string, ms: number, peerNodeId: string];

/** A list of a heartbeat, validated and otherwise as received. */
export interface ReportedTable<Row> {
  /** The fields of a `HeartbeatRequest` that hold the list. */
  readonly bytes: Uint8Array;
  rows(): readonly Row[];
}

/** The resources that a node serves as deployed, to which its reports are credited. */
export interface Carriers {
  /** Ids of the chains with a hop on it. */
  readonly chains: ReadonlySet<string>;
  /** By chain id: the ids that the bytes of its links are credited to, the chain where it begins and the upstream where it ends. */
  readonly ends: ReadonlyMap<string, readonly string[]>;
  /** The chain that begins at a listener, `transport/address/port`, if no other resource uses the listener. */
  readonly chainOfListener: ReadonlyMap<string, string>;
  /** The listeners at which its chains begin, in the same form. */
  readonly begins: ReadonlySet<string>;
  /** Ids of the upstreams that it dials. */
  readonly upstreams: ReadonlySet<string>;
}

/** The agent process that sent a report. */
export interface ReportingProcess {
  /** Lower-case hex; empty when the agent does not name it. */
  readonly process_id: string;
  /** The generation that it ran then, as its session reported; null before that. */
  readonly runs_generation: number | null;
}

export interface HeartbeatFacts extends ReportingProcess {
  readonly cpu_usage: number;
  readonly memory_usage: number;
  readonly uptime_seconds: number;
  readonly link_metrics: ReportedTable<LinkMetric>;
  readonly runtime_listeners: ListenerTable;
}

/** The newest vital signs of a node. */
export interface NodeVitals {
  /** RFC 3339. */
  readonly last_seen_at: string | null;
  readonly cpu_usage: number | null;
  readonly memory_usage: number | null;
  readonly uptime_seconds: number | null;
}

/** The runtime table of a node's last heartbeat; counters are sums over the agent's processes. */
export interface ReportedListeners {
  /** RFC 3339. */
  readonly reported_at: string;
  readonly listeners: readonly RuntimeListener[];
}

/** The links of a node's last heartbeat; counters are sums over the agent's processes. */
export interface ReportedLinks {
  /** RFC 3339. */
  readonly reported_at: string;
  readonly links: readonly LinkSample[];
}

/** A `MetricsReport` with the proto's names; a part that the agent left out is null. */
export type MetricsFacts = ReturnType<typeof metricsFacts>;

/** What an agent found when it checked itself; its log is oldest first. */
export type DiagnosticsFacts = ReturnType<typeof diagnosticsFacts>;

/** The newest one of a node. */
export type KeptDiagnostics = DiagnosticsFacts & {
  /** When it came, RFC 3339. */
  readonly at: string;
  /** As stated in its node's hello. */
  readonly agent_version: string | null;
};

export interface Diagnostics {
  /** Keeps a report if the node was asked for one, whichever instance asked. Never rejects. */
  take(nodeId: string, report: DiagnosticsFacts): Promise<void>;
  /** Undefined without one, or only an old one. @throws ServiceError `unavailable` */
  of(nodeId: string): Promise<KeptDiagnostics | undefined>;
}

/** Sums of the counters of listeners. */
export type Traffic = { readonly [name in (typeof listenerCounters)[number] | 'active_sessions']: number };

/** The traffic of a listener now, in and out together. */
export interface ListenerRate {
  readonly bytes_per_sec: number;
  readonly sessions_per_min: number;
}

/** The newest metrics of a node. */
export interface ReportedMetrics {
  /** RFC 3339. */
  readonly reported_at: string;
  /** As in `ReportingProcess`. */
  readonly runs_generation: number | null;
  readonly report: MetricsFacts;
  /** Since when each upstream cluster has been reported in its current state, RFC 3339. */
  readonly health_since: { readonly [cluster: string]: string };
}

/** Recent activity of the agents of one or several instances. */
export interface Activity {
  readonly heartbeats_per_minute: number;
  /** Growth of listeners in the last five minutes. A session's first report does not count: it may cover any time. */
  readonly last_5m: { readonly [name in (typeof listenerCounters)[number]]: number };
}

export interface PresenceFacts {
  readonly session_id: string;
  readonly instance_id: string;
  /** Newest generation pushed to the session, 0 for none. */
  readonly pushed_generation: number;
  /** RFC 3339, null for none. */
  readonly pushed_at: string | null;
}

/** Takes the reports of this instance's sessions. Only opening a session waits for the store. */
export interface Telemetry {
  /** Makes the session the node's live one, whichever instance held it before. Durable when it returns. */
  sessionOpened(nodeId: string, presence: PresenceFacts, offlineAfterMs: number): Promise<void>;
  /** Notes a sign of life, which any valid payload is. @param heartbeat if the payload was one */
  alive(nodeId: string, presence: PresenceFacts, offlineAfterMs: number, heartbeat?: HeartbeatFacts): void;
  metrics(nodeId: string, report: MetricsFacts, process: ReportingProcess): void;
  /** @param byAgent the agent said that it ends, and not for a rekey */
  sessionEnded(nodeId: string, sessionId: string, byAgent?: boolean): Promise<void>;
  /** Calls back when another session has taken over a session's node, which shows at the next renewal of its lease. */
  onLost(listener: (nodeId: string, sessionId: string) => void): () => void;
  /** Traffic of nodes, for `/metrics`. */
  trafficMetrics(): readonly Metric[];
  /** Recent activity at this instance. */
  activity(): Activity;
}

/** The last reports of nodes, whichever instance received them. In memory; an unknown node has none. */
export interface Reports {
  /** Undefined for a node that is not online. */
  presence(nodeId: string): PresenceFacts | undefined;
  /** When the agent itself closed its last session, milliseconds since the epoch; 0 if it did not. */
  closedAt(nodeId: string): number;
  vitals(nodeId: string): NodeVitals;
  listeners(nodeId: string): ReportedListeners | undefined;
  /** A summary; returns the same maps while only counters change. */
  listenerStates(nodeId: string): ListenerStates | undefined;
  /** Of a listener at which a chain begins, `transport/address/port`; see `rateOf`. */
  listenerRate(nodeId: string, key: string): ListenerRate | null;
  /** Sums over the listeners of the node and the processes of its agent. */
  traffic(nodeId: string): Traffic;
  links(nodeId: string): ReportedLinks | undefined;
  /** Only the links that lose too much, see `isLossy`; undefined without any. */
  lossyLinks(nodeId: string): ReportedLinks | undefined;
  /** Of the links of the last heartbeat. */
  roundTrips(nodeId: string): readonly RoundTrip[];
  reportedMetrics(nodeId: string): ReportedMetrics | undefined;
  /** Calls back with each node that has reported, or was deleted. @returns how to stop */
  onReport(listener: (nodeId: string) => void): () => void;
  /** When this instance began to record history, milliseconds since the epoch; undefined if it does not. */
  readonly historySince: number | undefined;
  /** See `History.read`; empty if history is not recorded. */
  history: History['read'];
  /** True while reports of other instances cannot be read, because the read store is away. */
  stale(): boolean;
}
