/**
 * When apply reports are processed. During a fan-out they wait, because handling an agent's answer costs more than the push to
 * the next agent. Afterwards, or after a bounded wait, they pass in order of arrival, a few per turn of the event loop. Sessions
 * bound how many can wait. Implements `docs/architecture.md#a-push`.
 */
import { yieldToEventLoop } from '../kernel/background.js';

/** Apply reports per turn of the event loop. @internal exported for tests */
export const sliceReports = 32;
/** How long a fan-out may delay them: longer than a fan-out to all nodes, shorter than any presence lease. @internal exported for tests */
export const reportTurnMs = 2_000;

export type ReportTurns = ReturnType<typeof createReportTurns>;

/** @param busy true while a change is fanned out */
export function createReportTurns(busy: () => boolean) {
  let waiting: (() => void)[] = [];
  let passing = false;
  let closed = false;
  let deadline: NodeJS.Timeout | undefined;

  const pass = async (): Promise<void> => {
    if (passing || waiting.length === 0) return;
    passing = true;
    clearTimeout(deadline);
    deadline = undefined;
    const all = waiting;
    waiting = [];
    for (let place = 0; place < all.length; place += 1) {
      if (place % sliceReports === 0 && !closed) await yieldToEventLoop();
      all[place]?.();
    }
    passing = false;
    if (waiting.length === 0) return;
    if (busy() && !closed) deadline ??= setTimeout(() => void pass(), reportTurnMs);
    else void pass();
  };

  return {
    /** Resolves when the report may be processed; undefined: now. */
    turn(): Promise<void> | undefined {
      if (closed || (!passing && waiting.length === 0 && !busy())) return undefined;
      return new Promise((resolve) => {
        waiting.push(resolve);
        if (!passing) deadline ??= setTimeout(() => void pass(), reportTurnMs);
      });
    },
    /** The fan-out has ended. */
    wake: (): void => void pass(),
    /** Lets everything pass at once. */
    close(): void {
      closed = true;
      void pass();
    },
  };
}
