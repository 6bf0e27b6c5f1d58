/**
 * The progress of the read models: their status, and the callers that wait to read their own writes. The number of waits is
 * bounded, and every wait ends. Implements `docs/contract/rest.md#consistency`.
 */
import { lastEvent, type RecordedCommand } from '../../kernel/event.js';
import { jsonEqual } from '../../kernel/json.js';
import { createListeners } from '../../kernel/listeners.js';
import { logsError, type Logger } from '../../kernel/logger.js';
import { createWaiters } from '../../kernel/waiters.js';
import type { ParkedEntity, ProjectionStatus } from '../port.js';
import { tuning } from '../tuning.js';

export interface Progress {
  /** The read models hold everything up to this log position that concerns them. */
  position(): number;
  /** The latest time of an event that was applied since the start, in milliseconds since the epoch. */
  newestAt(): number | undefined;
  applied(commands: readonly RecordedCommand[]): void;
  /** The read models have everything in the log up to here. */
  passed(position: number): void;
  /** Resolves true once the position is passed; false after `timeoutMs`, or at once when too many wait. */
  untilPosition(position: number, timeoutMs: number): Promise<boolean>;
  /** True while somebody waits for a position. */
  awaited(): boolean;
  /** Resolves all waits to false. */
  close(): void;
}

export function createProgress(start: number): Progress {
  let position = start;
  let awaitingPosition = 0;
  let newestAt: number | undefined;
  const waiters = createWaiters(tuning.waiters);

  return {
    position: () => position,
    newestAt: () => newestAt,
    applied(commands) {
      for (const command of commands) {
        const last = lastEvent(command);
        position = Math.max(position, last.position);
        newestAt = Math.max(Date.parse(last.metadata.occurred_at), newestAt ?? Number.NEGATIVE_INFINITY);
      }
      waiters.look();
    },
    passed(next) {
      if (next <= position) return;
      position = next;
      waiters.look();
    },
    async untilPosition(wanted, timeoutMs) {
      awaitingPosition += 1;
      try {
        return await waiters.until(() => position >= wanted, timeoutMs);
      } finally {
        awaitingPosition -= 1;
      }
    },
    awaited: () => awaitingPosition > 0,
    close: () => waiters.close(),
  };
}

/** The status and its listeners. A new position alone is not a change. */
export interface StatusBoard {
  current(): ProjectionStatus;
  set(change: Partial<Omit<ProjectionStatus, 'position'>>): void;
  onChange(listener: (status: ProjectionStatus) => void): () => void;
}

export function createStatusBoard(
  position: () => number,
  parked: () => readonly ParkedEntity[],
  logger: Logger,
): StatusBoard {
  let state: Omit<ProjectionStatus, 'position' | 'parked'> = {
    caughtUp: false,
    unknownEvent: null,
    brokenLog: null,
    lastError: null,
  };
  let lastReported: unknown;
  const listeners = createListeners<ProjectionStatus>(
    logsError(logger, 'a listener to the state of the projections failed'),
  );
  const current = (): ProjectionStatus => {
    return { ...state, position: position(), parked: parked() };
  };
  return {
    current,
    set(change) {
      state = { ...state, ...change };
      const summary = { ...state, parked: parked().length };
      if (jsonEqual(lastReported, summary)) return;
      lastReported = summary;
      listeners.tell(current());
    },
    onChange: listeners.add,
  };
}
