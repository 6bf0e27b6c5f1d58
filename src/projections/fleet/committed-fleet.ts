/**
 * The committed fleet, folded from a checkpoint and the events after it. It holds whole commands only and tells its listeners
 * the effects of each batch. The gateway decides on a draft over it. `fold-batch.ts` applies commands, `fold-checkpoint.ts`
 * stores and loads it.
 *
 * It may serve configuration while it is near the end of the log (`../log-connection.ts`), knows every event, has an unbroken
 * chain, and has the log's compiler version. A running instance never writes that version, so that a lowered one stays lowered.
 * Implements `docs/architecture.md#one-fleet`, `docs/contract/domain.md#generation` and `#commands-and-events`.
 */
import { compilerVersion } from '../../kernel/release.js';
import { emptyFleet, type Fleet } from '../../domain/fleet/fleet.js';
import { UnknownEventError } from '../../domain/log/upcast.js';
import { yieldToEventLoop } from '../../kernel/background.js';
import { errorText } from '../../kernel/errors.js';
import { streams, type RecordedCommand } from '../../kernel/event.js';
import { createListeners } from '../../kernel/listeners.js';
import { logsError, type Logger } from '../../kernel/logger.js';
import type { LogChain } from '../../security/log-chain/log-chain.js';
import { createWaiters } from '../../kernel/waiters.js';
import { levelOf } from '../../storage/broken-log.js';
import type { EventStore } from '../../storage/event-store.js';
import { commandsAfter } from '../../storage/follow.js';
import type { LogDistance } from '../log-connection.js';
import type { LogFold } from '../log-follower.js';
import { loadFleet, saveFleet } from './fold-checkpoint.js';
import { applyToFold, emptyFoldBatch, foldedFleet, type FoldBatch } from './fold-batch.js';
import type { ServingState } from '../port.js';
import { isMismatch, mismatchText } from './compiler-mismatch.js';

export interface CommittedFleet extends LogFold {
  fleet(): Fleet;
  state(): ServingState;
  /** Called with each batch before anything that waits for it continues. These three return how to unsubscribe. */
  onBatch(listener: (batch: FoldBatch) => void): () => void;
  onStateChange(listener: (state: ServingState) => void): () => void;
  /** Called when the fleet has become up to date. */
  onUpToDate(listener: () => void): () => void;
  /** True when ready and at the end of the log: only then may anything be pushed. */
  upToDate(): boolean;
  /** Folds the rest of the log, to its end. @throws ServiceError `unavailable`, BrokenChainError, UnknownEventError */
  catchUp(): Promise<void>;
  /** Resolves true once the fleet has passed the revision of `svc-fleet`, false after `timeoutMs`. */
  passed(revision: number, timeoutMs: number): Promise<boolean>;
  /** Resolves true once the condition holds, false after `timeoutMs` or on close. Checked after each batch. */
  until(condition: () => boolean, timeoutMs: number): Promise<boolean>;
  /** Ends every wait. */
  close(): void;
}

export interface CommittedFleetDeps {
  readonly eventStore: EventStore;
  readonly logger: Logger;
  readonly logChain: LogChain;
  /** This release's compiler version; tests pass another. */
  readonly compilerVersion?: number | undefined;
}

