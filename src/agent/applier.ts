/**
 * Applies snapshots one after the other: while one is being applied, at most one waits, and a newer one replaces it.
 * Outlives sessions, so a lost connection does not interrupt an apply.
 */
import type { ConfigApplyReport, RuntimeConfigSnapshot } from '../gen/svc/control/v1/config.js';
import type { Gateway } from './gateway.js';

interface Applier {
  offer(snapshot: RuntimeConfigSnapshot): void;
  /** The last report, which the next session repeats. */
  readonly lastReport: ConfigApplyReport | undefined;
  /** Accepts no more snapshots and waits for the running apply. */
  close(): Promise<void>;
}

/**
 * @param onReport called after each apply
 * @param onError called if the gateway threw, which leaves its configuration unknown
 */
export function createApplier(
  gateway: Gateway,
  onReport: (report: ConfigApplyReport) => void,
  onError: (error: unknown) => void,
): Applier {
  let waiting: RuntimeConfigSnapshot | undefined;
  let lastReport: ConfigApplyReport | undefined;
  let running: Promise<void> | undefined;
  let closed = false;

  const run = async (): Promise<void> => {
    while (waiting !== undefined && !closed) {
      const snapshot = waiting;
      waiting = undefined;
      try {
        const report = await gateway.apply(snapshot);
        if (report !== undefined) {
          lastReport = report;
          onReport(report);
        }
      } catch (error) {
        onError(error);
      }
    }
    running = undefined;
  };

  return {
    get lastReport() {
      return lastReport;
    },
    offer(snapshot) {
      if (closed) return;
      waiting = snapshot;
      running ??= run();
    },
    async close() {
      closed = true;
      waiting = undefined;
      await running;
    },
  };
}
