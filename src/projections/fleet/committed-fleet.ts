/**
 * The committed fleet: what the log says that the fleet is, from a checkpoint and the tail that follows. It holds whole
 * commands only, and tells its listeners what each batch of them did. It decides nothing: the gateway decides on a draft
 * over it, and hands it what the log has taken. Its parts: `fold-batch.ts` applies commands, `log-connection.ts` and `serving-state.ts` judge whether
 * this instance may serve, `checkpoint-writer.ts` saves it. Implements `docs/architecture.md#one-fleet`.
 */
import { compilerVersion } from '../../domain/compile/version.js';
import { emptyFleet } from '../../domain/fleet/fleet.js';
import type { Fleet } from '../../domain/fleet/fleet.js';
import { BrokenChainError } from '../../domain/log-chain/links.js';
import { UnknownEventError } from '../../domain/log/upcast.js';
import { sleep } from '../../kernel/background.js';
import { errorText, unreachable } from '../../kernel/errors.js';
import type { RecordedCommand } from '../../kernel/event.js';
import { streams } from '../../kernel/event.js';
import { createListeners } from '../../kernel/listeners.js';
import { limits } from '../../kernel/limits.js';
import type { Logger } from '../../kernel/logger.js';
import type { LogChain } from '../../log-chain/log-chain.js';
import { createWaiters } from '../../kernel/waiters.js';
import type { EventStore } from '../../storage/event-store.js';
import { BrokenLogError, commandsAfter, followLog } from '../../storage/follow.js';
import { createCheckpointWriter } from './checkpoint-writer.js';
import { createServingState } from './serving-state.js';
import type { StoppedState } from './serving-state.js';
import { applyToFold, emptyFoldBatch, foldedFleet, MissingEventsError } from './fold-batch.js';
import type { FoldBatch, FoldedFleet } from './fold-batch.js';
import { loadFleet } from './fold-checkpoint.js';
import { createLogConnection } from './log-connection.js';
import type { ServingState } from '../port.js';
import { tuning } from '../tuning.js';

export interface CommittedFleet {
  /** The current fleet. Do not store it: a replay replaces it, once it has come as far. */
  fleet(): Fleet;
  state(): ServingState;
  /** Told of each batch before anything that waits for it continues. @returns how to stop, as the two below */
  onBatch(listener: (batch: FoldBatch) => void): () => void;
  onStateChange(listener: (state: ServingState) => void): () => void;
  /** Told when the fleet has become up to date. */
  onUpToDate(listener: () => void): () => void;
  /** True when ready and at the end of the log: only then may anything be pushed. */
  upToDate(): boolean;
  /** Folds commands that the log has taken right behind the fleet, before its subscription delivers them. */
  fold(commands: readonly RecordedCommand[]): void;
  /** Reads the log from the fleet to its end. @throws ServiceError `unavailable`, BrokenChainError, UnknownEventError */
  catchUp(): Promise<void>;
  /** Resolves true once the fleet has passed the revision of `svc-fleet`, false after `timeoutMs`. */
  passed(revision: number, timeoutMs: number): Promise<boolean>;
  /** Resolves true once the condition holds, false after `timeoutMs` or on close. Checked after each batch. */
  until(condition: () => boolean, timeoutMs: number): Promise<boolean>;
  /** Begins to follow the log; no callback is called before. */
  start(): void;
  close(): Promise<void>;
}

export interface CommittedFleetDeps {
  readonly eventStore: EventStore;
  readonly logger: Logger;
  readonly logChain: LogChain;
  /** Fleet events between two checkpoints. */
  readonly checkpointEvery?: number | undefined;
  /** This release's compiler version; tests pass another. */
  readonly compilerVersion?: number | undefined;
  /** How long the instance counts as ready after its subscription drops, in milliseconds. */
  readonly dropGraceMs?: number | undefined;
}

