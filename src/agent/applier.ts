/**
 * Applies snapshots one after the other: one is being applied, at most one waits, a newer one takes its place.
 * Lives longer than sessions, so an apply outlasts the connection that brought it.
 */
import type { ConfigApplyReport, RuntimeConfigSnapshot } from '../gen/svc/control/v1/config.js';
import type { Gateway } from './gateway.js';

export interface Applier {
  offer(snapshot: RuntimeConfigSnapshot): void;
  /** The last report made, for the next session to repeat. */
  readonly lastReport: ConfigApplyReport | undefined;
  /** Takes nothing more, and waits for the apply that runs. */
  close(): Promise<void>;
}

/** `onReport` is called after each apply; `onError` when the gateway threw, which leaves its configuration unknown. */
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
