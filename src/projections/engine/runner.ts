/**
 * Follows the log once for all read models, applies commands in bounded batches, writes the checkpoint last, and reports its
 * progress. Retries while a store is away; stops for good at an unknown event. Implements `docs/architecture.md#read-models`
 * and `docs/contract/domain.md#commands-and-events`.
 */
import { readCommand, UnknownEventError } from '../../domain/log/upcast.js';
import { sleep, withFirstOf } from '../../kernel/background.js';
import { unreachable } from '../../kernel/errors.js';
import { allStreams, type RecordedCommand } from '../../kernel/event.js';
import { createKeyedBatch, type KeyedBatch } from '../../kernel/keyed-batch.js';
import type { Logger } from '../../kernel/logger.js';
import { runsOf } from '../../kernel/maps.js';
import { backoff, storeRetry } from '../../kernel/retry.js';
import { BrokenLogError, levelOf } from '../../storage/broken-log.js';
import { passedBy, type EventStore, type ResumePoint } from '../../storage/event-store.js';
import { followLog, type FollowItem } from '../../storage/follow.js';
import type { Checkpoint, ReadStore } from '../../storage/read-store.js';
import { applyCommands, type ApplyTarget } from './apply.js';
import { anchored, AnotherLogError, createAnchors } from './another-log.js';
import { ProjectionsStopped, shortError } from './fold.js';
import type { Progress, StatusBoard } from './progress.js';
import { groupName } from '../read-models.js';
import { tuning } from '../tuning.js';

export interface RunnerDeps {
  readonly eventStore: EventStore;
  readonly readStore: ReadStore;
  readonly logger: Logger;
  readonly version: number;
  readonly target: ApplyTarget;
  readonly progress: Progress;
  readonly status: StatusBoard;
  /** Where to continue, from the stored checkpoint. */
  readonly after: Checkpoint | 'start';
  /** The read models and their checkpoint have reached the end of the log. May be called more than once. */
  onCaughtUp(): Promise<void>;
  /** Called when the runner has stopped at another log; the sentence has no full stop. */
  onAnotherLog?(sentence: string): void;
}

export interface Runner {
  /** The point up to which everything is handled. */
  handled(): ResumePoint | 'start';
  /** Resolves when the runner has stopped: closed, or for the reason in the status. */
  readonly ended: Promise<void>;
  close(): Promise<void>;
}

/** The commands in their current shapes, up to the first one that this release cannot read. */
function readPart(commands: readonly RecordedCommand[]): {
  readonly readable: readonly RecordedCommand[];
  readonly failure?: { readonly error: unknown };
} {
  const readable: RecordedCommand[] = [];
  try {
    for (const command of commands) readable.push(readCommand(command));
    return { readable };
  } catch (error) {
    return { readable, failure: { error } };
  }
}

/** Writes the newest checkpoint, a little late: folding events again changes nothing. */
function createCheckpoints({ readStore, version, logger }: RunnerDeps): KeyedBatch<Checkpoint> {
  return createKeyedBatch<Checkpoint>({
    everyMs: tuning.checkpointEveryMs,
    batchEntries: 1,
    maxEntries: 1,
    retry: storeRetry,
    closeWithinMs: tuning.closeWithinMs,
    async write(entries) {
      for (const [, checkpoint] of entries) await readStore.saveCheckpoint(groupName, version, checkpoint);
    },
    onError: (error) => logger.warn({ error: shortError(error) }, 'the checkpoint of the read models is late'),
  });
}

/**
 * Retries until it works or the signal aborts: no event is ever skipped.
 * @returns how many tries failed
 * @throws ProjectionsStopped
 */
async function untilItWorks(
  what: string,
  turn: () => Promise<void>,
  { logger, status }: RunnerDeps,
  signal: AbortSignal,
): Promise<number> {
  for (let failures = 0; ; failures += 1) {
    if (signal.aborted) return failures;
    try {
      await turn();
      if (failures > 0) logger.info({ tries: failures }, `${what}: works again`);
      return failures;
    } catch (error) {
      if (error instanceof ProjectionsStopped) throw error;
      // Logged once: the status has the newest error.
      if (failures === 0) logger.warn({ error: shortError(error) }, `${what}: failed and is tried until it works`);
      status.set({ caughtUp: false, lastError: shortError(error) });
      await sleep(backoff(storeRetry, failures), signal);
    }
  }
}

