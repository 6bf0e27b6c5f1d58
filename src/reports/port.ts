/**
 * Telemetry as the agent transport and REST see it: presence and the newest reports of each node. None of it is an
 * event. Implements `docs/contract/agent-protocol.md#heartbeats-commands-metrics`.
 */
import type { Counter } from 'prom-client';
import type { History } from './history/history.js';
import type { ListenerStates } from './listener-states.js';
import type { LinkMetric } from '../gen/svc/control/v1/heartbeat.js';
import type { listenerCounters } from './counted-rows.js';
import type { ListenerTable } from './listener-table.js';

export interface RuntimeRoute {
  readonly service: string;
  readonly payload: string;
  readonly outer: string;
  readonly security: string;
  readonly match_kind: string;
  readonly match_value: string;
  readonly next_hop: string;
  /** A state of its own; null for its listener's. */
  readonly state: string | null;
}

export interface RuntimeListener {
  readonly transport: string;
  readonly listen_addr: string;
  readonly listen_port: number;
  readonly state: string;
  readonly routes: readonly RuntimeRoute[];
  /** Absent when the agent did not report them. */
  readonly bytes_in?: number;
  readonly bytes_out?: number;
  readonly active_sessions?: number;
  readonly total_sessions?: number;
  readonly error_sessions?: number;
}

export interface LinkSample {
  readonly resource_type: string;
  readonly resource_id: string;
  readonly peer_node_id: string;
  readonly peer_endpoint: string;
  readonly outer: string;
  readonly rtt_ms: number | null;
  readonly jitter_ms: number | null;
  readonly loss_ratio: number | null;
  readonly bytes_in: number;
  readonly bytes_out: number;
  readonly active_sessions: number;
}

/** A list of a heartbeat, validated and otherwise unchanged. */
export interface ReportedTable<Row> {
  /** As it came: the fields of a `HeartbeatRequest` that are that list. Most tables come again unchanged. */
  readonly bytes: Uint8Array;
  rows(): readonly Row[];
}

/** What a node carries as its chains are deployed: for whom its reports are counted. */
export interface Carriers {
  /** Ids of the chains that it has a hop of. */
  readonly chains: ReadonlySet<string>;
  /** By the id of a chain, for whom the bytes of its links are counted: the chain where it begins, the upstream where it ends. */
  readonly ends: ReadonlyMap<string, readonly string[]>;
  /** The chain that begins at a listener, `transport/address/port`, and has it alone. */
  readonly chainOfListener: ReadonlyMap<string, string>;
  /** Ids of the upstreams that it dials. */
  readonly upstreams: ReadonlySet<string>;
}

/** The process of an agent that reports. */
export interface ReportingProcess {
  /** Lower-case hex; empty when the agent does not name it. */
  readonly process_id: string;
  /** The generation that it ran when it reported, as its session has told; null before it told one. */
  readonly runs_generation: number | null;
}

export interface HeartbeatFacts extends ReportingProcess {
  readonly cpu_usage: number;
  readonly memory_usage: number;
  readonly uptime_seconds: number;
  readonly link_metrics: ReportedTable<LinkMetric>;
  readonly runtime_listeners: ListenerTable;
}

/** The part of the newest reports that the view of a node shows. */
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

/** A `MetricsReport` by the names of the proto, a part that the agent left out as null. */
export type MetricsFacts = {
  readonly connections: {
    readonly active: number;
    readonly accepted: number;
    readonly closed: number;
    readonly failed: number;
    readonly handshake_failures: number;
  } | null;
  readonly bandwidth: {
    readonly bytes_in: number;
    readonly bytes_out: number;
    readonly bits_in_per_second: number;
    readonly bits_out_per_second: number;
    readonly listeners: readonly {
      readonly transport: string;
      readonly listen_addr: string;
      readonly listen_port: number;
      readonly bytes_in: number;
      readonly bytes_out: number;
    }[];
  } | null;
  readonly gateway: {
    readonly requests: number;
    readonly errors: number;
    readonly worker_restarts: number;
    readonly latency_p50_ms: number;
    readonly latency_p99_ms: number;
    readonly upstreams: readonly {
      readonly cluster: string;
      readonly requests: number;
      readonly errors: number;
      readonly healthy: boolean;
      readonly latency_p99_ms: number;
    }[];
  } | null;
};

/** Sums of the counters of listeners. */
export interface Traffic {
  readonly bytes_in: number;
  readonly bytes_out: number;
  readonly active_sessions: number;
  readonly total_sessions: number;
  readonly error_sessions: number;
}

/** The newest metrics of a node. */
export interface ReportedMetrics {
  /** RFC 3339. */
  readonly reported_at: string;
  /** As in `ReportingProcess`. */
  readonly runs_generation: number | null;
  readonly report: MetricsFacts;
  /** When each upstream cluster was first reported to be as it is, RFC 3339. */
  readonly health_since: { readonly [cluster: string]: string };
}

/** What agents reported lately, of one instance or of several. */
export interface Activity {
  readonly heartbeats_per_minute: number;
  /**
   * By how much listeners grew in the last five minutes, from report to report of one session: before its second report
   * nobody knows since when it has grown.
   */
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

/** What the sessions of this instance tell. Nothing waits for the store but the opening of a session. */
export interface Telemetry {
  /** Makes the session the node's live one, whichever instance held it before. Durable when it returns. */
  sessionOpened(nodeId: string, presence: PresenceFacts, offlineAfterMs: number): Promise<void>;
  /**
   * Notes a sign of life: any valid payload is one.
   * @param heartbeat if the payload was one
   */
  alive(nodeId: string, presence: PresenceFacts, offlineAfterMs: number, heartbeat?: HeartbeatFacts): void;
  /** @param process as `HeartbeatFacts` has it */
  metrics(nodeId: string, report: MetricsFacts, process: ReportingProcess): void;
  sessionEnded(nodeId: string, sessionId: string): Promise<void>;
  /** Calls back with each session whose node another session has taken over; noticed when its lease is renewed. */
  onLost(listener: (nodeId: string, sessionId: string) => void): () => void;
  /** What nodes have carried, for `/metrics`. */
  trafficMetrics(): readonly Counter[];
  /** What this instance took lately. */
  activity(): Activity;
}

/** What nodes told last, whichever instance took it. In memory; an unknown node has told nothing. */
export interface Reports {
  /** Undefined of a node that is not online. */
  presence(nodeId: string): PresenceFacts | undefined;
  vitals(nodeId: string): NodeVitals;
  listeners(nodeId: string): ReportedListeners | undefined;
  /** The same in short: the same maps as long as nothing but counters differs. */
  listenerStates(nodeId: string): ListenerStates | undefined;
  /** Sums over the listeners of the node and the processes of its agent. */
  traffic(nodeId: string): Traffic;
  links(nodeId: string): ReportedLinks | undefined;
  /** Its links of chains that lose more than is tolerable, from the same report; undefined without any. */
  lossyLinks(nodeId: string): ReportedLinks | undefined;
  reportedMetrics(nodeId: string): ReportedMetrics | undefined;
  /** Calls back with each node that has told something, or is gone. @returns how to stop */
  onTold(listener: (nodeId: string) => void): () => void;
  /** Whether history is recorded. */
  readonly recordsHistory: boolean;
  /** See `History.read`. Nothing where none is recorded. */
  history: History['read'];
  /** True while what other instances take is not read, because the read store is away. */
  stale(): boolean;
}
