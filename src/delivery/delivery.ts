/**
 * Delivery: committed fold → compile → open secrets → encode and checksum once → target per node → one-slot queue per
 * session. This file only wires the parts to the port; each rule has its own file.
 * Implements `docs/architecture.md#a-push` and `docs/contract/agent-protocol.md#configuration`.
 */
import type { RecordFact } from '../domain/agents/facts.js';
import type { compileNode } from '../domain/compile/compile-node.js';
import { referrersOf } from '../domain/fleet/referrers.js';
import { planDeploy } from '../domain/compile/plan.js';
import type { NodeSnapshot } from '../domain/snapshot/snapshot.js';
import type { FleetCapture } from '../domain/fleet/checkpoint.js';
import { intendedLinks } from '../domain/port-table/intended-links.js';
import { portRows } from '../domain/port-table/port-rows.js';
import { startLoop } from '../kernel/background.js';
import type { Clock } from '../kernel/clock.js';
import { errorText } from '../kernel/errors.js';
import { createListeners } from '../kernel/listeners.js';
import type { Logger } from '../kernel/logger.js';
import type { Histogram } from '../kernel/tallies.js';
import type { LogChain } from '../log-chain/log-chain.js';
import type { Keyring } from '../security/keyring.js';
import type { EventStore } from '../storage/event-store.js';
import type { ReadStore } from '../storage/read-store.js';
import { createAnswerer } from './answer.js';
import { createNodeSessions } from './node-session.js';
import { createSnapshotCache } from './cache.js';
import { openCommittedFold } from './committed-fold.js';
import { createEarlierSnapshots } from './earlier-snapshots.js';
import { createFleetCounts } from './fleet-counts.js';
import type { FoldBatch, Revoked } from './fold-batch.js';
import { createFanOut } from './fan-out.js';
import { createLastGoodCleanup } from './last-good-cleanup.js';
import { createLiveListeners } from './live-listeners.js';
import { openLastGoodSnapshots } from './last-good.js';
import { createLogHead } from './log-head.js';
import { createNewestSnapshots } from './newest.js';
import { createNodeNames } from './node-names.js';
import type { Delivery, DeliveryState } from './port.js';
import { createGenerationRaises } from './generation-raise.js';
import { openerOf } from './secrets.js';
import { createSessionRegistry } from './session-registry.js';
import { createSnapshotJson } from './snapshot-json.js';
import { createApplyHistories } from './apply-history.js';
import type { RecordedApplyReports } from './target.js';
import { createApplyReports } from './apply-reports.js';
import { createRetries } from './retries.js';
import { createReportTurns } from './report-turns.js';
import { createTimeToApplied } from './time-to-applied.js';
import { tuning } from './tuning.js';

export interface DeliveryDeps {
  readonly eventStore: EventStore;
  readonly readStore: ReadStore;
  readonly keyring: Pick<Keyring, 'createKey' | 'open' | 'openSync' | 'sealBytes' | 'openBytes' | 'shred'>;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Where it is told what nodes reject and apply again; the logger when absent. */
  readonly sessionLog?: Logger;
  readonly logChain: LogChain;
  /** Runs `RaiseNodeGeneration`; resolves once it is durable. */
  readonly raiseGeneration: (nodeId: string, reported: number) => Promise<void>;
  /** Records a fact about the node's agent, which it told on a session; resolves once it is settled what becomes of it. */
  readonly recordFact: RecordFact;
  /** What the node applied and rejected last, from the log; undefined for a node without facts. */
  readonly nodeFacts: (nodeId: string) => Promise<RecordedApplyReports | undefined>;
  /**
   * Compiles a node at an earlier generation, secrets sealed (`src/history/`). @param head revision of `svc-fleet` that is
   * folded here
   */
  readonly compileEarlier: (nodeId: string, generation: number, head: number) => Promise<NodeSnapshot | undefined>;
  /** From 0 to 1; spreads the retries of drained agents. */
  readonly random?: () => number;
  /** Fleet events between two fold checkpoints. */
  readonly checkpointEvery?: number;
  /** How long it counts as ready after its subscription drops, in milliseconds. */
  readonly dropGraceMs?: number;
  /** How long a ConfigRequest waits for the log, in milliseconds. */
  readonly requestWaitMs?: number;
  /** The compiler; tests pass one that fails. */
  readonly compile?: typeof compileNode;
  /** Its version; tests pass that of another release. */
  readonly compilerVersion?: number;
}