/** Loads the checkpoint; `start` begins to catch up. @throws ServiceError `unavailable` */
export async function openCommittedFleet(deps: CommittedFleetDeps): Promise<CommittedFleet> {
  const { eventStore, logger, logChain } = deps;
  const stop = new AbortController();
  const waiters = createWaiters();
  const onListenerError = (error: unknown): void =>
    logger.error({ error: errorText(error) }, 'a listener of the committed fleet failed');
  const batchListeners = createListeners<FoldBatch>(onListenerError);
  const stateListeners = createListeners<ServingState>(onListenerError);
  const upToDateListeners = createListeners<undefined>(onListenerError);
  const tellUpToDate = (): void => upToDateListeners.tell(undefined);
  /** What the subscription is folded into. */
  let reading = foldedFleet((await loadFleet(eventStore, logChain, logger)) ?? emptyFleet());
  /** What is shown: not the fleet of a replay that has not come as far yet. */
  let shown = reading;
  const checkpoints = createCheckpointWriter({
    eventStore,
    logger,
    logChain,
    every: deps.checkpointEvery ?? limits.events.foldCheckpointEvery,
    everyStart: tuning.replayWorthCheckpoint,
    from: reading.fleet.revision.value,
    signal: stop.signal,
  });
  const connection = createLogConnection({
    logger,
    graceMs: deps.dropGraceMs ?? tuning.dropGraceMs,
    onGraceEnd: () => refresh(),
  });
  const state = createServingState({
    logger,
    ownVersion: deps.compilerVersion ?? compilerVersion,
    fleet: () => shown.fleet,
    distance: connection.distance,
    onChange(changed) {
      stateListeners.tell(changed);
      // An event of the log can cause this too: it may put the log at this release's compiler version.
      if (upToDate()) tellUpToDate();
    },
  });

  const isLive = (): boolean => connection.distance() === 'live';
  const upToDate = (): boolean => isLive() && state.current().kind === 'ready';

  const refresh = (): void => {
    state.refresh();
    waiters.look();
  };

  const apply = (folded: FoldedFleet, commands: readonly RecordedCommand[]): void => {
    const batch = emptyFoldBatch();
    try {
      applyToFold(folded, logChain, commands, batch);
    } finally {
      if (folded.fleet.revision.value >= shown.fleet.revision.value) shown = folded;
      // Also when a command cannot be folded: the commands before it are in the fold.
      batchListeners.tell(batch);
      refresh();
    }
  };

  const follow = async (): Promise<void> => {
    const { fleet } = reading;
    const position = fleet.position.value;
    const after = fleet.revision.value < 0 ? 'start' : { commit: position, prepare: position };
    const [prefix, signal] = [streams.fleet, stop.signal];
    for await (const item of followLog(eventStore, { prefix, after, streams: [prefix], signal })) {
      switch (item.kind) {
        case 'commands':
          connection.heard();
          apply(reading, item.commands);
          break;
        case 'caught_up':
          connection.caughtUp();
          shown = reading;
          refresh();
          if (upToDate()) tellUpToDate();
          break;
        case 'dropped':
          connection.dropped(item.cause);
          refresh();
          break;
        case 'checkpoint':
          connection.heard();
          break;
        default:
          unreachable(item);
      }
      if (isLive()) checkpoints.writeIfDue(fleet);
    }
  };

  const run = async (): Promise<void> => {
    let failure = '';
    while (!stop.signal.aborted) {
      try {
        await follow();
        return;
      } catch (error) {
        connection.reset();
        const repeated = failure === errorText(error);
        failure = errorText(error);
        const stopped = stoppedBy(error, repeated);
        if (stopped !== undefined) {
          state.stop(stopped);
          logger.error({ error: failure }, stopSentences[stopped.kind]);
          refresh();
          return;
        }
        logger.error({ error: failure }, 'the committed fleet could not be folded; the log is replayed from its start');
        refresh();
        // Lost events are looked for at once, anything else is given time.
        await sleep(isLoss(error) ? 0 : tuning.replayRetryMs, stop.signal);
        reading = foldedFleet(emptyFleet());
        checkpoints.reset();
      }
    }
  };

  let running: Promise<void> | undefined;
  return {
    fleet: () => shown.fleet,
    state: state.current,
    onBatch: batchListeners.add,
    onStateChange: stateListeners.add,
    onUpToDate: upToDateListeners.add,
    upToDate,
    fold: (commands) => apply(shown, commands),
    async catchUp() {
      const folded = shown;
      for await (const commands of commandsAfter(eventStore, streams.fleet, folded.fleet.revision.value)) {
        apply(folded, commands);
      }
    },
    passed: (revision, timeoutMs) => waiters.until(() => shown.fleet.revision.value >= revision, timeoutMs),
    until: waiters.until,
    start() {
      running ??= run();
    },
    async close() {
      stop.abort();
      connection.close();
      waiters.close();
      await running;
      await checkpoints.close();
    },
  };
}

const stopSentences: { readonly [K in StoppedState['kind']]: string } = {
  unknown_event: 'delivery stopped at an event that this release does not know',
  broken_log: 'delivery stopped where the log was tampered with or damaged',
};

/** Events are missing, in the log or only in what the subscription delivered. */
const isLoss = (error: unknown): boolean => error instanceof MissingEventsError || error instanceof BrokenLogError;

/** The state that an error ends the fold in; undefined when the log is read again. @param repeated it came twice */
function stoppedBy(error: unknown, repeated: boolean): StoppedState | undefined {
  if (error instanceof UnknownEventError) return { kind: 'unknown_event', eventType: error.eventType };
  const isBroken = error instanceof BrokenChainError || (isLoss(error) && repeated);
  return isBroken && error instanceof Error ? { kind: 'broken_log', reason: error.message } : undefined;
}
