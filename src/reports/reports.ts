/**
 * Wires telemetry together: reports from this instance's sessions go into the table at once, into history, and later into the
 * store, from which reports of other instances are read. Only the start and the end of a session wait for the store. Implements `docs/contract/agent-protocol.md#heartbeats-commands-metrics`.
 */
import { sleep, startLoop } from '../kernel/background.js';
import type { Clock } from '../kernel/clock.js';
import { errorText } from '../kernel/errors.js';
import { logsWarning, type Logger } from '../kernel/logger.js';
import { backoff, storeRetry } from '../kernel/retry.js';
import { listenerCounters, sumOfRows } from './counted-rows.js';
import { plausibleMetrics, applyHeartbeat, applyMetrics, type Entry, type Part } from './entry.js';
import { createHeldBack } from './held-back.js';
import type { HistoryDocumentsDeps } from './history/documents.js';
import { openHistory } from './history/history.js';
import { createRecorder, type Recorder } from './history/recorder.js';
import { sampleRates } from './listener-rates.js';
import { followOthers, type Others } from './others.js';
import type { Activity, Carriers, HeartbeatFacts, MetricsFacts, ReportingProcess, Reports, Telemetry } from './port.js';
import { createPresence } from './presence.js';
import { createRecentSums } from './recent-sums.js';
import { openReportStore } from './store.js';
import { createTable } from './table.js';
import { createTrafficMetrics } from './traffic-metrics.js';
import { tuning } from './tuning.js';

export interface ReportsDeps extends HistoryDocumentsDeps {
  readonly instanceId: string;
  readonly clock: Clock;
  readonly logger: Logger;
  /** The live instances; undefined if this one has the read store to itself. */
  readonly liveInstances?: (() => Promise<readonly string[]>) | undefined;
  /** What nodes serve; undefined: neither history nor the traffic of chains is recorded. */
  readonly carriers?: ((nodeId: string) => Carriers) | undefined;
  /** False: history is not recorded. */
  readonly recordsHistory?: boolean;
  /** Whether the node is no longer in the fleet; undefined: the fleet has all nodes. */
  readonly isGone?: ((nodeId: string) => boolean) | undefined;
  /** What this process knew before the store was emptied, see `ReportsService.known`. */
  readonly known?: Known | undefined;
}

/** The last reports by node. */
export type Known = Iterable<readonly [nodeId: string, Entry]>;

export interface ReportsService extends Telemetry, Reports {
  /** Deletes the reports of deleted nodes. @throws ServiceError `unavailable` */
  forget(nodeIds: readonly string[]): Promise<void>;
  /** Finishes the initial load, all waiting writes, and a read of what other instances wrote. @throws ServiceError `unavailable` */
  flush(): Promise<void>;
  close(): Promise<void>;
  /** Everything in memory, even after `close`. */
  known(): Known;
}

/** Enters reports of this instance's sessions in the entry of their node, in history and in the sums of this instance. */
function createIntake({ clock, logger, carriers }: ReportsDeps, recorder: Recorder | undefined) {
  const traffic = createTrafficMetrics();
  const heartbeats = createRecentSums(clock, ['heartbeats'], tuning.recentHeartbeats);
  const recentTraffic = createRecentSums(clock, listenerCounters, tuning.recentTraffic);
  let refusalLoggedAt = Number.NEGATIVE_INFINITY;
  function refuse(nodeId: string): void {
    traffic.refused();
    if (clock.monotonic() - refusalLoggedAt < tuning.refusalLogMs) return;
    refusalLoggedAt = clock.monotonic();
    logger.warn({ node_id: nodeId }, 'an agent counted more bytes than any link carries; its counters are left out');
  }

  return {
    /** @returns the parts that have changed */
    heartbeat(nodeId: string, entry: Entry, facts: HeartbeatFacts): readonly Part[] {
      const at = clock.now();
      const last = entry.beat?.at;
      heartbeats.note({ heartbeats: 1 });
      if (carriers) sampleRates(entry, entry, carriers(nodeId).begins);
      const growth = applyHeartbeat(entry, facts, at);
      const { listeners, links } = growth;
      if (growth.refused) refuse(nodeId);
      // The first report of a session may cover any time.
      if (entry.hasReported && listeners !== undefined) recentTraffic.note(sumOfRows(listenerCounters, listeners));
      entry.hasReported = true;
      recorder?.heartbeat(nodeId, { entry, growth, at, last });
      if (listeners === undefined) return links === undefined ? [] : ['links'];
      return links === undefined ? ['listeners'] : ['listeners', 'links'];
    },
    metrics(nodeId: string, entry: Entry, given: MetricsFacts, process: ReportingProcess): void {
      const [at, last] = [clock.now(), entry.metrics];
      const report = plausibleMetrics(given, last?.process_id === process.process_id ? last : undefined, at, entry);
      if (report !== given) refuse(nodeId);
      const before = applyMetrics(entry, report, process, at);
      traffic.note(report, before);
      recorder?.metrics(nodeId, report, before);
    },
    activity: (): Activity => ({ heartbeats_per_minute: heartbeats.sums().heartbeats, last_5m: recentTraffic.sums() }),
    trafficMetrics: traffic.metrics,
  };
}

