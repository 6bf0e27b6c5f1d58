/**
 * The data plane as the control side sees it. Implemented by `runtime.ts`, which relays.
 */
import type { ConfigApplyReport, RuntimeConfigSnapshot } from '../gen/svc/control/v1/config.js';
import type { LinkMetric, RuntimeListener } from '../gen/svc/control/v1/heartbeat.js';
import type { MetricsReport } from '../gen/svc/control/v1/metrics.js';

/** The running configuration. */
export interface AppliedConfig {
  readonly generation: bigint;
  /** Opaque; echoed to the service. */
  readonly checksum: Buffer;
}

/** A MetricsReport without the fields that the session adds. */
export type GatewayReport = Omit<MetricsReport, 'sequence' | 'timestamp'>;

/** What becomes known between two reports, and is worth one at once. */
export interface GatewayChanges {
  /** An upstream has been checked for the first time, or is healthy or unhealthy now and was not before. */
  onUpstreams(): void;
  /** The state of a route has changed. */
  onRoutes(): void;
}

export interface Gateway {
  /** Undefined until this process has applied a snapshot. */
  readonly applied: AppliedConfig | undefined;
  /** Applies all of a snapshot or nothing. Never called concurrently. Returns undefined for a snapshot it ignores. */
  apply(snapshot: RuntimeConfigSnapshot): Promise<ConfigApplyReport | undefined>;
  /** The whole table, at most `limits.agent.runtimeListeners` listeners with `limits.agent.runtimeRoutes` routes. */
  runtimeListeners(): readonly RuntimeListener[];
  linkMetrics(): readonly LinkMetric[];
  /** Counters since the start of the process, rates since the last call. */
  report(): GatewayReport;
  /** Says who is told of changes. */
  watch(changes: GatewayChanges): void;
  /** For RUN_DIAGNOSTICS: the state that an operator wants to see in the agent's log. */
  diagnostics(): object;
  /** Closes listeners and connections. */
  close(): Promise<void>;
}
