/**
 * What nodes tell, put together: what the sessions of this instance tell is entered in the table at once, counted and written
 * behind; what other instances took is read from the store. Only the opening and the end of a session wait for the store.
 * Implements `docs/contract/agent-protocol.md#heartbeats-commands-metrics`.
 */
import { sleep } from '../kernel/background.js';
import type { Clock } from '../kernel/clock.js';
import { errorText } from '../kernel/errors.js';
import type { Logger } from '../kernel/logger.js';
import { backoff, storeRetry } from '../kernel/retry.js';
import type { ReadStore } from '../storage/read-store.js';
import { listenerCounters, sumOfRows } from './counted-rows.js';
import type { Entry, Part } from './entry.js';
import { outOfLinks, possibleMetrics, takeHeartbeat, takeMetrics } from './entry.js';
import { linkShares, listenerShares, metricsShares, piecesOf, roundTripShares } from './history/counting.js';
import { createHeldBack } from './held-back.js';
import { openHistory } from './history/history.js';
import { followOthers } from './others.js';
import type { Others } from './others.js';
import type { Carriers, HeartbeatFacts, Reports, Telemetry } from './port.js';
import { createPresence } from './presence.js';
import { createRecentSums } from './recent-sums.js';
import { openReportStore } from './store.js';
import { createTable } from './table.js';
import { createTrafficMetrics } from './traffic-metrics.js';
import { tuning } from './tuning.js';

export interface ReportsDeps {
  readonly readStore: ReadStore;
  readonly instanceId: string;
  readonly clock: Clock;
  readonly logger: Logger;
  /** The instances that are alive, where several use the read store; undefined where this one has it alone. */
  readonly liveInstances?: (() => Promise<readonly string[]>) | undefined;
  /** For whom history is recorded; undefined: it is not. */
  readonly carriers?: ((nodeId: string) => Carriers) | undefined;
  /** What was known in this process before the store was emptied, see `ReportsService.known`. */
  readonly known?: Known | undefined;
}

/** What nodes told last, by node. */
export type Known = Iterable<readonly [nodeId: string, Entry]>;

export interface ReportsService extends Telemetry, Reports {
  /** Deletes the reports of nodes that are gone. @throws ServiceError `unavailable` */
  forget(nodeIds: readonly string[]): Promise<void>;
  /** Reads what was stored before, writes what waits, and reads what others wrote. @throws ServiceError `unavailable` */
  flush(): Promise<void>;
  close(): Promise<void>;
  /** All that is in memory, also when it is closed. */
  known(): Known;
}

