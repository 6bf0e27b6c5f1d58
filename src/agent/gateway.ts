/**
 * What the control side drives and reports on: the data plane as it sees it. `runtime.ts` relays for real,
 * `light-agent.ts` only acknowledges.
 */
import type { ConfigApplyReport, RuntimeConfigSnapshot } from '../gen/svc/control/v1/config.js';
import type { LinkMetric, RuntimeListener } from '../gen/svc/control/v1/heartbeat.js';
import type { MetricsReport } from '../gen/svc/control/v1/metrics.js';

/** The configuration that runs. */
export interface AppliedConfig {
  readonly generation: bigint;
  /** Opaque, echoed. */
  readonly checksum: Buffer;
}

/** A MetricsReport without what the session adds. */
export type GatewayReport = Omit<MetricsReport, 'sequence' | 'timestamp'>;

export interface Gateway {
  /** undefined in a process that has not applied anything. */
  readonly applied: AppliedConfig | undefined;
  /** Applies all of a snapshot or nothing; never twice at once. Answers undefined for one that is to be ignored. */
  apply(snapshot: RuntimeConfigSnapshot): Promise<ConfigApplyReport | undefined>;
  /** The whole table; at most `limits.agent.runtimeListeners` with `limits.agent.runtimeRoutes`. */
  runtimeListeners(): readonly RuntimeListener[];
  linkMetrics(): readonly LinkMetric[];
  /** Counters since the process started, rates since the last call. */
  report(): GatewayReport;
  /** RUN_DIAGNOSTICS: what the operator would want to read in the agent's log. */
  diagnostics(): object;
  /** Closes listeners and connections. */
  close(): Promise<void>;
}
