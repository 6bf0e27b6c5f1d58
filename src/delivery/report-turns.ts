/**
 * When apply reports are worked on. While a change is fanned out they wait, because every agent that has it answers at
 * once, and what follows from an answer (facts, the last-good snapshot, read models) costs more than the push to the
 * next agent. Afterwards, and when the first has waited long enough, they pass in order of arrival, a few in each turn
 * of the event loop. Bounded by the reports that sessions may have waiting. Implements `docs/architecture.md#a-push`.
 */
import { yieldToEventLoop } from '../kernel/background.js';

/** Apply reports that are worked on before the event loop gets a turn. @internal exported for tests */
export const sliceReports = 32;
/** How long a fan-out may hold them up: longer than one of all nodes takes, shorter than any node's presence lease. @internal exported for tests */
export const reportTurnMs = 2_000;

export interface ReportTurns {
  /** Resolves when the report may be worked on; undefined if it may be at once. */
  turn(): Promise<void> | undefined;
  /** The fan-out has come to its end. */
  wake(): void;
  /** Lets everything pass at once. */
  close(): void;
}

/** @param busy true while a change is fanned out */
export function createReportTurns(busy: () => boolean): ReportTurns {
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
    turn() {
      if (closed || (!passing && waiting.length === 0 && !busy())) return undefined;
      return new Promise((resolve) => {
        waiting.push(resolve);
        if (!passing) deadline ??= setTimeout(() => void pass(), reportTurnMs);
      });
    },
    wake: () => void pass(),
    close() {
      closed = true;
      void pass();
    },
  };
}