/** @throws ServiceError `unavailable` */
export async function openReports(deps: ReportsDeps): Promise<ReportsService> {
  const { readStore, instanceId, clock, logger, liveInstances, carriers } = deps;
  const traffic = createTrafficMetrics();
  const history = carriers && (await openHistory({ readStore, clock, logger }, instanceId));
  const heartbeats = createRecentSums(clock, ['heartbeats'], tuning.recentHeartbeats);
  const recentTraffic = createRecentSums(clock, listenerCounters, tuning.recentTraffic);
  let others: Others | undefined;
  const table = createTable(() => others?.readAt() ?? 0, logger);
  const store = await openReportStore({
    readStore,
    table,
    instanceId,
    isShared: liveInstances !== undefined,
    clock,
    logger,
  });
  const presence = createPresence(readStore.leases, logger);
  const heldBack = createHeldBack();
  const isOwn = (nodeId: string): boolean => table.find(nodeId)?.presence?.until === Number.POSITIVE_INFINITY;

  const loadTables = await store.load();
  for (const [nodeId, known] of deps.known ?? []) store.adopt(nodeId, known);
  const stop = new AbortController();
  /** A start does not wait for the tables of the last run. */
  const loaded = (async () => {
    for (let tries = 1; !stop.signal.aborted; tries += 1) {
      try {
        await loadTables(stop.signal);
        break;
      } catch (error) {
        if (tries === 1) logger.warn({ error: errorText(error) }, 'what nodes told last could not be read yet');
        await sleep(backoff(storeRetry, tries), stop.signal);
      }
    }
    heldBack.releaseAll();
  })();
  if (liveInstances !== undefined) {
    others = followOthers({ store, table, instanceId, liveInstances, isOwn, clock, logger });
    for (const { nodeId, facts, remainingMs } of await presence.all()) {
      table.entry(nodeId).presence = { facts, until: clock.monotonic() + remainingMs };
    }
    await others.read();
  }

  let refusedTold = Number.NEGATIVE_INFINITY;
  function refuse(nodeId: string): void {
    traffic.refused();
    if (clock.monotonic() - refusedTold < tuning.refusedToldMs) return;
    refusedTold = clock.monotonic();
    logger.warn({ node_id: nodeId }, 'an agent counted more bytes than any link carries; its counters are left out');
  }

  function takeBeat(nodeId: string, entry: Entry, facts: HeartbeatFacts): readonly Part[] {
    const at = clock.now();
    const last = entry.beat?.at;
    heartbeats.note({ heartbeats: 1 });
    const { listeners, links, refused } = takeHeartbeat(entry, facts, at);
    if (refused) refuse(nodeId);
    // Before that nobody knows since when it has grown.
    if (entry.hasReported && listeners !== undefined) recentTraffic.note(sumOfRows(listenerCounters, listeners));
    entry.hasReported = true;
    if (history !== undefined && carriers !== undefined) {
      const ofNode = carriers(nodeId);
      if (listeners !== undefined) history.count(nodeId, at, listenerShares(ofNode, listeners, nodeId));
      if (links !== undefined) history.count(nodeId, at, linkShares(ofNode, links));
      // A node was online since the heartbeat before, unless that is longer ago than it is granted.
      if (last !== undefined && at - last <= entry.offlineAfterMs) {
        for (const [from, online_ms] of piecesOf(last, at)) history.count(nodeId, from, [[nodeId, { online_ms }]]);
      }
      const trips = entry.links === undefined ? [] : outOfLinks(entry.links).roundTrips;
      if (trips.length > 0) history.count(nodeId, at, roundTripShares(ofNode, nodeId, trips));
    }
    if (listeners === undefined) return links === undefined ? [] : ['links'];
    return links === undefined ? ['listeners'] : ['listeners', 'links'];
  }

  return {
    ...table,
    async sessionOpened(nodeId, facts, offlineAfterMs) {
      const entry = table.entry(nodeId);
      entry.hasReported = false;
      entry.presence = { facts, until: Number.POSITIVE_INFINITY };
      entry.offlineAfterMs = offlineAfterMs;
      table.told(nodeId);
      if (others !== undefined) heldBack.hold(nodeId);
      try {
        await presence.opened(nodeId, facts, offlineAfterMs);
        const before = await others?.stored(nodeId);
        if (before !== undefined && before.fields.instance !== instanceId) await store.enter([before]);
      } catch (error) {
        if (table.presence(nodeId) === facts) entry.presence = undefined;
        table.told(nodeId);
        throw error;
      } finally {
        heldBack.release(nodeId);
      }
      entry.seenAt = clock.now();
      table.told(nodeId);
      store.write(nodeId, []);
    },
    alive(nodeId, facts, offlineAfterMs, heartbeat) {
      presence.alive(nodeId, facts, offlineAfterMs);
      heldBack.enter(nodeId, () => {
        const entry = table.entry(nodeId);
        if (entry.presence?.facts.session_id === facts.session_id) entry.presence = { ...entry.presence, facts };
        entry.seenAt = clock.now();
        entry.offlineAfterMs = offlineAfterMs;
        const changed = heartbeat === undefined ? [] : takeBeat(nodeId, entry, heartbeat);
        if (heartbeat !== undefined) table.told(nodeId);
        store.write(nodeId, changed);
      });
    },
    metrics(nodeId, given, process) {
      heldBack.enter(nodeId, () => {
        const [entry, at] = [table.entry(nodeId), clock.now()];
        const last = entry.metrics;
        const report = possibleMetrics(given, last?.process_id === process.process_id ? last : undefined, at, entry);
        if (report !== given) refuse(nodeId);
        const before = takeMetrics(entry, report, process, at);
        traffic.note(report, before);
        if (history !== undefined && carriers !== undefined) {
          history.count(nodeId, at, metricsShares(carriers(nodeId), report, before));
        }
        table.told(nodeId);
        store.write(nodeId, ['metrics']);
      });
    },
    async sessionEnded(nodeId, sessionId) {
      const entry = table.find(nodeId);
      const wasLive = entry?.presence?.facts.session_id === sessionId;
      if (wasLive) {
        entry.presence = undefined;
        table.told(nodeId);
      }
      await presence.ended(nodeId, sessionId);
      if (!wasLive || isOwn(nodeId)) return;
      // What another instance wrote, which has the node now, must not be overwritten.
      const stored = await others?.stored(nodeId);
      const holder = stored?.fields.presence?.session_id ?? sessionId;
      if (stored === undefined || holder === sessionId) store.write(nodeId, []);
      else await others?.take([stored]);
    },
    onLost: presence.onLost,
    activity: () => ({ heartbeats_per_minute: heartbeats.sums().heartbeats, last_5m: recentTraffic.sums() }),
    trafficMetrics: traffic.metrics,
    recordsHistory: history !== undefined,
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
    },
    async close() {
      stop.abort();
      await loaded;
      await others?.close();
      await presence.close();
      await store.close();
      await history?.close();
    },
  };
}
