/**
 * The newest report of each node: sign of life, heartbeat, runtime table, links, metrics. One document each, so that a
 * reader loads only what it shows; written in batches, the newest of a node only.
 * Implements `docs/contract/agent-protocol.md#heartbeats-commands-metrics`.
 */
import { timestamp } from '../kernel/clock.js';
import { shutdownMs } from '../kernel/closers.js';
import { errorText } from '../kernel/errors.js';
import { createKeyedBatch } from '../kernel/keyed-batch.js';
import type { KeyedBatch } from '../kernel/keyed-batch.js';
import { createLru } from '../kernel/lru.js';
import type { Logger } from '../kernel/logger.js';
import { storeRetry } from '../kernel/retry.js';
import type { Collection, CollectionSpec, Fields, ReadStore } from '../storage/read-store.js';
import { byId, createChangedTables, put, totalsOf } from './changed-tables.js';
import type { OnGrowth, TableFields } from './changed-tables.js';
import { linkShares, listenerShares, metricsShares, piecesOf, roundTrips } from './history/counting.js';
import type { History, Share } from './history/history.js';
import type {
  Carriers,
  HeartbeatFacts,
  MetricsFacts,
  NodeVitals,
  ReportedLinks,
  ReportedListeners,
  ReportedMetrics,
  ReportingProcess,
} from './port.js';
import type { Counters } from './process-totals.js';
import { absentSums } from './process-totals.js';
import { linksIn, listenersIn } from './reported.js';
import type { TrafficMetrics } from './traffic-metrics.js';
import { tuning } from './tuning.js';

const MiB = 1024 * 1024;
const batchBytes = 16 * MiB;
const waitingBytes = 256 * MiB;

const spec = (name: string): CollectionSpec => ({ name, version: 1 });
const telemetryCollections = {
  seen: spec('node_seen'),
  heartbeats: spec('node_heartbeats'),
  runtime: { name: 'node_runtime', version: 2 },
  links: { name: 'node_links', version: 2 },
  metrics: { name: 'node_metrics', version: 3 },
} as const;

type SeenFields = { readonly last_seen_at: string };
type HeartbeatFields = {
  readonly reported_at: string;
  /** Missing in documents of earlier releases. */
  readonly runs_generation?: number | null;
  readonly cpu_usage: number;
  readonly memory_usage: number;
  readonly uptime_seconds: number;
};
type MetricsFields = {
  readonly process_id: string;
  /** Missing in documents of earlier releases. */
  readonly runs_generation?: number | null;
  readonly reported_at: string;
  readonly report: MetricsFacts;
  readonly health_since: { readonly [cluster: string]: string };
};

interface Metrics {
  readonly process: ReportingProcess;
  readonly at: number;
  readonly report: MetricsFacts;
}

interface Heartbeat {
  readonly at: number;
  readonly offlineAfterMs: number;
  readonly facts: HeartbeatFacts;
}

export interface NodeDocuments {
  /** @param at milliseconds since the epoch */
  seen(nodeId: string, at: number): void;
  /** A heartbeat is a sign of life as well, and replaces an earlier one that has not been written. */
  heartbeat(nodeId: string, facts: HeartbeatFacts, at: number, offlineAfterMs: number): void;
  metrics(nodeId: string, report: MetricsFacts, process: ReportingProcess, at: number): void;
  /** Another instance may have written the node's tables meanwhile: its next ones are written in any case. */
  rewrite(nodeId: string): void;
  vitals(nodeIds: readonly string[]): Promise<ReadonlyMap<string, NodeVitals>>;
  listeners(nodeIds: readonly string[]): Promise<ReadonlyMap<string, ReportedListeners>>;
  links(nodeIds: readonly string[]): Promise<ReadonlyMap<string, ReportedLinks>>;
  reportedMetrics(nodeIds: readonly string[]): Promise<ReadonlyMap<string, ReportedMetrics>>;
  /** Deletes everything about nodes that are gone. */
  forget(nodeIds: readonly string[]): Promise<void>;
  flush(): Promise<void>;
  close(): Promise<void>;
}

async function openCollections(readStore: ReadStore) {
  return {
    seen: await readStore.collection<SeenFields>(telemetryCollections.seen),
    heartbeats: await readStore.collection<HeartbeatFields>(telemetryCollections.heartbeats),
    runtime: await readStore.collection<TableFields>(telemetryCollections.runtime),
    links: await readStore.collection<TableFields>(telemetryCollections.links),
    metrics: await readStore.collection<MetricsFields>(telemetryCollections.metrics),
  };
}

type Collections = Awaited<ReturnType<typeof openCollections>>;

/** What history is made of. */
export interface Recording {
  readonly history: Pick<History, 'count'>;
  carriers(nodeId: string): Carriers;
}

interface WriterDeps {
  readonly logger: Logger;
  readonly traffic: Pick<TrafficMetrics, 'note'>;
  readonly recentTraffic: { note(growth: Counters): void };
  /** Undefined while no history is kept. */
  readonly recording: Recording | undefined;
}