/** The runner has stopped for good. */
function tellEnd(error: unknown, { logger, status, onAnotherLog }: RunnerDeps): void {
  const unknownEvent = error instanceof UnknownEventError ? error.eventType : null;
  const isAnother = error instanceof AnotherLogError;
  const brokenLog = error instanceof BrokenLogError && !isAnother ? error.message : null;
  logger[levelOf(error)](
    { error: shortError(error), unknownEvent },
    'the read models stopped, and stay at their last position',
  );
  status.set({ caughtUp: false, unknownEvent, brokenLog, lastError: shortError(error) });
  if (isAnother) onAnotherLog?.(error.message);
}

export function startRunner(deps: RunnerDeps): Runner {
  const { eventStore, logger, progress, status, target } = deps;
  const stop = new AbortController();
  let handled: ResumePoint | 'start' = deps.after;
  const anchors = createAnchors(deps.after === 'start' ? [] : deps.after.anchors);
  const log = anchored(eventStore, anchors);
  /** The subscription is open and has reached the end of the log once. */
  let live = false;
  /** The read store was away and events have piled up: only a new subscription reports when it reaches the end. */
  let behind = false;
  let dropped = false;

  const checkpoints = createCheckpoints(deps);

  const handle = (point: ResumePoint): void => {
    handled = point;
    checkpoints.put('point', { ...point, anchors: anchors.current() });
  };

  async function persist(what: string, turn: () => Promise<void>): Promise<void> {
    const failures = await untilItWorks(what, turn, deps, stop.signal);
    if (stop.signal.aborted) return;
    if (failures > 0) behind = true;
    if (live || failures > 0) status.set({ caughtUp: live && !behind, lastError: null });
  }

  async function applyPart(commands: readonly RecordedCommand[]): Promise<void> {
    const { readable, failure } = readPart(commands);
    if (readable.length > 0) await persist('applying events', () => applyCommands(target, readable));
    if (stop.signal.aborted) return;
    const last = readable.at(-1)?.events.at(-1);
    if (last !== undefined) {
      anchors.note(readable);
      handle({ commit: last.position, prepare: last.position });
      progress.applied(readable);
    }
    if (failure !== undefined) throw failure.error;
  }

  async function take(item: FollowItem): Promise<void> {
    switch (item.kind) {
      case 'commands':
        for (const part of runsOf(item.commands, ({ events }) => events.length, tuning.batchEvents)) {
          await applyPart(part);
          if (stop.signal.aborted) return;
        }
        // The item's point belongs to its last command.
        return;
      case 'checkpoint':
        handle(item.point);
        return progress.passed(passedBy(item.point));
      case 'caught_up':
        await persist('writing the checkpoint', async () => {
          await checkpoints.flush();
          await deps.onCaughtUp();
        });
        if (stop.signal.aborted || behind) return;
        if (dropped) logger.info({}, 'the read models are subscribed again');
        [live, dropped] = [true, false];
        return status.set({ caughtUp: true, lastError: null });
      case 'dropped':
        // Logged once; later items are failed attempts to subscribe again.
        if (!dropped) logger.warn({ error: shortError(item.cause) }, 'the subscription of the read models dropped');
        [live, dropped] = [false, true];
        return status.set({ caughtUp: false, lastError: shortError(item.cause) });
      default:
        return unreachable(item);
    }
  }

  /** Follows until closed, or until the read models are behind and need a new subscription to find the log's end. */
  async function follow(): Promise<void> {
    [behind, live] = [false, false];
    await withFirstOf([stop.signal], async (signal) => {
      for await (const item of followLog(log, { streams: allStreams, after: handled, signal })) {
        await take(item);
        if (stop.signal.aborted || behind) break;
      }
    });
  }

  async function run(): Promise<void> {
    try {
      while (!stop.signal.aborted) await follow();
    } catch (error) {
      tellEnd(error, deps);
    }
  }

  const running = run();
  return {
    handled: () => handled,
    ended: running,
    async close() {
      stop.abort();
      await running;
      await checkpoints.close();
    },
  };
}
