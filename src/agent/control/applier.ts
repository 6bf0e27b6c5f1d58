/**
 * Applies snapshots one after the other, and goes back when one is not confirmed in time. While one is being applied, at most one
 * waits, and a newer one replaces it. Outlives sessions, so that a lost connection interrupts nothing. `confirming.ts` has the
 * rule. Implements `docs/contract/agent-protocol.md#configuration` and `docs/contract/rollouts.md#confirmed-changes`.
 */
import {
  ConfigApplyStatus,
  type ConfigApplyReport,
  type RuntimeConfigSnapshot,
} from '../../gen/svc/control/v1/config.js';
import type { Clock } from '../../kernel/clock.js';
import { errorText } from '../../kernel/errors.js';
import type { Logger } from '../../kernel/logger.js';
import type { Gateway } from '../gateway.js';
import type { UnconfirmedFile } from '../unconfirmed-file.js';
import { afterApplied, afterConfirmed, afterGoingBack, goesBackAt, nothingKept, type Waiting } from './confirming.js';

/** How long to wait after a failed attempt to go back before the next one. */
const tryAgainMs = 5_000;
const longestTimerMs = 3_600_000;

export interface Applier {
  /** Resolves once the agent has gone back from a configuration whose time was already up at the start. */
  readonly ready: Promise<void>;
  offer(snapshot: RuntimeConfigSnapshot): void;
  /** The service has confirmed a generation. */
  confirmed(generation: bigint): void;
  /** Accepts no more snapshots and waits for the running apply. */
  close(): Promise<void>;
}

/** The meaning of a report for the agent itself. */
export interface Reported {
  /** The applied configuration waits for a confirmation; without one, the agent goes back. */
  readonly goesBackLater: boolean;
  readonly wentBack: boolean;
}

export interface ApplierOptions {
  readonly gateway: Pick<Gateway, 'apply'>;
  /** Keeps an unconfirmed configuration across restarts; undefined: it is not kept. */
  readonly file: UnconfirmedFile | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Called after each apply, and after going back. */
  onReport(report: ConfigApplyReport, about: Reported): void;
}

export function createApplier({ gateway, file, clock, logger, onReport }: ApplierOptions): Applier {
  let offered: RuntimeConfigSnapshot | undefined;
  let running: Promise<void> | undefined;
  let closed = false;
  let state = nothingKept;
  let timer: NodeJS.Timeout | undefined;

  const apply = async (snapshot: RuntimeConfigSnapshot): Promise<void> => {
    // Saved before it is applied, because applying it may end this process.
    await file?.save(afterApplied(state, snapshot, clock.monotonic()));
    try {
      const outcome = await gateway.apply(snapshot);
      const isApplied = outcome?.status === ConfigApplyStatus.APPLIED;
      if (isApplied) state = afterApplied(state, snapshot, clock.monotonic());
      const goesBackLater = isApplied && goesBackAt(state) !== undefined;
      if (outcome !== undefined) onReport(outcome, { goesBackLater, wentBack: false });
    } finally {
      await file?.save(state);
    }
  };

  const goBack = async (): Promise<void> => {
    const { last, waiting } = state;
    if (last === undefined || waiting === undefined) return;
    state = { last, waiting: { ...waiting, due: clock.monotonic() + tryAgainMs } };
    const outcome = await gateway.apply(last, true);
    if (outcome?.status !== ConfigApplyStatus.APPLIED) return;
    if (state.waiting === undefined) {
      // It was confirmed meanwhile.
      offered ??= state.last;
      return;
    }
    state = afterGoingBack(state);
    const message = `not confirmed in ${waiting.secs} s`;
    logger.warn({ generation: String(waiting.generation), back_to: String(last.generation) }, message);
    onReport(rejection(waiting, message), { goesBackLater: false, wentBack: true });
    await file?.save(state);
  };

  const run = async (): Promise<void> => {
    while (!closed) {
      const snapshot = offered;
      const before = state;
      offered = undefined;
      try {
        if (snapshot !== undefined) await apply(snapshot);
        else if (clock.monotonic() >= (goesBackAt(state) ?? Infinity)) await goBack();
        else {
          // A confirmation may have come since it was saved last, and another may come now.
          await file?.save(before);
          if (state === before && offered === undefined) break;
        }
      } catch (error) {
        logger.error({ error: errorText(error) }, 'cannot apply a snapshot');
      }
    }
    running = undefined;
    arm();
  };
  const wake = (): void => void (running ??= run());

  const arm = (): void => {
    clearTimeout(timer);
    const due = goesBackAt(state);
    if (closed || due === undefined) return;
    // Checked again every hour, because a timer cannot wait for an arbitrarily long time.
    timer = setTimeout(wake, Math.min(due - clock.monotonic(), longestTimerMs));
    timer.unref();
  };

  const restore = async (): Promise<void> => {
    state = (await file?.read()) ?? state;
    await run();
  };
  const ready = restore();
  running = ready;

  return {
    ready,
    offer(snapshot) {
      if (closed) return;
      offered = snapshot;
      wake();
    },
    confirmed(generation) {
      const next = afterConfirmed(state, generation);
      if (next === state) return;
      state = next;
      logger.info({ generation: String(generation) }, 'configuration confirmed');
      wake();
    },
    async close() {
      closed = true;
      offered = undefined;
      clearTimeout(timer);
      await running;
    },
  };
}

function rejection({ generation, checksum }: Waiting, message: string): ConfigApplyReport {
  const error = { resourceType: '', resourceId: '', path: '', message };
  return { generation, checksum, status: ConfigApplyStatus.REJECTED, errors: [error], durationMs: 0n };
}
