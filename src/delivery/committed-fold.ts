/**
 * The committed fold: the fleet as the log has it, from a checkpoint and the tail that follows. It only ever holds
 * whole commands, tells who was touched by each batch, and knows whether it is up to date. It decides nothing, and
 * never shares its tables with the gateway's fold. Implements `docs/contract/domain.md` ("A second, committed-only fold", Generation,
 * Fold checkpoint) and `docs/contract/agent-protocol.md` (an older compiler, behind the log).
 *
 * The number of the compiler in the log may rise and fall under a running instance: it serves only while the number is
 * its own, and never writes it. That is done once, at the start (`app.ts`), so that going back stays gone back.
 */
import { compilerVersion } from '../domain/compile/version.js';
import { applyCommand } from '../domain/fleet/apply.js';
import { captureFleet } from '../domain/fleet/checkpoint.js';
import type { FleetCapture } from '../domain/fleet/checkpoint.js';
import { emptyFleet } from '../domain/fleet/fleet.js';
import type { Fleet } from '../domain/fleet/fleet.js';
import type { SealedSecret } from '../domain/resource/sealed.js';
import { UnknownEventError } from '../domain/log/unknown-event.js';
import { fleetEvent, readCommand } from '../domain/log/upcast.js';
import { sleep } from '../kernel/background.js';
import { errorText } from '../kernel/errors.js';
import type { RecordedCommand } from '../kernel/event.js';
import { lastEvent, streams } from '../kernel/event.js';
import { limits } from '../kernel/limits.js';
import type { Logger } from '../kernel/logger.js';
import { createWaiters } from '../kernel/waiters.js';
import type { EventStore } from '../storage/event-store.js';
import { followLog } from '../storage/follow.js';
import { isMismatch, mismatchText } from './compiler-mismatch.js';
import { loadFleet, saveFleet } from './fold-checkpoint.js';
import type { DeliveryState } from './port.js';
import { tuning } from './tuning.js';

export interface Revoked {
  readonly nodeId: string;
  /** The verifier that counted until now, undefined when there was none. */
  readonly replaced: SealedSecret | undefined;
}

/** What one batch of whole commands did. */
export interface FoldBatch {
  /** Nodes whose configuration changed; deleted ones included. */
  readonly touched: ReadonlySet<string>;
  /** PSKs that were replaced or went with their node, in order. */
  readonly revoked: readonly Revoked[];
  readonly deleted: ReadonlySet<string>;
  /** Nodes whose generation was raised, with the time of the command (RFC 3339). */
  readonly raised: ReadonlyMap<string, string>;
}

export interface CommittedFold {
  /** The fleet now. Do not keep it: a replay puts another in its place. */
  fleet(): Fleet;
  state(): DeliveryState;
  /** True when ready and nothing of the log is known to be missing: only then may anything be pushed. */
  upToDate(): boolean;
  capture(): FleetCapture;
  /** Resolves true once the condition holds, false after `timeoutMs` or at the end. Looked at after each batch. */
  until(condition: () => boolean, timeoutMs: number): Promise<boolean>;
  /** Begins to follow the log; the callbacks come from now on. */
  start(): void;
  close(): Promise<void>;
}

export interface CommittedFoldDeps {
  readonly eventStore: EventStore;
  readonly logger: Logger;
  /** After each batch, before anything that waits for it goes on. */
  onBatch(batch: FoldBatch): void;
  onStateChange(state: DeliveryState): void;
  /** The fold has become up to date. */
  onUpToDate(): void;
  /** Events between two checkpoints. */
  readonly checkpointEvery?: number;
  /** This release's number; tests give another. */
  readonly compilerVersion?: number;
  /** How long it still counts as ready after a drop, in milliseconds. */
  readonly dropGraceMs?: number;
}

