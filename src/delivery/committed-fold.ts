/**
 * The committed fold: the fleet as the log has it, from a checkpoint and the tail that follows. It holds whole commands
 * only and reports what each batch did. It decides nothing, and never shares its tables with the gateway's fold.
 * Its parts: `fold-batch.ts` applies commands, `log-connection.ts` and `delivery-state.ts` judge whether it may serve,
 * `checkpoint-writer.ts` saves it. Implements `docs/architecture.md#two-folds`.
 */
import { compilerVersion } from '../domain/compile/version.js';
import { captureFleet } from '../domain/fleet/checkpoint.js';
import type { FleetCapture } from '../domain/fleet/checkpoint.js';
import { emptyFleet } from '../domain/fleet/fleet.js';
import type { Fleet } from '../domain/fleet/fleet.js';
import { UnknownEventError } from '../domain/log/unknown-event.js';
import { sleep } from '../kernel/background.js';
import { errorText, unreachable } from '../kernel/errors.js';
import type { RecordedCommand } from '../kernel/event.js';
import { streams } from '../kernel/event.js';
import { limits } from '../kernel/limits.js';
import type { Logger } from '../kernel/logger.js';
import { createWaiters } from '../kernel/waiters.js';
import type { EventStore } from '../storage/event-store.js';
import { followLog } from '../storage/follow.js';
import { createCheckpointWriter } from './checkpoint-writer.js';
import { createDeliveryState } from './delivery-state.js';
import { applyToFold, emptyFoldBatch } from './fold-batch.js';
import type { FoldBatch } from './fold-batch.js';
import { loadFleet } from './fold-checkpoint.js';
import { createLogConnection } from './log-connection.js';
import type { DeliveryState } from './port.js';
import { tuning } from './tuning.js';

export interface CommittedFold {
  /** The current fleet. Do not store it: a replay replaces it. */
  fleet(): Fleet;
  state(): DeliveryState;
  /** True when ready and at the end of the log: only then may anything be pushed. */
  upToDate(): boolean;
  capture(): FleetCapture;
  /** Resolves true once the condition holds, false after `timeoutMs` or on close. Checked after each batch. */
  until(condition: () => boolean, timeoutMs: number): Promise<boolean>;
  /** Begins to follow the log; no callback is called before. */
  start(): void;
  close(): Promise<void>;
}

export interface CommittedFoldDeps {
  readonly eventStore: EventStore;
  readonly logger: Logger;
  /** Called after each batch, before anything that waits for it continues. */
  onBatch(batch: FoldBatch): void;
  onStateChange(state: DeliveryState): void;
  /** The fold has become up to date. */
  onUpToDate(): void;
  /** Fleet events between two checkpoints. */
  readonly checkpointEvery?: number;
  /** This release's compiler version; tests pass another. */
  readonly compilerVersion?: number;
  /** How long the instance counts as ready after its subscription drops, in milliseconds. */
  readonly dropGraceMs?: number;
}

/** Loads the checkpoint; `start` begins to catch up. @throws ServiceError `unavailable` */
export async function openCommittedFold(deps: CommittedFoldDeps): Promise<CommittedFold> {
  const { eventStore, logger } = deps;
  const stop = new AbortController();
  const waiters = createWaiters();
  let fleet = (await loadFleet(eventStore, logger)) ?? emptyFleet();
  const checkpoints = createCheckpointWriter({
    eventStore,
    logger,
    every: deps.checkpointEvery ?? limits.events.foldCheckpointEvery,
    from: fleet.revision.value,
    signal: stop.signal,
  });
  const connection = createLogConnection({
    logger,
    graceMs: deps.dropGraceMs ?? tuning.dropGraceMs,
    onGraceEnd: () => refresh(),
  });
  const state = createDeliveryState({
    logger,
    ownVersion: deps.compilerVersion ?? compilerVersion,
    fleet: () => fleet,
    distance: connection.distance,
    onChange(changed) {
      deps.onStateChange(changed);
      // An event of the log can cause this too: it may put the log at this release's compiler version.
      if (upToDate()) deps.onUpToDate();
    },
  });

  const isLive = (): boolean => connection.distance() === 'live';
  const upToDate = (): boolean => isLive() && state.current().kind === 'ready';

  const refresh = (): void => {
    state.refresh();
    waiters.look();
  };

  const apply = (commands: readonly RecordedCommand[]): void => {
    const batch = emptyFoldBatch();
    try {
      applyToFold(fleet, commands, batch);
    } finally {
      // Also when a command cannot be folded: the commands before it are in the fold.
      deps.onBatch(batch);
      refresh();
    }
  };

  const follow = async (): Promise<void> => {
    const position = fleet.position.value;
    const after = fleet.revision.value < 0 ? 'start' : { commit: position, prepare: position };
    const [prefix, signal] = [streams.fleet, stop.signal];
    for await (const item of followLog(eventStore, { prefix, after, streams: [prefix], signal })) {
      switch (item.kind) {
        case 'commands':
          connection.heard();
          apply(item.commands);
          break;
        case 'caught_up':
          connection.caughtUp();
          refresh();
          if (upToDate()) deps.onUpToDate();
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
    while (!stop.signal.aborted) {
      try {
        await follow();
        return;
      } catch (error) {
        connection.reset();
        if (error instanceof UnknownEventError) {
          state.stopAt(error.eventType);
          logger.error({ error: error.message }, 'delivery stopped at an event that this release does not know');
          refresh();
          return;
        }
        logger.error({ error: errorText(error) }, 'the committed fold failed; the log is replayed from its start');
        refresh();
        await sleep(tuning.replayRetryMs, stop.signal);
        fleet = emptyFleet();
        checkpoints.reset();
      }
    }
  };

  let running: Promise<void> | undefined;
  return {
    fleet: () => fleet,
    state: state.current,
    upToDate,
    capture: () => captureFleet(fleet),
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
