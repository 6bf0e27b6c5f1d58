/**
 * Delivery: committed fleet → compile → open secrets → encode and checksum once → target per node → one-slot queue per
 * session. This file only wires the parts together. Implements `docs/architecture.md#a-push` and `docs/contract/agent-protocol.md#configuration`.
 */
import type { Histogram } from 'prom-client';
import type { RecordFact } from '../domain/agents/facts.js';
import type { compileNode } from '../domain/compile/compile-node.js';
import type { NodeSnapshot } from '../domain/snapshot/snapshot.js';
import { startLoop, timedOut, withDeadline } from '../kernel/background.js';
import type { Clock } from '../kernel/clock.js';
import { errorText } from '../kernel/errors.js';
import { createShared } from '../kernel/shared.js';
import { streams } from '../kernel/event.js';
import { createListeners } from '../kernel/listeners.js';
import { logsError, type Logger } from '../kernel/logger.js';
import type { CommittedFleet } from '../projections/fleet/committed-fleet.js';
import type { FoldBatch } from '../projections/fleet/fold-batch.js';
import type { Keyring } from '../security/keyring.js';
import { lastRevision, type EventStore } from '../storage/event-store.js';
import type { ReadStore } from '../storage/read-store.js';
import { createAcceptedPsks } from './accepted-psks.js';
import { createAnswerer } from './answer.js';
import { createApplyHistories } from './apply-history.js';
import { createApplyReports } from './apply-reports.js';
import { createFanOut } from './fan-out.js';
import { createGenerationRaises } from './generation-raise.js';
import { openLastGoodSnapshots, startNodeCleanup, type LastGoodSnapshots } from './last-good.js';
import { createNewestSnapshots } from './newest.js';
import { createSessionServer } from './node-session.js';
import type { Delivery } from './port.js';
import { createReportTurns } from './report-turns.js';
import { createRetries } from './retries.js';
import { openerOf } from './secrets.js';
import { createSessionRegistry } from './session-registry.js';
import { createSnapshotJson } from './snapshot-json.js';
import type { RecordedApplyReports } from './target.js';
import { createTimeToApplied } from './time-to-applied.js';
import { tuning } from './tuning.js';

/** How often due retries of rejected generations are offered; the contract bounds them per second. */
const retryTickMs = 1_000;
/** Base of the jittered `retry_after_ms` of a drained session. */
const drainRetryMs = 2_000;

export interface DeliveryDeps {
  /** Must not have started yet, so that delivery sees every batch. */
  readonly committed: CommittedFleet;
  readonly eventStore: EventStore;
  readonly readStore: ReadStore;
  readonly keyring: Pick<Keyring, 'open' | 'sealBytes' | 'openBytes'>;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Gets a line for each reject and for the apply that ends it; default: `logger`. */
  readonly sessionLog?: Logger;
  /** Runs `RaiseNodeGeneration`; resolves once it is durable. */
  readonly raiseGeneration: (nodeId: string, reported: number) => Promise<void>;
  /** Records a fact of a session; resolves once it is recorded or dropped. */
  readonly recordFact: RecordFact;
  /** The node's last apply and last reject, from the log. */
  readonly nodeFacts: (nodeId: string) => RecordedApplyReports;
  /** Compiles a node at an earlier generation, secrets sealed (`src/projections/history/`). */
  readonly compileEarlier: (nodeId: string, generation: number) => Promise<NodeSnapshot | undefined>;
  /** From 0 to 1, for jitter. */
  readonly random?: () => number;
  /** How long a ConfigRequest waits for the log, in milliseconds. */
  readonly requestWaitMs?: number;
  /** The compiler; tests pass one that fails. */
  readonly compile?: typeof compileNode;
  /** The compiler's version; tests pass another. */
  readonly compilerVersion?: number;
}

/** For `/metrics`. */
export interface DeliveryStats {
  readonly sessions: number;
  /** Changed nodes not served yet. */
  readonly waitingNodes: number;
  /** Nodes with a session here that rejected their newest generation. */
  readonly rejectingNodes: number;
  readonly offered: number;
  /** Apply reports by outcome. */
  readonly reports: ReadonlyMap<string, number>;
}

export interface DeliveryService extends Delivery {
  stats(): DeliveryStats;
  /** Seconds from the offer of a snapshot until the agent applied it, or a newer one. */
  readonly timeToApplied: Histogram;
}

