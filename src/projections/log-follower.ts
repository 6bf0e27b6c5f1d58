/**
 * The one subscription behind everything in memory: reads the streams of all folds together and gives each fold the whole
 * commands of its own streams. The stored read models have their own subscription, because they wait for their store
 * (`engine/runner.ts`). Implements `docs/architecture.md#read-models`.
 */
import { sleep } from '../kernel/background.js';
import { errorText, unreachable } from '../kernel/errors.js';
import type { RecordedCommand } from '../kernel/event.js';
import type { Logger } from '../kernel/logger.js';
import { backoff, storeRetry } from '../kernel/retry.js';
import { limits } from '../kernel/limits.js';
import type { EventStore, ResumePoint } from '../storage/event-store.js';
import { BrokenLogError, ForeignEventError } from '../storage/broken-log.js';
import { commandsAfter, followLog } from '../storage/follow.js';
import { createCheckpointWriter, type StoredFold } from './checkpoints.js';
import { createLogConnection, type LogDistance } from './log-connection.js';
import { tuning } from './tuning.js';

/** Something folded in memory from some streams. */
export interface LogFold {
  readonly streams: readonly string[];
  /** Revision of the last folded event of one of its streams; -1 before any. */
  revision(stream: string): number;
  /** Log position of the last folded event; 0 before any. */
  position(): number;
  /** Present on a fold that may begin at a stored checkpoint. */
  readonly save?: StoredFold['save'];
  /**
   * Folds whole commands of its streams, each completely or not at all, and skips those that it has.
   * @throws MissingEventsError, BrokenChainError, UnknownEventError
   */
  apply(commands: readonly RecordedCommand[]): void | Promise<void>;
  /** Called after everything that arrives, with the distance to the log's end. @param caughtUp the end was just reached */
  moved(distance: LogDistance, caughtUp: boolean): void;
  /** Called once when following stops for good. */
  stopped(error: unknown): void;
}

/** Revisions are missing. The subscription may have lost them, so they are read again. */
export class MissingEventsError extends Error {}

export interface LogFollowerDeps {
  readonly eventStore: EventStore;
  readonly logger: Logger;
  /** The subscription begins at the oldest checkpoint of the folds with `save`; the other folds are read up to there first. */
  readonly folds: readonly LogFold[];
  /** Events between two checkpoints. */
  readonly checkpointEvery?: number | undefined;
  /** How long a dropped subscription still counts as near the end of the log, in milliseconds. */
  readonly graceMs?: number | undefined;
}

export interface LogFollower {
  close(): Promise<void>;
}

/** An error of one fold. */
class FoldError extends Error {
  readonly fold: LogFold;

  constructor(fold: LogFold, cause: unknown) {
    super(errorText(cause), { cause });
    this.fold = fold;
  }
}

/** @throws FoldError */
async function give(fold: LogFold, commands: readonly RecordedCommand[]): Promise<void> {
  const own = commands.filter(({ stream }) => fold.streams.includes(stream));
  if (own.length === 0) return;
  try {
    await fold.apply(own);
  } catch (error) {
    throw new FoldError(fold, error);
  }
}

/**
 * Reads the log before the oldest checkpoint into the folds that have none.
 * @returns the place of that checkpoint, where all of them go on
 * @throws FoldError, ServiceError
 */
async function readFirst(
  eventStore: LogFollowerDeps['eventStore'],
  folds: readonly LogFold[],
): Promise<ResumePoint | 'start'> {
  const begin = oldestOf(folds.filter(isStored));
  if (begin === 'start') return begin;
  for (const fold of folds.filter((one) => !isStored(one))) {
    for (const stream of fold.streams) {
      for await (const commands of commandsAfter(eventStore, stream, fold.revision(stream))) {
        await give(fold, commands);
      }
    }
  }
  return begin;
}

