/**
 * Decides when the backlog is written: one segment at a time, while the next one is being folded. The slower the store,
 * the more its next write holds, within a bound. Not the folding (`backlog.ts`).
 */
import type { RecordedCommand } from '../../kernel/event.js';
import type { ResumePoint } from '../../storage/event-store.js';
import type { Backlog, Segment } from './backlog.js';
import { tuning } from '../tuning.js';

export interface WriteBehindDeps {
  readonly backlog: Backlog;
  readonly signal: AbortSignal;
  /** Tries until it works or the signal aborts. @throws when a retry cannot help */
  persist(what: string, turn: () => Promise<void>): Promise<void>;
  onWritten(segment: Segment): void;
  /** Queries see everything up to the point. */
  onPassed(point: ResumePoint): void;
  /** A write failed for good in the background; the next call throws its error. */
  onFailure(): void;
}

export interface WriteBehind {
  /**
   * Folds commands; starts a write if one is due, and waits while there is no room. @throws when a retry cannot help
   */
  add(commands: readonly RecordedCommand[]): Promise<void>;
  /** The log has been read up to this point. */
  passed(point: ResumePoint): void;
  /** Returns once queries see everything, or the signal aborts. */
  flush(): Promise<void>;
  /** Call it after the signal has aborted: waits for the running write only. Never rejects. */
  close(): Promise<void>;
}

export function createWriteBehind(deps: WriteBehindDeps): WriteBehind {
  const { backlog, signal } = deps;
  let writing: Promise<void> | undefined;
  let failure: { readonly error: unknown } | undefined;
  let point: ResumePoint | undefined;
  let timer: NodeJS.Timeout | undefined;

  function throwIfFailed(): void {
    if (failure !== undefined) throw failure.error;
  }

  function start(): void {
    clearTimeout(timer);
    timer = undefined;
    const segment = backlog.take();
    const upTo = point;
    point = undefined;
    writing = (async () => {
      try {
        await deps.persist('applying events', () => backlog.write(segment));
        if (signal.aborted) return;
        if (segment.commands.length > 0) deps.onWritten(segment);
        if (upTo !== undefined) deps.onPassed(upTo);
      } catch (error) {
        failure = { error };
        deps.onFailure();
      } finally {
        writing = undefined;
      }
    })();
  }

  /** Writes a small backlog too, when the log falls silent before its end is reached. */
  function startSoon(): void {
    timer ??= setTimeout(() => {
      timer = undefined;
      if (writing === undefined && failure === undefined && !signal.aborted && backlog.events() > 0) start();
    }, tuning.backlogMs);
  }

  async function flush(): Promise<void> {
    for (;;) {
      await writing;
      throwIfFailed();
      if (signal.aborted || (backlog.events() === 0 && point === undefined)) return;
      start();
    }
  }

  return {
    async add(commands) {
      // A segment ends between two of these calls, never inside one.
      clearTimeout(timer);
      timer = undefined;
      await deps.persist('folding events', () => backlog.add(commands));
      throwIfFailed();
      if (signal.aborted) return;
      if (backlog.poisoned()) return flush();
      if (backlog.full()) {
        await writing;
        throwIfFailed();
      }
      if (signal.aborted) return;
      if (writing === undefined && backlog.full()) start();
      else startSoon();
    },
    passed(next) {
      if (writing !== undefined || backlog.events() > 0) point = next;
      else deps.onPassed(next);
    },
    flush,
    async close() {
      clearTimeout(timer);
      timer = undefined;
      await writing;
    },
  };
}