/** @throws ServiceError `unavailable` */
export async function createDelivery(deps: DeliveryDeps): Promise<DeliveryService> {
  const { committed, logger, clock, readStore, keyring } = deps;
  const lastGood = await openLastGoodSnapshots({ readStore, keyring, logger });
  const parts = createParts(deps, lastGood);
  const { applyReports, fanOut, generation, histories, newest, sessionServer, raises, reportTurns, retries, sessions } =
    parts;
  const onListenerError = logsError(logger, 'a listener of delivery failed');
  const revokedListeners = createListeners<string>(onListenerError);
  const endedListeners = createListeners<string | undefined>(onListenerError);
  const retryLoop = startLoop(
    retryTickMs,
    async () => retries.tick(),
    logsError(logger, 'rejected configurations were not offered again'),
  );
  const cleanup = startNodeCleanup({
    mayRemove: committed.upToDate,
    isDeleted: (nodeId) => !committed.fleet().tables.node.has(nodeId),
    remove: lastGood.remove,
    onError: (nodeId, error) =>
      logger.warn(
        { node_id: nodeId, error: errorText(error) },
        'the last-good snapshot of a deleted node was not removed',
      ),
  });

  function onBatch(batch: FoldBatch): void {
    for (const [nodeId, at] of batch.raised) raises.seen(nodeId, at);
    for (const nodeId of batch.deleted) {
      newest.forget(nodeId);
      histories.forget(nodeId);
      cleanup.add(nodeId);
    }
    for (const nodeId of batch.revoked) revokedListeners.tell(nodeId);
    for (const nodeId of batch.proven) endedListeners.tell(nodeId);
    if (batch.identityRetired) endedListeners.tell(undefined);
    fanOut.touch(batch.touched);
    sessionServer.release(batch.changed);
  }

  const listening = [committed.onBatch(onBatch), committed.onUpToDate(() => fanOut.wake())];
  return {
    state: committed.state,
    onStateChange: committed.onStateChange,
    node: (nodeId) => committed.fleet().tables.node.get(nodeId),
    settings: () => committed.fleet().singletons.connectivity.value,
    ...createAcceptedPsks(committed.fleet, clock),
    // All who ask while a read is under way share the next one, because strangers may cause reads.
    atHead: createShared(() => parts.atHead().catch(() => false)),
    generation,
    onRevoked: revokedListeners.add,
    onPsksEnded: endedListeners.add,
    openNodeSession: sessionServer.open,
    pushed: sessions.pushed,
    unsentMs(nodeId) {
      const since = sessions.unsentSince(nodeId);
      return since === undefined ? 0 : clock.monotonic() - since;
    },
    snapshotJson: createSnapshotJson({
      fleet: committed.fleet,
      newest,
      openSecret: openerOf(keyring),
      compileEarlier: deps.compileEarlier,
    }),
    timeToApplied: parts.timeToApplied.seconds,
    stats: () => ({
      sessions: sessions.size,
      waitingNodes: fanOut.waiting,
      // A getter, because it walks over all sessions.
      get rejectingNodes() {
        return histories.rejecting(generation);
      },
      offered: sessionServer.offered(),
      reports: applyReports.counts(),
    }),
    async close() {
      for (const stop of listening) stop();
      await retryLoop.close();
      await fanOut.close();
      reportTurns.close();
      await cleanup.close();
      await lastGood.close();
    },
  };
}

/** The parts that know nodes and sessions, wired to each other. */
function createParts(deps: DeliveryDeps, lastGood: LastGoodSnapshots) {
  const { clock, committed, compile, compilerVersion, keyring, logger, recordFact } = deps;
  const { random = Math.random, requestWaitMs = tuning.requestWaitMs } = deps;
  const generation = (nodeId: string): number | undefined => committed.fleet().generationOf(nodeId);
  const openSecret = openerOf(keyring);
  const waits = (nodeId: string, applied?: number): boolean => committed.fleet().heldBy(nodeId, applied) !== undefined;
  const need = (nodeId: string) => committed.fleet().needOf(nodeId);
  const newest = createNewestSnapshots({ fleet: committed.fleet, openSecret, logger, compile, compilerVersion });
  const histories = createApplyHistories({ lastGood, nodeFacts: deps.nodeFacts });
  const sessions = createSessionRegistry();
  const touch = (nodeId: string): void => fanOut.touch([nodeId]);
  const retries = createRetries({
    histories,
    clock,
    random,
    generation,
    offer(nodeId) {
      sessions.reconsider(nodeId);
      touch(nodeId);
    },
  });
  const timeToApplied = createTimeToApplied();
  const sessionLog = deps.sessionLog ?? logger;
  const known = { newest, lastGood, generation, waits, need };
  const applyReports = createApplyReports({ ...known, timeToApplied, retries, sessionLog, recordFact, clock, logger });
  const raises = createGenerationRaises({
    clock,
    raiseGeneration: deps.raiseGeneration,
    recordFact,
    passed: (nodeId, reported) => committed.until(() => (generation(nodeId) ?? 0) > reported, requestWaitMs),
    onError: (nodeId, error) =>
      logger.warn({ node_id: nodeId, error: errorText(error) }, 'a generation was not raised'),
  });
  const atHead = async (): Promise<boolean> => {
    // Asks the store, because the subscription may lag unnoticed.
    const head = await withDeadline(lastRevision(deps.eventStore, streams.fleet), requestWaitMs);
    if (head === timedOut) return false;
    return committed.until(() => committed.fleet().revision.value >= (head ?? -1), requestWaitMs);
  };
  const answer = createAnswerer({
    newest,
    lastGood,
    histories,
    applyReports,
    retries,
    raises,
    clock,
    logger,
    generation,
    waits,
    checkCompilerVersion: newest.checkCompilerVersion,
    // While cut off from the log, serving the newest known snapshot is better than ending a working session.
    upToDate: () => committed.until(() => committed.upToDate() || committed.state().kind === 'cut_off', requestWaitMs),
    atHead,
    drainRetryMs: () => Math.round(drainRetryMs * (0.5 + random())),
  });
  const reportTurns = createReportTurns(() => fanOut.running);
  const sessionServer = createSessionServer({
    sessions,
    histories,
    applyReports,
    reportTurns,
    retries,
    newest,
    timeToApplied,
    clock,
    answer,
    generation,
    waits,
    need,
    mayPush: committed.upToDate,
    touch,
  });
  const fanOut = createFanOut({
    mayPush: committed.upToDate,
    hasSession: sessions.has,
    serve: sessionServer.serve,
    onRest: reportTurns.wake,
    onError: (nodeId, error) => logger.warn({ node_id: nodeId, error: errorText(error) }, 'a node was not served yet'),
  });
  return {
    applyReports,
    atHead,
    fanOut,
    generation,
    histories,
    newest,
    sessionServer,
    raises,
    reportTurns,
    retries,
    sessions,
    timeToApplied,
  };
}