/** @throws ServiceError `unavailable` */
export async function openReports(deps: ReportsDeps): Promise<ReportsService> {
  const { readStore, instanceId, clock, logger, liveInstances, carriers, isGone = () => false } = deps;
  const recorded = deps.recordsHistory === false ? undefined : carriers;
  const history = recorded && (await openHistory(deps, instanceId));
  const recorder = history && createRecorder(history, recorded, clock);
  const intake = createIntake(deps, recorder);
  let others: Others | undefined;
  const table = createTable(() => others?.readAt() ?? 0, clock, logger);
  const isOwn = (nodeId: string): boolean => table.find(nodeId)?.presence?.until === Number.POSITIVE_INFINITY;
  const store = await openReportStore({
    readStore,
    table,
    instanceId,
    isShared: liveInstances !== undefined,
    isOwn,
    isGone,
    onEntered(nodeId, entry, before) {
      if (entry.beat?.at !== before.beat?.at && carriers) sampleRates(entry, before, carriers(nodeId).begins);
      recorder?.taken(nodeId, entry, before);
    },
    clock,
    logger,
  });
  const presence = createPresence(readStore.leases, logger);
  const heldBack = createHeldBack();

  const loadTables = await store.load();
  for (const [nodeId, known] of deps.known ?? []) store.adopt(nodeId, known);
  const stop = new AbortController();
  // The start does not wait for the tables of the previous run.
  const loaded = untilLoaded(loadTables, stop.signal, logger).then(heldBack.releaseAll);
  if (liveInstances !== undefined) {
    others = followOthers({ store, table, instanceId, liveInstances, isOwn, isGone, clock, logger });
    for (const { nodeId, facts, remainingMs } of await presence.all()) {
      table.entry(nodeId).presence = { facts, until: clock.monotonic() + remainingMs };
    }
    await others.read();
  }

  const noteRoundTrips = async (): Promise<void> => recorder?.roundTrips(table.entries());
  const roundTrips = startLoop(
    tuning.roundTripsEveryMs,
    noteRoundTrips,
    logsWarning(logger, 'round trips could not be recorded'),
  );

  return {
    ...table,
    async sessionOpened(nodeId, facts, offlineAfterMs) {
      const entry = table.entry(nodeId);
      entry.hasReported = false;
      entry.closedAt = 0;
      entry.presence = { facts, until: Number.POSITIVE_INFINITY };
      entry.offlineAfterMs = offlineAfterMs;
      table.notify(nodeId);
      if (others !== undefined) heldBack.hold(nodeId);
      try {
        await presence.opened(nodeId, facts, offlineAfterMs);
        const before = await others?.stored(nodeId);
        if (before !== undefined && before.fields.instance !== instanceId) await store.enter([before]);
      } catch (error) {
        if (table.presence(nodeId) === facts) entry.presence = undefined;
        table.notify(nodeId);
        throw error;
      } finally {
        heldBack.release(nodeId);
      }
      entry.seenAt = clock.now();
      table.notify(nodeId);
      store.write(nodeId, []);
    },
    alive(nodeId, facts, offlineAfterMs, heartbeat) {
      presence.alive(nodeId, facts, offlineAfterMs);
      heldBack.enter(nodeId, () => {
        const entry = table.entry(nodeId);
        if (entry.presence?.facts.session_id === facts.session_id) entry.presence = { ...entry.presence, facts };
        entry.seenAt = clock.now();
        entry.offlineAfterMs = offlineAfterMs;
        const changed = heartbeat === undefined ? [] : intake.heartbeat(nodeId, entry, heartbeat);
        if (heartbeat !== undefined) table.notify(nodeId);
        store.write(nodeId, changed);
      });
    },
    metrics(nodeId, report, process) {
      heldBack.enter(nodeId, () => {
        intake.metrics(nodeId, table.entry(nodeId), report, process);
        table.notify(nodeId);
        store.write(nodeId, ['metrics']);
      });
    },
    async sessionEnded(nodeId, sessionId, byAgent = false) {
      const entry = table.find(nodeId);
      const wasLive = entry?.presence?.facts.session_id === sessionId;
      if (wasLive) {
        entry.presence = undefined;
        entry.closedAt = byAgent ? clock.now() : 0;
        table.notify(nodeId);
      }
      await presence.ended(nodeId, sessionId);
      if (!wasLive || isOwn(nodeId)) return;
      // If another instance has the node now, what it wrote must not be overwritten.
      const stored = await others?.stored(nodeId);
      const holder = stored?.fields.presence?.session_id ?? sessionId;
      if (stored === undefined || holder === sessionId) store.write(nodeId, []);
      else await others?.take([stored]);
    },
    onLost: presence.onLost,
    activity: intake.activity,
    trafficMetrics: intake.trafficMetrics,
    historySince: history?.since,
    history: (resourceId, step, from) => history?.read(resourceId, step, from) ?? Promise.resolve(new Map()),
    stale: () => others !== undefined && clock.monotonic() - others.readAt() > tuning.staleAfterMs,
    forget: store.forget,
    known: table.entries,
    async flush() {
      await loaded;
      await presence.flush();
      await store.flush();
      await history?.flush();
      await others?.read();
      await noteRoundTrips();
    },
    async close() {
      stop.abort();
      await loaded;
      await roundTrips.close();
      await others?.close();
      await presence.close();
      await store.close();
      await history?.close();
    },
  };
}

/** Tries to load until it succeeds or the signal aborts. */
async function untilLoaded(
  load: (signal: AbortSignal) => Promise<void>,
  signal: AbortSignal,
  logger: Logger,
): Promise<void> {
  for (let tries = 1; !signal.aborted; tries += 1) {
    try {
      return await load(signal);
    } catch (error) {
      if (tries === 1) logger.warn({ error: errorText(error) }, 'the last reports of nodes could not be read yet');
      await sleep(backoff(storeRetry, tries), signal);
    }
  }
}
