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
import {
  afterApplied,
  afterConfirmed,
  afterGoingBack,
  goesBackAt,
  nothingKept,
  type Confirming,
} from './confirming.js';

/** How long to wait after a failed attempt to go back before the next one. */
const tryAgainMs = 5_000;
const longestTimerMs = 3_600_000;

export interface Applier {
  /** Resolves once the agent has gone back from a configuration whose time was already up at the start. */
  readonly ready: Promise<void>;
  offer(snapshot: RuntimeConfigSnapshot): void;
  /** The service has confirmed a generation. */
  confirmed(generation: bigint): void;
  /** The last report, which the next session repeats. */
  readonly lastReport: ConfigApplyReport | undefined;
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
  let lastReport: ConfigApplyReport | undefined;
  let running: Promise<void> | undefined;
  let closed = false;
  let state = nothingKept;
  /** What the file says; undefined for no file. */
  let saved: Confirming | undefined;
  let notBefore = 0;
  let timer: NodeJS.Timeout | undefined;

  const report = (next: ConfigApplyReport, wentBack: boolean): void => {
    lastReport = next;
    const isApplied = next.status === ConfigApplyStatus.APPLIED;
    onReport(next, { goesBackLater: isApplied && goesBackAt(state) !== undefined, wentBack });
  };

  const save = async (next: Confirming): Promise<void> => {
    const { last, waiting } = next;
    const isNeeded = last !== undefined && waiting !== undefined;
    if (file === undefined || (!isNeeded && saved === undefined)) return;
    if (last === saved?.last && waiting?.generation === saved?.waiting?.generation) return;
    try {
      await (isNeeded ? file.write(last, waiting) : file.remove());
      saved = isNeeded ? next : undefined;
    } catch (error) {
      logger.warn({ error: errorText(error) }, 'what waits for a confirmation would not survive a restart');
    }
  };

  const apply = async (snapshot: RuntimeConfigSnapshot): Promise<void> => {
    // Saved before it is applied, because applying it may end this process.
    await save(afterApplied(state, snapshot, clock.monotonic()));
    try {
      const outcome = await gateway.apply(snapshot);
      if (outcome?.status === ConfigApplyStatus.APPLIED) state = afterApplied(state, snapshot, clock.monotonic());
      if (outcome !== undefined) report(outcome, false);
    } finally {
      await save(state);
    }
  };

  const goBack = async ({ last, waiting }: Confirming): Promise<void> => {
    if (last === undefined || waiting === undefined) return;
    const { generation, checksum, secs } = waiting;
    notBefore = clock.monotonic() + tryAgainMs;
    const outcome = await gateway.apply(last, true);
    if (outcome?.status !== ConfigApplyStatus.APPLIED) return;
    state = afterGoingBack(state);
    logger.warn({ generation: String(generation), back_to: String(last.generation) }, `not confirmed in ${secs} s`);
    const error = { resourceType: '', resourceId: '', path: '', message: `not confirmed in ${secs} s` };
    report({ generation, checksum, status: ConfigApplyStatus.REJECTED, errors: [error], durationMs: 0n }, true);
    await save(state);
  };

  /** Monotonic milliseconds; undefined for never. */
  const dueAt = (): number | undefined => {
    const due = goesBackAt(state);
    return due === undefined ? undefined : Math.max(due, notBefore);
  };

  const run = async (): Promise<void> => {
    while (!closed) {
      const snapshot = offered;
      offered = undefined;
      try {
        if (snapshot !== undefined) await apply(snapshot);
        else if (clock.monotonic() >= (dueAt() ?? Infinity)) await goBack(state);
        else break;
      } catch (error) {
        logger.error({ error: errorText(error) }, 'cannot apply a snapshot');
      }
    }
  };
  const settled = (): void => {
    running = undefined;
    if (offered !== undefined) wake();
    else arm();
  };
  const wake = (): void => void (running ??= run().finally(settled));

  const arm = (): void => {
    clearTimeout(timer);
    const due = dueAt();
    if (closed || due === undefined) return;
    // Checked again every hour, because a timer cannot wait for an arbitrarily long time.
    timer = setTimeout(wake, Math.min(Math.max(0, due - clock.monotonic()), longestTimerMs));
    timer.unref();
  };

  const restore = async (): Promise<void> => {
    try {
      saved = await file?.read(clock.monotonic());
      state = saved ?? state;
    } catch (error) {
      logger.warn({ error: errorText(error) }, 'what waited for a confirmation cannot be read');
    }
    await run();
  };
  running = restore().finally(settled);

  return {
    ready: running,
    get lastReport() {
      return lastReport;
    },
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
      // An apply under way saves it with its own outcome.
      running ??= save(state).then(run).finally(settled);
    },
    async close() {
      closed = true;
      offered = undefined;
      clearTimeout(timer);
      await running;
    },
  };
}