/** Begins to follow the log. */
export function followInMemory({ eventStore, logger, folds, ...options }: LogFollowerDeps): LogFollower {
  const stop = new AbortController();
  const checkpoints = createCheckpointWriter({
    folds: folds.filter(isStored),
    logger,
    every: options.checkpointEvery ?? limits.events.foldCheckpointEvery,
    everyStart: tuning.replayWorthCheckpoint,
  });
  let followed: readonly LogFold[] = folds;
  const tell = (caughtUp: boolean): void => {
    for (const fold of followed) fold.moved(connection.distance(), caughtUp);
    // A start needs the checkpoints of all folds, and a stopped one writes none.
    if (connection.distance() === 'live' && followed.length === folds.length) checkpoints.writeIfDue();
  };
  const connection = createLogConnection({
    logger,
    graceMs: options.graceMs ?? tuning.dropGraceMs,
    onGraceEnd: () => tell(false),
  });
  /** Everything up to here is folded. */
  let point: ResumePoint | 'start' = 'start';

  /** @throws FoldError, BrokenLogError */
  async function subscribe(): Promise<void> {
    const streams = [...new Set(followed.flatMap((fold) => fold.streams))];
    for await (const item of followLog(eventStore, { streams, after: point, signal: stop.signal })) {
      switch (item.kind) {
        case 'commands':
          connection.heard();
          for (const fold of followed) await give(fold, item.commands);
          checkpoints.folded(item.commands.reduce((sum, { events }) => sum + events.length, 0));
          point = item.point;
          break;
        case 'checkpoint':
          connection.heard();
          point = item.point;
          break;
        case 'caught_up':
          connection.caughtUp();
          break;
        case 'dropped':
          connection.dropped(item.cause);
          break;
        default:
          unreachable(item);
      }
      tell(item.kind === 'caught_up');
    }
  }

  function end(ended: readonly LogFold[], error: unknown): void {
    followed = followed.filter((fold) => !ended.includes(fold));
    for (const fold of ended) fold.stopped(error);
  }

  async function run(): Promise<void> {
    let read = false;
    let failures = 0;
    let loss = '';
    while (!stop.signal.aborted && followed.length > 0) {
      try {
        if (!read) point = await readFirst(eventStore, followed);
        read = true;
        await subscribe();
        return;
      } catch (error) {
        const fold = error instanceof FoldError ? error.fold : undefined;
        const cause = error instanceof FoldError ? error.cause : error;
        const isLoss = cause instanceof MissingEventsError || cause instanceof BrokenLogError;
        if (cause instanceof ForeignEventError) {
          end(
            followed.filter(({ streams }) => streams.includes(cause.event.stream)),
            cause,
          );
        } else if (fold === undefined && !isLoss) {
          // The log is out of reach.
          logger.warn({ error: errorText(error) }, 'the event log cannot be read yet');
          await sleep(backoff(storeRetry, (failures += 1)), stop.signal);
        } else if (isLoss && loss !== errorText(cause)) {
          loss = errorText(cause);
          logger.error({ error: loss }, 'events are missing; the log is read again from before them');
          if (fold !== undefined) point = pointOf(fold);
          connection.reset();
          tell(false);
        } else {
          end(fold === undefined ? followed : [fold], cause);
        }
      }
    }
  }

  const running = run();
  return {
    async close() {
      stop.abort();
      connection.close();
      await Promise.all([running, checkpoints.close()]);
    },
  };
}

function isStored(fold: LogFold): fold is LogFold & StoredFold {
  return fold.save !== undefined;
}

function pointOf(fold: LogFold): ResumePoint | 'start' {
  const at = fold.position();
  return at === 0 ? 'start' : { commit: at, prepare: at };
}

/** The oldest place of the folds. */
function oldestOf(folds: readonly LogFold[]): ResumePoint | 'start' {
  let oldest: ResumePoint | 'start' | undefined;
  for (const point of folds.map(pointOf)) {
    if (point === 'start') return point;
    if (oldest === undefined || oldest === 'start' || point.commit < oldest.commit) oldest = point;
  }
  return oldest ?? 'start';
}
