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
import { BrokenChainError } from '../domain/log-chain/links.js';
import { UnknownEventError } from '../domain/log/unknown-event.js';
import { sleep } from '../kernel/background.js';
import { errorText, unreachable } from '../kernel/errors.js';
import type { RecordedCommand } from '../kernel/event.js';
import { streams } from '../kernel/event.js';
import { limits } from '../kernel/limits.js';
import type { Logger } from '../kernel/logger.js';
import type { LogChain } from '../log-chain/log-chain.js';
import { createWaiters } from '../kernel/waiters.js';
import type { EventStore } from '../storage/event-store.js';
import { BrokenLogError, followLog } from '../storage/follow.js';
import { createCheckpointWriter } from './checkpoint-writer.js';
import { createDeliveryState } from './delivery-state.js';
import type { StoppedState } from './delivery-state.js';
import { applyToFold, emptyFoldBatch, MissingEventsError } from './fold-batch.js';
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
  readonly logChain: LogChain;
  /** Called after each batch, before anything that waits for it continues. */
  onBatch(batch: FoldBatch): void;
  onStateChange(state: DeliveryState): void;
  /** The fold has become up to date. */
  onUpToDate(): void;
  /** Fleet events between two checkpoints. */
  readonly checkpointEvery?: number | undefined;
  /** This release's compiler version; tests pass another. */
  readonly compilerVersion?: number | undefined;
  /** How long the instance counts as ready after its subscription drops, in milliseconds. */
  readonly dropGraceMs?: number | undefined;
}

/** Loads the checkpoint; `start` begins to catch up. @throws ServiceError `unavailable` */
export async function openCommittedFold(deps: CommittedFoldDeps): Promise<CommittedFold> {
  const { eventStore, logger, logChain } = deps;
  const stop = new AbortController();
  const waiters = createWaiters();
  let fleet = (await loadFleet(eventStore, logChain, logger)) ?? emptyFleet();
  const checkpoints = createCheckpointWriter({
    eventStore,
    logger,
    logChain,
    every: deps.checkpointEvery ?? limits.events.foldCheckpointEvery,
    everyStart: tuning.replayWorthCheckpoint,
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
      applyToFold(fleet, logChain, commands, batch);
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
        logger.error({ error: failure }, 'the committed fold failed; the log is replayed from its start');
        refresh();
        // Lost events are looked for at once, anything else is given time.
        await sleep(isLoss(error) ? 0 : tuning.replayRetryMs, stop.signal);
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
