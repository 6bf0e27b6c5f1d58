/**
 * Delivery: committed fold → compile → open secrets → encode and checksum once → target per node → one-slot queue per
 * session. This file only wires the parts to the port; each rule has its file. Implements `docs/contract/agent-protocol.md`,
 * Configuration, and the delivery row of `docs/architecture.md`.
 */
import type { AgentEvent } from '../domain/agents/facts.js';
import { compileNode } from '../domain/compile/compile-node.js';
import { planDeploy } from '../domain/compile/plan.js';
import type { FleetCapture } from '../domain/fleet/checkpoint.js';
import { generationOf } from '../domain/fleet/fleet.js';
import type { Clock } from '../kernel/clock.js';
import { ServiceError, errorText } from '../kernel/errors.js';
import { createListeners } from '../kernel/listeners.js';
import type { Logger } from '../kernel/logger.js';
import type { Keyring } from '../security/keyring.js';
import type { EventStore } from '../storage/event-store.js';
import type { ReadStore } from '../storage/read-store.js';
import { createAnswerer } from './answer.js';
import { createNodeSessions } from './node-session.js';
import { createSnapshotCache } from './cache.js';
import { openCommittedFold } from './committed-fold.js';
import type { FoldBatch, Revoked } from './committed-fold.js';
import { createFanOut } from './fan-out.js';
import { createForgetting } from './forgetting.js';
import { openLastGoodSnapshots } from './last-good.js';
import { createNewestSnapshots } from './newest.js';
import type { Delivery, DeliveryState, SnapshotJson } from './port.js';
import { createGenerationRaises } from './generation-raise.js';
import { openerOf } from './secrets.js';
import { createSessionRegistry } from './session-registry.js';
import { snapshotToJson } from './snapshot-json.js';
import { createApplyHistories } from './apply-history.js';
import type { RecordedApplyReports } from './target.js';
import { createApplyReports } from './apply-reports.js';
import { tuning } from './tuning.js';

export interface DeliveryDeps {
  readonly eventStore: EventStore;
  readonly readStore: ReadStore;
  readonly keyring: Pick<Keyring, 'createKey' | 'open' | 'openSync' | 'sealBytes' | 'openBytes' | 'shred'>;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Runs `RaiseNodeGeneration`; resolves once it is durable. */
  readonly raiseGeneration: (nodeId: string, reported: number) => Promise<void>;
  /** Records a fact of the node's agent; resolves once it is durable. */
  readonly recordFact: (nodeId: string, event: AgentEvent) => Promise<void>;
  /** What the log says that the node applied and rejected last; undefined for a node without facts. */
  readonly nodeFacts: (nodeId: string) => Promise<RecordedApplyReports | undefined>;
  /** 0..1, spreads the retries of drained agents. */
  readonly random?: () => number;
  /** Fleet events between two fold checkpoints. */
  readonly checkpointEvery?: number;
  /** How long it still counts as ready after a dropped subscription, in milliseconds. */
  readonly dropGraceMs?: number;
  /** The compiler; tests put one in its place that fails. */
  readonly compile?: typeof compileNode;
  /** Its number; tests put that of another release in its place. */
  readonly compilerVersion?: number;
}

/** Counts since the start, and what is held now: for /metrics. */
export interface DeliveryStats {
  readonly sessions: number;
  /** Changed nodes that wait to be served. */
  readonly waitingNodes: number;
  /** Nodes with a session here that rejected their newest generation. */
  readonly rejectingNodes: number;
  readonly offered: number;
  readonly ignoredReports: number;
  readonly cacheBytes: number;
}

export interface DeliveryService extends Delivery {
  /** The committed fold at this moment, for a gateway's start. */
  captureCommitted(): FleetCapture;
  /** Revision of `svc-fleet` that the committed fold has reached; -1 for an empty log. */
  revision(): number;
  stats(): DeliveryStats;
}

