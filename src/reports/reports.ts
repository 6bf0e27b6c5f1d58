/**
 * Wires telemetry together: reports from this instance's sessions go into the table at once, into history, and later into the
 * store, from which reports of other instances are read. Only the start and the end of a session wait for the store. Implements `docs/contract/agent-protocol.md#heartbeats-commands-metrics`.
 */
import { sleep, startLoop } from '../kernel/background.js';
import type { Clock } from '../kernel/clock.js';
import { errorText } from '../kernel/errors.js';
import { logsWarning, type Logger } from '../kernel/logger.js';
import { backoff, storeRetry } from '../kernel/retry.js';
import type { Entry } from './entry.js';
import { createHeldBack } from './held-back.js';
import type { HistoryDocumentsDeps } from './history/documents.js';
import { openHistory } from './history/history.js';
import { createRecorder } from './history/recorder.js';
import { sampleRates } from './listener-rates.js';
import { followOthers, type Others } from './others.js';
import { isOwn, takeOwn } from './own.js';
import type { Carriers, Reports, Telemetry } from './port.js';
import { createPresence } from './presence.js';
import { openReportStore } from './store.js';
import { createTable } from './table.js';
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

/** @throws ServiceError `unavailable` */
export async function openReports(deps: ReportsDeps): Promise<ReportsService> {
  const { readStore, instanceId, clock, logger, liveInstances, carriers, isGone = () => false } = deps;
  const recorded = deps.recordsHistory === false ? undefined : carriers;
  const history = recorded && (await openHistory(deps, instanceId));
  const recorder = history && createRecorder(history, recorded, clock);
  let others: Others | undefined;
  const table = createTable(() => others?.readAt() ?? 0, clock, logger);
  const store = await openReportStore({
    readStore,
    table,
    instanceId,
    isShared: liveInstances !== undefined,
    isOwn: (nodeId) => isOwn(table, nodeId),
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
    others = followOthers({
      store,
      table,
      instanceId,
      liveInstances,
      isOwn: (nodeId) => isOwn(table, nodeId),
      rewrite: (nodeId) => heldBack.enter(nodeId, () => store.write(nodeId, [])),
      isGone,
      clock,
      logger,
    });
    for (const { nodeId, facts, remainingMs } of await presence.all()) {
      table.entry(nodeId).presence = { facts, until: clock.monotonic() + remainingMs };
    }
    await others.read();
  }

  const own = takeOwn({ ...deps, recorder, table, store, presence, heldBack, others });
  const noteRoundTrips = async (): Promise<void> => recorder?.roundTrips(table.entries());
  const roundTrips = startLoop(
    tuning.roundTripsEveryMs,
    noteRoundTrips,
    logsWarning(logger, 'round trips could not be recorded'),
  );

  return {
    ...table,
    ...own,
    onLost: presence.onLost,
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
