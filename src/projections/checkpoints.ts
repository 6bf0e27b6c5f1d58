/**
 * Stores the in-memory folds after every so many events, in the background; the first time sooner, so that no start
 * repeats the previous start's replay. All are stored together, because a start reads the log from the oldest one.
 * Implements `docs/contract/domain.md#commands-and-events`.
 */
import { yieldToEventLoop } from '../kernel/background.js';
import { errorText } from '../kernel/errors.js';
import type { Logger } from '../kernel/logger.js';

/** A fold whose state can be stored. */
export interface StoredFold {
  /** Captures the state at once, and stores it. @throws ServiceError `unavailable` */
  save(signal: AbortSignal): Promise<void>;
}

export interface CheckpointWriter {
  /** Events have been folded. */
  folded(events: number): void;
  /** Stores the folds if enough events have passed. The first call comes when a start has caught up with the log. */
  writeIfDue(): void;
  /** Ends the write that is running, and waits for it. */
  close(): Promise<void>;
}

export interface CheckpointWriterDeps {
  readonly folds: readonly StoredFold[];
  readonly logger: Logger;
  /** Events between two checkpoints. */
  readonly every: number;
  /** A start that has replayed this many events writes a checkpoint. */
  readonly everyStart: number;
}

export function createCheckpointWriter({ folds, logger, every, everyStart }: CheckpointWriterDeps): CheckpointWriter {
  const stop = new AbortController();
  let passed = 0;
  let started = false;
  let writing: Promise<void> | undefined;

  async function write(): Promise<void> {
    // The fold that made it due may have taken a whole turn.
    await yieldToEventLoop();
    const saving = folds.map((fold) => fold.save(stop.signal));
    for (const outcome of await Promise.allSettled(saving)) {
      if (outcome.status === 'fulfilled') continue;
      logger.warn({ error: errorText(outcome.reason) }, 'a fold checkpoint was not written');
    }
    writing = undefined;
  }

  return {
    folded(events) {
      passed += events;
    },
    writeIfDue() {
      const due = started ? every : Math.min(every, everyStart);
      started = true;
      if (writing !== undefined || stop.signal.aborted || passed < due) return;
      passed = 0;
      writing = write();
    },
    async close() {
      stop.abort();
      await writing;
    },
  };
}