/** Loads the checkpoint. `followInMemory` then keeps the fleet at the end of the log. @throws ServiceError `unavailable` */
export async function openCommittedFleet(deps: CommittedFleetDeps): Promise<CommittedFleet> {
  const { eventStore, logger, logChain } = deps;
  const waiters = createWaiters();
  const onListenerError = logsError(logger, 'a listener of the committed fleet failed');
  const batchListeners = createListeners<FoldBatch>(onListenerError);
  const stateListeners = createListeners<ServingState>(onListenerError);
  const upToDateListeners = createListeners<undefined>(onListenerError);
  const tellUpToDate = (): void => upToDateListeners.tell(undefined);
  const folded = foldedFleet((await loadFleet(eventStore, logChain, logger)) ?? emptyFleet());
  const { fleet } = folded;
  let distance: LogDistance = 'behind';
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

  let batch = emptyFoldBatch();
  function tell(): void {
    const finished = batch;
    batch = emptyFoldBatch();
    batchListeners.tell(finished);
    refresh();
  }

  async function fold(commands: readonly RecordedCommand[]): Promise<void> {
    try {
      const pieces = applyToFold(folded, logChain, commands, () => batch);
      while (pieces.next().done !== true) {
        // The commands before the current one are in the fold.
        if (batch.touched.size > 0) tell();
        await yieldToEventLoop();
      }
    } finally {
      // Even if a command could not be folded, those before it were.
      tell();
    }
  }

  /** One at a time: the gateway and the subscription bring the same commands. */
  let folding = Promise.resolve();
  function apply(commands: readonly RecordedCommand[]): Promise<void> {
    const done = folding.then(() => fold(commands));
    folding = done.catch(() => undefined);
    return done;
  }

  return {
    streams: [streams.fleet],
    revision: () => fleet.revision.value,
    position: () => fleet.position.value,
    save: (signal) => saveFleet(eventStore, logChain, fleet, signal),
    apply,
    moved(now, caughtUp) {
      distance = now;
      refresh();
      if (caughtUp && upToDate()) tellUpToDate();
    },
    stopped(error) {
      const unknown = error instanceof UnknownEventError;
      state.stop(
        unknown
          ? { kind: 'unknown_event', eventType: error.eventType }
          : { kind: 'broken_log', reason: error instanceof Error ? error.message : errorText(error) },
      );
      logger[levelOf(error)](
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
      for await (const commands of commandsAfter(eventStore, streams.fleet, fleet.revision.value)) {
        await apply(commands);
      }
    },
    passed: (revision, timeoutMs) => waiters.until(() => fleet.revision.value >= revision, timeoutMs),
    until: waiters.until,
    close: () => waiters.close(),
  };
}

export type StoppedState = Extract<ServingState, { readonly kind: 'unknown_event' | 'broken_log' }>;

export interface ServingStateTracker {
  current(): ServingState;
  /** Computes the state again, and logs and reports a change. */
  refresh(): void;
  /** The log cannot be folded any further: the state is this one for good, from the next refresh on. */
  stop(at: StoppedState): void;
}

export interface ServingStateDeps {
  readonly logger: Logger;
  readonly ownVersion: number;
  fleet(): Fleet;
  distance(): LogDistance;
  onChange(state: ServingState): void;
}

/** @internal exported for tests */
export function createServingState(deps: ServingStateDeps): ServingStateTracker {
  const { logger, ownVersion } = deps;
  let stopped: StoppedState | undefined;
  /** The instance has been ready before, so the log was at this release's compiler version. */
  let wasReady = false;
  let state = compute();

  function compute(): ServingState {
    if (stopped !== undefined) return stopped;
    const distance = deps.distance();
    const logVersion = deps.fleet().singletons.service.value;
    if (logVersion > ownVersion) return { kind: 'older_compiler', logVersion, ownVersion };
    if (distance === 'cut_off' && logVersion === ownVersion) return { kind: 'cut_off' };
    if (distance === 'cut_off' || distance === 'behind') return { kind: 'catching_up' };
    if (logVersion === ownVersion) return { kind: 'ready' };
    // The log is not yet, or no longer, at this release's compiler version: its output would carry generations of another
    // compiler.
    return wasReady ? { kind: 'newer_compiler', logVersion, ownVersion } : { kind: 'catching_up' };
  }

  return {
    current: () => state,
    refresh() {
      const before = state;
      state = compute();
      wasReady ||= state.kind === 'ready';
      if (before.kind === state.kind) return;
      const change = { before: before.kind, now: state.kind, revision: deps.fleet().revision.value };
      if (isMismatch(state)) {
        logger.warn(
          { ...change, reason: mismatchText(state) },
          'delivery stopped: the log is at another compiler version',
        );
      } else {
        logger.info(change, 'delivery changed its state');
      }
      deps.onChange(state);
    },
    stop(at) {
      stopped = at;
    },
  };
}
