/**
 * When what was folded ahead is written: one segment at a time, while the next one is being folded. The slower the
 * store, the more comes together for its next write, within a bound. Not the folding (`backlog.ts`).
 */
import type { RecordedCommand } from '../../kernel/event.js';
import type { ResumePoint } from '../../storage/event-store.js';
import type { Backlog, Segment } from './backlog.js';
import { tuning } from '../tuning.js';

export interface WriteBehindDeps {
  readonly backlog: Backlog;
  readonly signal: AbortSignal;
  /** Tries until it works or the signal aborts. @throws when a retry can't help */
  persist(what: string, turn: () => Promise<void>): Promise<void>;
  onWritten(segment: Segment): void;
  /** Everything up to the point has been written. */
  onPassed(point: ResumePoint): void;
  /** It failed for good while nobody waited for it: the next call throws that. */
  onFailure(): void;
}

export interface WriteBehind {
  /** Folds them; begins to write if it is time, waits if there is no room. @throws when a retry can't help */
  add(commands: readonly RecordedCommand[]): Promise<void>;
  /** The log has been looked at up to there. */
  passed(point: ResumePoint): void;
  /** Returns when all is written, or the signal aborts. */
  flush(): Promise<void>;
  /** Waits for the write that is under way, nothing more; after the signal aborted. Never rejects. */
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

  /** What waits is not left lying when the log falls silent before its end is reached. */
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
      if (backlog.events() >= tuning.backlogEvents) {
        await writing;
        throwIfFailed();
      }
      if (signal.aborted) return;
      if (writing === undefined && backlog.events() >= tuning.batchEvents) start();
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