/** Counts since the start, and current sizes, for /metrics. */
export interface DeliveryStats {
  readonly sessions: number;
  /** Changed nodes that have not been served yet. */
  readonly waitingNodes: number;
  /** Nodes with a session here that rejected their newest generation. */
  readonly rejectingNodes: number;
  readonly offered: number;
  /** Apply reports by what was made of them. */
  readonly reports: ReadonlyMap<string, number>;
  readonly cacheBytes: number;
}

export interface DeliveryService extends Delivery {
  /** The committed fold as it is now; the gateway starts from it. */
  captureCommitted(): FleetCapture;
  /** Log position that it has reached, as far as it was read from the log; 0 for an empty one. */
  position(): number;
  stats(): DeliveryStats;
  /** Seconds from the offer of a snapshot until the agent applied it, or a newer one. */
  readonly timeToApplied: Histogram;
}

/** Resolves once the fold checkpoint is loaded and catching up has begun. @throws ServiceError `unavailable` */
export async function createDelivery(deps: DeliveryDeps): Promise<DeliveryService> {
  const { logger, clock, readStore, keyring } = deps;
  const random = deps.random ?? Math.random;
  const requestWaitMs = deps.requestWaitMs ?? tuning.requestWaitMs;
  const onListenerError = (error: unknown): void =>
    logger.error({ error: errorText(error) }, 'a listener of delivery failed');
  const stateListeners = createListeners<DeliveryState>(onListenerError);
  const revokedListeners = createListeners<Revoked>(onListenerError);
  const { compilerVersion } = deps;

  const lastGood = await openLastGoodSnapshots({ readStore, keyring, logger });
  const fold = await openCommittedFold({
    eventStore: deps.eventStore,
    logger,
    logChain: deps.logChain,
    onBatch,
    onStateChange: stateListeners.tell,
    onUpToDate: () => {
      fanOut.wake();
      cleanup.wake();
    },
    checkpointEvery: deps.checkpointEvery,
    compilerVersion,
    dropGraceMs: deps.dropGraceMs,
  });
  const generation = (nodeId: string): number | undefined => fold.fleet().generationOf(nodeId);
  const cache = createSnapshotCache(tuning.cacheBytes, tuning.rememberedNodes);
  const newest = createNewestSnapshots({
    fleet: fold.fleet,
    cache,
    openSecret: openerOf(keyring),
    logger,
    compile: deps.compile,
    compilerVersion,
  });
  const earlier = createEarlierSnapshots({
    compileEarlier: (nodeId, wanted) => deps.compileEarlier(nodeId, wanted, fold.fleet().revision.value),
    openSecret: openerOf(keyring),
  });
  const histories = createApplyHistories({ lastGood, nodeFacts: deps.nodeFacts });
  const sessions = createSessionRegistry();
  const retries = createRetries({
    histories,
    clock,
    random,
    generation,
    offer(nodeId) {
      sessions.reconsider(nodeId);
      fanOut.touch([nodeId]);
    },
  });
  const retryLoop = startLoop(
    tuning.retryTickMs,
    async () => retries.tick(),
    (error) => logger.error({ error: errorText(error) }, 'rejected configurations were not offered again'),
  );
  const timeToApplied = createTimeToApplied();
  const applyReports = createApplyReports({
    timeToApplied,
    retries,
    sessionLog: deps.sessionLog ?? logger,
    newest,
    lastGood,
    generation,
    recordFact: deps.recordFact,
    clock,
    logger,
  });
  const raises = createGenerationRaises({
    clock,
    raiseGeneration: deps.raiseGeneration,
    recordFact: deps.recordFact,
    passed: (nodeId, reported) => fold.until(() => (generation(nodeId) ?? 0) > reported, requestWaitMs),
    onError: (nodeId, error) =>
      logger.warn({ node_id: nodeId, error: errorText(error) }, 'a generation was not raised'),
  });
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
    checkCompilerVersion: newest.checkCompilerVersion,
    // Cut off from the log, the newest known snapshot is served: better than ending a session that works.
    upToDate: () => fold.until(() => fold.upToDate() || fold.state().kind === 'cut_off', requestWaitMs),
    atHead: createLogHead({
      eventStore: deps.eventStore,
      folded: (revision) => fold.until(() => fold.fleet().revision.value >= revision, requestWaitMs),
      waitMs: requestWaitMs,
    }),
    drainRetryMs: () => Math.round(tuning.drainRetryMs * (0.5 + random())),
  });
  const reportTurns = createReportTurns(() => fanOut.running);
  const nodeSessions = createNodeSessions({
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
    mayPush: fold.upToDate,
    touch: (nodeId) => fanOut.touch([nodeId]),
  });
  const fanOut = createFanOut({
    mayPush: fold.upToDate,
    hasSession: sessions.has,
    serve: nodeSessions.serve,
    onRest: reportTurns.wake,
    onError: (nodeId, error) => logger.warn({ node_id: nodeId, error: errorText(error) }, 'a node was not served yet'),
  });
  const cleanup = createLastGoodCleanup({
    mayRemove: fold.upToDate,
    isDeleted: (nodeId) => !fold.fleet().tables.node.has(nodeId),
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
      if (fold.fleet().tables.node.has(nodeId)) continue;
      cache.delete(nodeId);
      histories.forget(nodeId);
      cleanup.add(nodeId);
    }
    for (const revoked of batch.revoked) revokedListeners.tell(revoked);
    fanOut.touch(batch.touched);
  }

  fold.start();
  return {
    state: fold.state,
    onStateChange: stateListeners.add,
    node: (nodeId) => fold.fleet().tables.node.get(nodeId),
    chain: (chainId) => fold.fleet().tables.l4_chain.get(chainId),
    chains: () => fold.fleet().tables.l4_chain.values(),
    upstream: (upstreamId) => fold.fleet().tables.l4_upstream.get(upstreamId),
    settings: () => fold.fleet().singletons.connectivity.value,
    credentials: () => fold.fleet().tables.credential.values(),
    referrers: (type, id) => referrersOf(fold.fleet(), type, id),
    nodeIds: () => fold.fleet().tables.node.ids(),
    liveListeners: createLiveListeners(fold.fleet),
    resourceCounts: createFleetCounts({ fleet: fold.fleet, clock }),
    nodeNames: createNodeNames(fold.fleet),
    portRows: (nodeId) => portRows(fold.fleet(), nodeId),
    links: (nodeId) => intendedLinks(fold.fleet(), nodeId),
    verifier: (nodeId) => fold.fleet().tables.node.get(nodeId)?.psk?.verifier,
    generation,
    onRevoked: (listener) => revokedListeners.add(({ nodeId, replaced }) => listener(nodeId, replaced)),
    openNodeSession: nodeSessions.open,
    pushed: sessions.pushed,
    unsentMs(nodeId) {
      const since = sessions.unsentSince(nodeId);
      return since === undefined ? 0 : clock.monotonic() - since;
    },
    plan: (chainId) => planDeploy(fold.fleet(), chainId),
    snapshotJson: createSnapshotJson({ fleet: fold.fleet, newest, earlier }),
    waitFor: (revision, timeoutMs) => fold.until(() => fold.fleet().revision.value >= revision, timeoutMs),
    captureCommitted: fold.capture,
    revision: () => fold.fleet().revision.value,
    position: () => fold.fleet().position.value,
    timeToApplied: timeToApplied.seconds,
    stats: () => ({
      sessions: sessions.size,
      waitingNodes: fanOut.waiting,
      // Goes through all sessions: only for a reader who asks for it.
      get rejectingNodes() {
        return histories.rejecting(generation);
      },
      offered: nodeSessions.offered(),
      reports: applyReports.counts(),
      cacheBytes: cache.bytes,
    }),
    async close() {
      await fold.close();
      await retryLoop.close();
      await fanOut.close();
      reportTurns.close();
      await cleanup.close();
      await lastGood.close();
    },
  };
}