/** Gathers reports and writes them batch by batch, the newest of each node. */
function createWriter(collections: Collections, { logger, traffic, recentTraffic, recording }: WriterDeps) {
  const { waitingNodes } = tuning;
  type Shares = (carriers: Carriers, key: string, growth: Counters, nodeId: string) => readonly Share[];
  const countedAs =
    (sharesOf: Shares): OnGrowth =>
    ({ nodeId, at }, growths) => {
      if (recording === undefined) return;
      const carriers = recording.carriers(nodeId);
      for (const [key, growth] of growths) recording.history.count(nodeId, at, sharesOf(carriers, key, growth, nodeId));
    };
  const countListeners = countedAs(listenerShares);
  const runtime = createChangedTables(collections.runtime, waitingNodes, (report, growths, recently) => {
    if (recently) for (const [, growth] of growths) recentTraffic.note(growth);
    countListeners(report, growths, recently);
  });
  const links = createChangedTables(collections.links, waitingNodes, countedAs(linkShares));
  /** When the last heartbeat that was written of each node came. */
  const beats = createLru<string, number>({ maxEntries: waitingNodes });

  const batchOf = <V>(
    weigh: (value: V) => number,
    write: (entries: readonly (readonly [string, V])[]) => Promise<void>,
  ): KeyedBatch<V> =>
    createKeyedBatch<V>({
      everyMs: tuning.batchMs,
      batchEntries: tuning.batchDocuments,
      batchWeight: batchBytes,
      maxEntries: waitingNodes,
      maxWeight: waitingBytes,
      weigh,
      write,
      onError: (error) => logger.warn({ error: errorText(error) }, 'telemetry could not be written yet'),
      onDropped: (nodeId) =>
        logger.warn({ node_id: nodeId }, 'the telemetry of a node was dropped: too much waits for the read store'),
      retry: storeRetry,
      closeWithinMs: shutdownMs,
    });

  /** Finds out when the last heartbeats of nodes came that another instance, or an earlier process, has written. */
  async function learnBeats(nodeIds: readonly string[]): Promise<void> {
    const unknown = nodeIds.filter((nodeId) => beats.get(nodeId) === undefined);
    const stored = unknown.length === 0 ? [] : await byId(collections.heartbeats, unknown);
    for (const [nodeId, { reported_at }] of stored) beats.set(nodeId, Date.parse(reported_at));
  }

  /** A node was online since the heartbeat before, unless that is longer ago than it is granted. */
  function countBeat({ history, carriers }: Recording, nodeId: string, { at, facts, offlineAfterMs }: Heartbeat): void {
    const last = beats.get(nodeId);
    beats.set(nodeId, at);
    if (last !== undefined && at - last <= offlineAfterMs) {
      for (const [from, online_ms] of piecesOf(last, at)) history.count(nodeId, from, [[nodeId, { online_ms }]]);
    }
    history.count(nodeId, at, roundTrips(carriers(nodeId), nodeId, facts));
  }

  const writeHeartbeats = async (entries: readonly (readonly [string, Heartbeat])[]): Promise<void> => {
    const tables = (table: 'runtime_listeners' | 'link_metrics') =>
      entries.map(([nodeId, { facts, at }]) => ({ nodeId, processId: facts.process_id, table: facts[table], at }));
    await runtime.write(tables('runtime_listeners'));
    await links.write(tables('link_metrics'));
    if (recording !== undefined) await learnBeats(entries.map(([nodeId]) => nodeId));
    // Last: a time that is newer than its tables would be wrong.
    await put(
      collections.heartbeats,
      entries.map(([nodeId, { at, facts }]) => {
        const { runs_generation, cpu_usage, memory_usage, uptime_seconds } = facts;
        return [nodeId, { reported_at: timestamp(at), runs_generation, cpu_usage, memory_usage, uptime_seconds }];
      }),
    );
    if (recording !== undefined) for (const [nodeId, beat] of entries) countBeat(recording, nodeId, beat);
  };

  const writeMetrics = async (entries: readonly (readonly [string, Metrics])[]): Promise<void> => {
    const stored = await byId(
      collections.metrics,
      entries.map(([nodeId]) => nodeId),
    );
    await put(
      collections.metrics,
      entries.map(([nodeId, { at, report, process }]) => {
        const reported_at = timestamp(at);
        const health_since = healthSince(report, reported_at, stored.get(nodeId));
        return [nodeId, { ...process, reported_at, report, health_since }];
      }),
    );
    for (const [nodeId, { at, report, process }] of entries) {
      const known = stored.get(nodeId);
      const before = known?.process_id === process.process_id ? known.report : undefined;
      traffic.note(report, before);
      recording?.history.count(nodeId, at, metricsShares(recording.carriers(nodeId), report, before));
    }
  };

  const batches = {
    /** Milliseconds since the epoch. */
    seen: batchOf<number>(
      () => 0,
      (entries) =>
        put(
          collections.seen,
          entries.map(([nodeId, at]) => [nodeId, { last_seen_at: timestamp(at) }]),
        ),
    ),
    heartbeats: batchOf<Heartbeat>(
      ({ facts }) => facts.runtime_listeners.bytes.length + facts.link_metrics.bytes.length,
      writeHeartbeats,
    ),
    metrics: batchOf<Metrics>(() => 0, writeMetrics),
  };
  const everyBatch = [batches.seen, batches.heartbeats, batches.metrics];
  const rewrite = (nodeId: string): void => {
    runtime.forget(nodeId);
    links.forget(nodeId);
    beats.delete(nodeId);
  };
  return {
    batches,
    /** The node's next tables are written even if they have not changed. */
    rewrite,
    forget(nodeId: string) {
      for (const batch of everyBatch) batch.delete(nodeId);
      rewrite(nodeId);
    },
    async flush() {
      await Promise.all(everyBatch.map((batch) => batch.flush()));
    },
    async close() {
      await Promise.all(everyBatch.map((batch) => batch.close()));
    },
  };
}