/** Resolves once the fold checkpoint is loaded and catching up has begun. @throws ServiceError `unavailable` */
export async function createDelivery(deps: DeliveryDeps): Promise<DeliveryService> {
  const { logger, clock, readStore, keyring } = deps;
  const random = deps.random ?? Math.random;
  const complain = (error: unknown): void => logger.error({ error: errorText(error) }, 'a listener of delivery failed');
  const stateListeners = createListeners<DeliveryState>(complain);
  const revokedListeners = createListeners<Revoked>(complain);
  const own = deps.compilerVersion === undefined ? {} : { compilerVersion: deps.compilerVersion };
  let ignoredReports = 0;

  const lastGood = await openLastGoodSnapshots({ readStore, keyring, logger });
  const fold = await openCommittedFold({
    eventStore: deps.eventStore,
    logger,
    onBatch,
    onStateChange: stateListeners.tell,
    onUpToDate: () => {
      fanOut.wake();
      forgetting.wake();
    },
    ...(deps.checkpointEvery === undefined ? {} : { checkpointEvery: deps.checkpointEvery }),
    ...own,
    ...(deps.dropGraceMs === undefined ? {} : { dropGraceMs: deps.dropGraceMs }),
  });
  const generation = (nodeId: string): number | undefined => generationOf(fold.fleet(), nodeId);
  const cache = createSnapshotCache(tuning.cacheBytes, tuning.rememberedNodes);
  const newest = createNewestSnapshots({
    fleet: fold.fleet,
    cache,
    openSecret: openerOf(keyring),
    logger,
    ...(deps.compile === undefined ? {} : { compile: deps.compile }),
    ...own,
  });
  const histories = createApplyHistories({ lastGood, nodeFacts: deps.nodeFacts });
  const applyReports = createApplyReports({
    newest,
    lastGood,
    generation,
    recordFact: deps.recordFact,
    onIgnored: (nodeId) => {
      ignoredReports += 1;
      logger.debug({ node_id: nodeId }, 'an apply report fits neither the newest nor the last-good snapshot');
    },
  });
  const raises = createGenerationRaises({
    clock,
    raiseGeneration: deps.raiseGeneration,
    recordFact: deps.recordFact,
    passed: (nodeId, reported) => fold.until(() => (generation(nodeId) ?? 0) > reported, tuning.requestWaitMs),
    onError: (nodeId, error) =>
      logger.warn({ node_id: nodeId, error: errorText(error) }, 'a generation was not raised'),
  });
  const answer = createAnswerer({
    newest,
    lastGood,
    histories,
    applyReports,
    raises,
    logger,
    generation,
    // Cut off from the log, the newest that is known is the newest there is: better than to end a session that stands.
    upToDate: () => fold.until(() => fold.upToDate() || fold.state().kind === 'cut_off', tuning.requestWaitMs),
    drainRetryMs: () => Math.round(tuning.drainRetryMs * (0.5 + random())),
  });
  const sessions = createSessionRegistry();
  const nodeSessions = createNodeSessions({
    sessions,
    histories,
    applyReports,
    newest,
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
    onError: (nodeId, error) => logger.warn({ node_id: nodeId, error: errorText(error) }, 'a node was not served yet'),
  });
  const forgetting = createForgetting({
    mayForget: fold.upToDate,
    isGone: (nodeId) => !fold.fleet().nodes.has(nodeId),
    forget: lastGood.forget,
    onError: (nodeId, error) =>
      logger.warn(
        { node_id: nodeId, error: errorText(error) },
        'the last-good snapshot of a deleted node was not removed',
      ),
  });

  function onBatch(batch: FoldBatch): void {
    for (const [nodeId, at] of batch.raised) raises.seen(nodeId, at);
    for (const nodeId of batch.deleted) {
      if (fold.fleet().nodes.has(nodeId)) continue;
      cache.delete(nodeId);
      histories.forget(nodeId);
      forgetting.add(nodeId);
    }
    for (const revoked of batch.revoked) revokedListeners.tell(revoked);
    fanOut.touch(batch.touched);
  }

  const snapshotJson = async (nodeId: string): Promise<SnapshotJson | undefined> => {
    for (;;) {
      const made = await newest.stamp(nodeId);
      if (made.kind === 'unknown_node') return undefined;
      if (made.kind === 'withheld') {
        throw new ServiceError(
          'internal',
          'the configuration of this node can not be made; the log of the service says why',
        );
      }
      const { generation: shown, checksum } = made.stamp;
      // The same fold that the checksum was made from, unless a command came between.
      if (generation(nodeId) !== shown) continue;
      const snapshot = snapshotToJson(compileNode(fold.fleet(), nodeId), Buffer.from(checksum, 'hex'));
      return { generation: shown, checksum, snapshot };
    }
  };

  fold.start();
  return {
    state: fold.state,
    onStateChange: stateListeners.add,
    node: (nodeId) => fold.fleet().nodes.get(nodeId),
    chain: (chainId) => fold.fleet().chains.get(chainId),
    settings: () => fold.fleet().settings.value,
    verifier: (nodeId) => fold.fleet().nodes.get(nodeId)?.psk?.verifier,
    generation,
    onRevoked: (listener) => revokedListeners.add(({ nodeId, replaced }) => listener(nodeId, replaced)),
    openNodeSession: nodeSessions.open,
    pushed: sessions.pushed,
    plan: (chainId) => planDeploy(fold.fleet(), chainId),
    snapshotJson,
    waitFor: (revision, timeoutMs) => fold.until(() => fold.fleet().revision.value >= revision, timeoutMs),
    captureCommitted: fold.capture,
    revision: () => fold.fleet().revision.value,
    stats: () => ({
      sessions: sessions.size,
      waitingNodes: fanOut.waiting,
      rejectingNodes: histories.rejecting(generation),
      offered: nodeSessions.offered(),
      ignoredReports,
      cacheBytes: cache.bytes,
    }),
    async close() {
      await fold.close();
      await fanOut.close();
      await forgetting.close();
      await lastGood.close();
    },
  };
}