/** Loads the checkpoint; `start` begins to catch up. @throws ServiceError `unavailable` */
export async function openCommittedFold(deps: CommittedFoldDeps): Promise<CommittedFold> {
  const { eventStore, logger } = deps;
  const checkpointEvery = deps.checkpointEvery ?? limits.events.foldCheckpointEvery;
  const ownVersion = deps.compilerVersion ?? compilerVersion;
  const stop = new AbortController();
  const waiters = createWaiters();
  let fleet = (await loadFleet(eventStore, logger)) ?? emptyFleet();
  let checkpointed = fleet.revision.value;
  let checkpointing: Promise<void> | undefined;
  /** All that the log held has been folded, and the subscription stands. */
  let live = false;
  /** Dropped a moment ago: still near enough to the log to answer, too far to push. */
  let grace: NodeJS.Timeout | undefined;
  /** Once ready, dropped longer ago than that: the log is out of reach, and so is all that could be missing here. */
  let cutOff = false;
  /** Something of the log has come since it dropped. */
  let heard = false;
  let unknownEvent: string | undefined;
  /** The log has been at this release's number since the start. */
  let served = false;
  let state: DeliveryState = currentState();

  function currentState(): DeliveryState {
    if (unknownEvent !== undefined) return { kind: 'unknown_event', eventType: unknownEvent };
    const logVersion = fleet.compilerVersion.value;
    if (logVersion > ownVersion) return { kind: 'older_compiler', logVersion, ownVersion };
    if (cutOff && logVersion === ownVersion) return { kind: 'cut_off' };
    if (!live && (cutOff || grace === undefined)) return { kind: 'catching_up' };
    if (logVersion === ownVersion) return { kind: 'ready' };
    // Below: this release's own number is not in the log yet, or no more; its output would go out under generations of
    // another compiler's.
    return served ? { kind: 'newer_compiler', logVersion, ownVersion } : { kind: 'catching_up' };
  }

  const upToDate = (): boolean => live && state.kind === 'ready';

  const settle = (): void => {
    const before = state;
    state = currentState();
    served ||= state.kind === 'ready';
    if (before.kind !== state.kind) {
      const change = { before: before.kind, now: state.kind, revision: fleet.revision.value };
      if (isMismatch(state)) {
        logger.warn({ ...change, reason: mismatchText(state) }, 'delivery stopped: the log is at another compiler');
      } else {
        logger.info(change, 'delivery changed its state');
      }
      deps.onStateChange(state);
      // Also by an event of the log, which may make this release's compiler the one that counts.
      if (upToDate()) deps.onUpToDate();
    }
    waiters.look();
  };

  const setLive = (): void => {
    live = true;
    cutOff = false;
    clearTimeout(grace);
    grace = undefined;
  };

  /** After a while without the end of the log: cut off from it, or behind it when something does come. */
  const startGrace = (): void => {
    clearTimeout(grace);
    grace = setTimeout(() => {
      grace = undefined;
      cutOff = !heard;
      settle();
    }, deps.dropGraceMs ?? tuning.dropGraceMs);
    grace.unref();
  };

  const noteDropped = (cause: unknown): void => {
    heard = false;
    if (live) {
      // Once: what follows are failed tries to subscribe again.
      logger.warn({ error: errorText(cause) }, 'the subscription to the fleet dropped');
      live = false;
      startGrace();
    }
    settle();
  };

  /** The log is there again, but not read to its end. */
  const noteHeard = (): void => {
    if (live || heard) return;
    heard = true;
    if (cutOff) startGrace();
  };

  const applyOne = (recorded: RecordedCommand): ReadonlySet<string> => {
    const command = readCommand(recorded);
    const mark = fleet.journal.mark();
    try {
      const touched = applyCommand(fleet, command);
      fleet.journal.commit();
      return touched;
    } catch (error) {
      fleet.journal.rollback(mark);
      throw error;
    }
  };

  const apply = (commands: readonly RecordedCommand[]): void => {
    const batch = {
      touched: new Set<string>(),
      revoked: [] as Revoked[],
      deleted: new Set<string>(),
      raised: new Map<string, string>(),
    };
    try {
      for (const command of commands) {
        if (command.stream !== streams.fleet) continue;
        const expected = fleet.revision.value + 1;
        if (lastEvent(command).revision < expected) continue;
        // An idle stream and one that has lost something look alike: only the revisions tell.
        if (command.events[0].revision !== expected) {
          throw new Error(`${streams.fleet} goes on at ${command.events[0].revision} instead of ${expected}`);
        }
        const revoked = revokedBy(fleet, command);
        for (const nodeId of applyOne(command)) batch.touched.add(nodeId);
        batch.revoked.push(...revoked);
        noteNodeEvents(command, batch);
      }
    } finally {
      // Also when a later command can't be folded: what came before it holds.
      deps.onBatch(batch);
      settle();
    }
  };

  const checkpointWhenDue = (): void => {
    if (!live || checkpointing !== undefined || fleet.revision.value - checkpointed < checkpointEvery) return;
    const capture = captureFleet(fleet);
    checkpointed = capture.revision;
    checkpointing = saveFleet(eventStore, capture, stop.signal)
      .catch((error: unknown) => logger.warn({ error: errorText(error) }, 'the fold checkpoint was not written'))
      .finally(() => {
        checkpointing = undefined;
      });
  };

  const follow = async (): Promise<void> => {
    const position = fleet.position.value;
    const after = fleet.revision.value < 0 ? 'start' : { commit: position, prepare: position };
    for await (const item of followLog(eventStore, { prefix: streams.fleet, after, signal: stop.signal })) {
      switch (item.kind) {
        case 'commands':
          noteHeard();
          apply(item.commands);
          break;
        case 'caught_up':
          setLive();
          settle();
          if (upToDate()) deps.onUpToDate();
          break;
        case 'dropped':
          noteDropped(item.cause);
          break;
        case 'checkpoint':
          noteHeard();
          break;
        default: {
          const never: never = item;
          throw new Error(`unknown item ${JSON.stringify(never)}`);
        }
      }
      checkpointWhenDue();
    }
  };

  const run = async (): Promise<void> => {
    while (!stop.signal.aborted) {
      try {
        await follow();
        return;
      } catch (error) {
        live = false;
        cutOff = false;
        clearTimeout(grace);
        grace = undefined;
        if (error instanceof UnknownEventError) {
          unknownEvent = error.eventType;
          logger.error({ error: error.message }, 'delivery stopped at an event that this release does not know');
          settle();
          return;
        }
        logger.error({ error: errorText(error) }, 'the committed fold failed; the log is replayed from its start');
        settle();
        await sleep(tuning.replayRetryMs, stop.signal);
        fleet = emptyFleet();
        checkpointed = -1;
      }
    }
  };

  let running: Promise<void> | undefined;
  return {
    fleet: () => fleet,
    state: () => state,
    upToDate,
    capture: () => captureFleet(fleet),
    until: waiters.until,
    start() {
      running ??= run();
    },
    async close() {
      stop.abort();
      clearTimeout(grace);
      waiters.close();
      await running;
      await checkpointing;
    },
  };
}

/** The PSKs that a command ends, as they are before it. */
function revokedBy(fleet: Fleet, command: RecordedCommand): readonly Revoked[] {
  return command.events.flatMap((recorded) => {
    const event = fleetEvent(recorded);
    if (event.type !== 'NodePskIssued' && event.type !== 'NodeDeleted') return [];
    const nodeId = event.data.node_id;
    return [{ nodeId, replaced: fleet.nodes.get(nodeId)?.psk?.verifier }];
  });
}

function noteNodeEvents(
  command: RecordedCommand,
  batch: { readonly deleted: Set<string>; readonly raised: Map<string, string> },
): void {
  for (const recorded of command.events) {
    const event = fleetEvent(recorded);
    if (event.type === 'NodeDeleted') batch.deleted.add(event.data.node_id);
    if (event.type === 'NodeGenerationRaised') batch.raised.set(event.data.node_id, recorded.metadata.occurred_at);
  }
}