/** @throws ServiceError `unavailable` */
export async function openNodeDocuments(readStore: ReadStore, deps: WriterDeps): Promise<NodeDocuments> {
  const collections = await openCollections(readStore);
  const { batches, ...writer } = createWriter(collections, deps);

  /** The tables of nodes with the time of their heartbeats. The time is read first, so it is never newer than the table. */
  async function reported<F extends Fields, R>(
    nodeIds: readonly string[],
    tables: Collection<F>,
    report: (reported: Pick<ReportedListeners, 'reported_at' | 'runs_generation'>, table: F | undefined) => R,
  ): Promise<ReadonlyMap<string, R>> {
    const heartbeats = await byId(collections.heartbeats, nodeIds);
    const documents = await byId(tables, [...heartbeats.keys()]);
    return new Map(
      [...heartbeats].map(([id, { reported_at, runs_generation = null }]) => [
        id,
        report({ reported_at, runs_generation }, documents.get(id)),
      ]),
    );
  }

  return {
    seen: batches.seen.put,
    heartbeat(nodeId, facts, at, offlineAfterMs) {
      batches.heartbeats.put(nodeId, { at, facts, offlineAfterMs });
      batches.seen.delete(nodeId);
    },
    metrics: (nodeId, report, process, at) => batches.metrics.put(nodeId, { at, report, process }),
    rewrite: writer.rewrite,
    async vitals(nodeIds) {
      const [seen, heartbeats] = await Promise.all([
        byId(collections.seen, nodeIds),
        byId(collections.heartbeats, nodeIds),
      ]);
      return new Map(
        nodeIds.map((nodeId): [string, NodeVitals] => {
          const heartbeat = heartbeats.get(nodeId);
          return [
            nodeId,
            {
              last_seen_at: latest(seen.get(nodeId)?.last_seen_at, heartbeat?.reported_at),
              cpu_usage: heartbeat?.cpu_usage ?? null,
              memory_usage: heartbeat?.memory_usage ?? null,
              uptime_seconds: heartbeat?.uptime_seconds ?? null,
            },
          ];
        }),
      );
    },
    listeners: (nodeIds) =>
      reported(nodeIds, collections.runtime, (heartbeat, table) => ({
        ...heartbeat,
        listeners: table === undefined ? [] : listenersIn(table.wire, totalsOf(table).before),
        gone: table === undefined ? {} : absentSums(totalsOf(table)),
      })),
    links: (nodeIds) =>
      reported(nodeIds, collections.links, ({ reported_at }, table) => ({
        reported_at,
        links: table === undefined ? [] : linksIn(table.wire, totalsOf(table).before),
      })),
    async reportedMetrics(nodeIds) {
      const stored = await byId(collections.metrics, nodeIds);
      return new Map([...stored].map(([id, fields]) => [id, { runs_generation: null, ...fields }]));
    },
    async forget(nodeIds) {
      for (const nodeId of nodeIds) writer.forget(nodeId);
      await Promise.all(Object.values(collections).map((collection) => collection.remove(nodeIds)));
    },
    flush: writer.flush,
    close: writer.close,
  };
}

/** When each upstream cluster was first reported to be as it is now. @param before what is stored of the node */
function healthSince(
  { gateway }: MetricsFacts,
  reportedAt: string,
  before: MetricsFields | undefined,
): MetricsFields['health_since'] {
  const earlier = new Map(before?.report.gateway?.upstreams.map(({ cluster, healthy }) => [cluster, healthy]));
  const since = (gateway?.upstreams ?? []).map(({ cluster, healthy }): [string, string] => {
    const unchanged = earlier.get(cluster) === healthy ? before?.health_since[cluster] : undefined;
    return [cluster, unchanged ?? reportedAt];
  });
  return Object.fromEntries(since);
}

/** Of times in RFC 3339, which sort as text. */
function latest(seen: string | undefined, reported: string | undefined): string | null {
  if (seen === undefined || reported === undefined) return seen ?? reported ?? null;
  return seen > reported ? seen : reported;
}
