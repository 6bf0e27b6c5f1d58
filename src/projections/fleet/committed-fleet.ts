/**
 * The committed fleet: folded from a checkpoint and the events of the log behind it. It holds whole commands only, and
 * tells its listeners what each batch of them did. It decides nothing: the gateway decides on a draft over it, and
 * hands it what the log has taken. Its parts: `fold-batch.ts` applies commands, `serving-state.ts` judges whether this
 * instance may serve, `checkpoint-writer.ts` saves it. Implements `docs/architecture.md#one-fleet`.
 */
import { compilerVersion } from '../../domain/compile/version.js';
import { emptyFleet } from '../../domain/fleet/fleet.js';
import type { Fleet } from '../../domain/fleet/fleet.js';
import { UnknownEventError } from '../../domain/log/upcast.js';
import { errorText } from '../../kernel/errors.js';
import type { RecordedCommand } from '../../kernel/event.js';
import { streams } from '../../kernel/event.js';
import { createListeners } from '../../kernel/listeners.js';
import { limits } from '../../kernel/limits.js';
import type { Logger } from '../../kernel/logger.js';
import type { LogChain } from '../../security/log-chain/log-chain.js';
import { createWaiters } from '../../kernel/waiters.js';
import type { EventStore } from '../../storage/event-store.js';
import { commandsAfter } from '../../storage/follow.js';
import type { LogDistance } from '../log-connection.js';
import type { LogFold } from '../log-follower.js';
import { createCheckpointWriter } from './checkpoint-writer.js';
import { createServingState } from './serving-state.js';
import { applyToFold, emptyFoldBatch, foldedFleet } from './fold-batch.js';
import type { FoldBatch } from './fold-batch.js';
import { loadFleet } from './fold-checkpoint.js';
import type { ServingState } from '../port.js';
import { tuning } from '../tuning.js';

export interface CommittedFleet extends LogFold {
  fleet(): Fleet;
  state(): ServingState;
  /** Told of each batch before anything that waits for it continues. @returns how to stop, as the two below */
  onBatch(listener: (batch: FoldBatch) => void): () => void;
  onStateChange(listener: (state: ServingState) => void): () => void;
  /** Told when the fleet has become up to date. */
  onUpToDate(listener: () => void): () => void;
  /** True when ready and at the end of the log: only then may anything be pushed. */
  upToDate(): boolean;
  /** Reads the log from the fleet to its end. @throws ServiceError `unavailable`, BrokenChainError, UnknownEventError */
  catchUp(): Promise<void>;
  /** Resolves true once the fleet has passed the revision of `svc-fleet`, false after `timeoutMs`. */
  passed(revision: number, timeoutMs: number): Promise<boolean>;
  /** Resolves true once the condition holds, false after `timeoutMs` or on close. Checked after each batch. */
  until(condition: () => boolean, timeoutMs: number): Promise<boolean>;
  /** Ends every wait, and waits for the checkpoint that is being written. */
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
}

/** Loads the checkpoint. `followInMemory` then keeps the fleet at the end of the log. @throws ServiceError `unavailable` */
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
  const folded = foldedFleet((await loadFleet(eventStore, logChain, logger)) ?? emptyFleet());
  const { fleet } = folded;
  let distance: LogDistance = 'behind';
  const checkpoints = createCheckpointWriter({
    eventStore,
    logger,
    logChain,
    every: deps.checkpointEvery ?? limits.events.foldCheckpointEvery,
    everyStart: tuning.replayWorthCheckpoint,
    from: fleet.revision.value,
    signal: stop.signal,
  });
  const state = createServingState({
    logger,
    ownVersion: deps.compilerVersion ?? compilerVersion,
    fleet: () => fleet,
    distance: () => distance,
    onChange(changed) {
      stateListeners.tell(changed);
      // An event of the log can cause this too: it may put the log at this release's compiler version.
      if (upToDate()) tellUpToDate();
    },
  });
  const upToDate = (): boolean => distance === 'live' && state.current().kind === 'ready';
  const refresh = (): void => {
    state.refresh();
    waiters.look();
  };

  function apply(commands: readonly RecordedCommand[]): void {
    const batch = emptyFoldBatch();
    try {
      applyToFold(folded, logChain, commands, batch);
    } finally {
      // Also when a command cannot be folded: the commands before it are in the fold.
      batchListeners.tell(batch);
      refresh();
    }
  }

  return {
    stream: streams.fleet,
    revision: () => fleet.revision.value,
    position: () => fleet.position.value,
    apply,
    moved(now, caughtUp) {
      distance = now;
      refresh();
      if (caughtUp && upToDate()) tellUpToDate();
      if (distance === 'live' && !stop.signal.aborted) checkpoints.writeIfDue(fleet);
    },
    stopped(error) {
      const unknown = error instanceof UnknownEventError;
      state.stop(
        unknown
          ? { kind: 'unknown_event', eventType: error.eventType }
          : { kind: 'broken_log', reason: error instanceof Error ? error.message : errorText(error) },
      );
      logger.error(
        { error: errorText(error) },
        unknown
          ? 'delivery stopped at an event that this release does not know'
          : 'delivery stopped where the log was tampered with or damaged',
      );
      refresh();
    },
    fleet: () => fleet,
    state: state.current,
    onBatch: batchListeners.add,
    onStateChange: stateListeners.add,
    onUpToDate: upToDateListeners.add,
    upToDate,
    async catchUp() {
      for await (const commands of commandsAfter(eventStore, streams.fleet, fleet.revision.value)) apply(commands);
    },
    passed: (revision, timeoutMs) => waiters.until(() => fleet.revision.value >= revision, timeoutMs),
    until: waiters.until,
    async close() {
      stop.abort();
      waiters.close();
      await checkpoints.close();
    },
  };
}
