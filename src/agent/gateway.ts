/** The data plane as the control side sees it. `runtime.ts` implements it with relays. */
import type { ConfigApplyReport, RuntimeConfigSnapshot } from '../gen/svc/control/v1/config.js';
import type { DiagnosticsItem } from '../gen/svc/control/v1/diagnostics.js';
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

/** Changes between two reports that are worth reporting at once. */
export interface GatewayChanges {
  /** An upstream has been checked for the first time, or its health has changed. */
  onUpstreams(): void;
  /** The state of a route has changed. */
  onRoutes(): void;
}

export interface Gateway {
  /** Undefined until this process has applied a snapshot. */
  readonly applied: AppliedConfig | undefined;
  /**
   * Applies a snapshot completely or not at all; never called concurrently. Returns undefined for an ignored one.
   * @param goesBack not ignored although it is older than what runs
   */
  apply(snapshot: RuntimeConfigSnapshot, goesBack?: boolean): Promise<ConfigApplyReport | undefined>;
  /** The whole table, at most `limits.agent.runtimeListeners` listeners with `limits.agent.runtimeRoutes` routes. */
  runtimeListeners(): readonly RuntimeListener[];
  linkMetrics(): readonly LinkMetric[];
  /** Counters since the start of the process, rates since the last call. */
  report(): GatewayReport;
  /** Sets who is told of changes. */
  watch(changes: GatewayChanges): void;
  /** Tries everything that the configuration dials; an abort ends it early. */
  probe(signal: AbortSignal): Promise<readonly DiagnosticsItem[]>;
  /** Closes listeners and connections. */
  close(): Promise<void>;
}
