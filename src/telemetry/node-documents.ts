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
import type {
  HeartbeatFacts,
  MetricsFacts,
  NodeVitals,
  ReportedLinks,
  ReportedListeners,
  ReportedMetrics,
  ReportedTable,
} from './port.js';
import type { Counters, ProcessTotals, Rows } from './process-totals.js';
import { absentSums, noTotals, withReport } from './process-totals.js';
import { linksIn, listenersIn, rowsIn } from './reported.js';
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
  readonly cpu_usage: number;
  readonly memory_usage: number;
  readonly uptime_seconds: number;
};
type MetricsFields = {
  readonly process_id: string;
  readonly reported_at: string;
  readonly report: MetricsFacts;
  readonly health_since: { readonly [cluster: string]: string };
};

/** A stored table: a `HeartbeatRequest` of the wire with nothing but that list, and what is added to its counters. */
type TableFields = {
  readonly wire: Uint8Array;
  readonly process_id: string;
  readonly before: { readonly [row: string]: Counters };
  readonly absent: { readonly [row: string]: Counters };
  readonly gone: Counters;
};

const totalsOf = ({ process_id, before, absent, gone }: TableFields): ProcessTotals => ({
  processId: process_id,
  before: new Map(Object.entries(before)),
  absent: new Map(Object.entries(absent)),
  gone,
});

interface Metrics {
  readonly processId: string;
  readonly at: number;
  readonly report: MetricsFacts;
}

interface Heartbeat {
  readonly at: number;
  readonly facts: HeartbeatFacts;
}

export interface NodeDocuments {
  /** @param at milliseconds since the epoch */
  seen(nodeId: string, at: number): void;
  /** A heartbeat is a sign of life as well, and replaces an earlier one that has not been written. */
  heartbeat(nodeId: string, facts: HeartbeatFacts, at: number): void;
  metrics(nodeId: string, report: MetricsFacts, processId: string, at: number): void;
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

/** Gathers reports and writes them batch by batch, the newest of each node. */
function createWriter(collections: Collections, logger: Logger, traffic: Pick<TrafficMetrics, 'note'>) {
  const { waitingNodes } = tuning;
  const runtime = createChangedTables(collections.runtime, waitingNodes);
  const links = createChangedTables(collections.links, waitingNodes);

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

  const writeHeartbeats = async (entries: readonly (readonly [string, Heartbeat])[]): Promise<void> => {
    const tables = (table: 'runtime_listeners' | 'link_metrics') =>
      entries.map(([nodeId, { facts }]) => [nodeId, facts.process_id, facts[table]] as const);
    await runtime.write(tables('runtime_listeners'));
    await links.write(tables('link_metrics'));
    // Last: a time that is newer than its tables would be wrong.
    await put(
      collections.heartbeats,
      entries.map(([nodeId, { at, facts }]) => {
        const { cpu_usage, memory_usage, uptime_seconds } = facts;
        return [nodeId, { reported_at: timestamp(at), cpu_usage, memory_usage, uptime_seconds }];
      }),
    );
  };

  const writeMetrics = async (entries: readonly (readonly [string, Metrics])[]): Promise<void> => {
    const stored = await byId(
      collections.metrics,
      entries.map(([nodeId]) => nodeId),
    );
    await put(
      collections.metrics,
      entries.map(([nodeId, { at, report, processId: process_id }]) => {
        const reported_at = timestamp(at);
        const health_since = healthSince(report, reported_at, stored.get(nodeId));
        return [nodeId, { reported_at, process_id, report, health_since }];
      }),
    );
    for (const [nodeId, { report, processId }] of entries) {
      const before = stored.get(nodeId);
      traffic.note(report, before?.process_id === processId ? before.report : undefined);
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
export async function openNodeDocuments(
  readStore: ReadStore,
  logger: Logger,
  traffic: Pick<TrafficMetrics, 'note'>,
): Promise<NodeDocuments> {
  const collections = await openCollections(readStore);
  const { batches, ...writer } = createWriter(collections, logger, traffic);

  /** The tables of nodes with the time of their heartbeats. The time is read first, so it is never newer than the table. */
  async function reported<F extends Fields, R>(
    nodeIds: readonly string[],
    tables: Collection<F>,
    report: (reportedAt: string, table: F | undefined) => R,
  ): Promise<ReadonlyMap<string, R>> {
    const heartbeats = await byId(collections.heartbeats, nodeIds);
    const documents = await byId(tables, [...heartbeats.keys()]);
    return new Map([...heartbeats].map(([id, { reported_at }]) => [id, report(reported_at, documents.get(id))]));
  }

  return {
    seen: batches.seen.put,
    heartbeat(nodeId, facts, at) {
      batches.heartbeats.put(nodeId, { at, facts });
      batches.seen.delete(nodeId);
    },
    metrics: (nodeId, report, processId, at) => batches.metrics.put(nodeId, { at, report, processId }),
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
      reported(nodeIds, collections.runtime, (reported_at, table) => ({
        reported_at,
        listeners: table === undefined ? [] : listenersIn(table.wire, totalsOf(table).before),
        gone: table === undefined ? {} : absentSums(totalsOf(table)),
      })),
    links: (nodeIds) =>
      reported(nodeIds, collections.links, (reported_at, table) => ({
        reported_at,
        links: table === undefined ? [] : linksIn(table.wire, totalsOf(table).before),
      })),
    reportedMetrics: (nodeIds) => byId(collections.metrics, nodeIds),
    async forget(nodeIds) {
      for (const nodeId of nodeIds) writer.forget(nodeId);
      await Promise.all(Object.values(collections).map((collection) => collection.remove(nodeIds)));
    },
    flush: writer.flush,
    close: writer.close,
  };
}

/** What was written of a node last. */
interface Written {
  readonly hash: string;
  readonly rows: Rows;
  readonly totals: ProcessTotals;
}

/**
 * One table per node, written only when it differs from the one that this instance wrote last: tables are large, and come
 * unchanged with most heartbeats. Keeps a hash and the counters of each, never the table.
 */
function createChangedTables(collection: Collection<TableFields>, rememberedNodes: number) {
  const written = createLru<string, Written>({ maxEntries: rememberedNodes });
  return {
    /** @throws ServiceError `unavailable` */
    async write(
      entries: readonly (readonly [nodeId: string, processId: string, table: ReportedTable])[],
    ): Promise<void> {
      const changed = entries.filter(([nodeId, processId, { hash }]) => {
        const last = written.get(nodeId);
        return last?.hash !== hash || last.totals.processId !== processId;
      });
      if (changed.length === 0) return;
      const unknown = changed.flatMap(([nodeId]) => (written.get(nodeId) === undefined ? [nodeId] : []));
      const stored = await byId(collection, unknown);
      const next = changed.map(([nodeId, processId, table]): [string, Written & Pick<ReportedTable, 'bytes'>] => {
        const rows = table.rows();
        const fields = stored.get(nodeId);
        const last = written.get(nodeId);
        const before = last?.totals ?? (fields === undefined ? noTotals : totalsOf(fields));
        const lastRows = last?.rows ?? (fields === undefined ? new Map<string, Counters>() : rowsIn(fields.wire));
        const totals = withReport(before, lastRows, processId, rows);
        return [nodeId, { hash: table.hash, rows, totals, bytes: table.bytes }];
      });
      await put(
        collection,
        next.map(([nodeId, { bytes: wire, totals }]) => {
          const { processId: process_id, gone } = totals;
          const [before, absent] = [Object.fromEntries(totals.before), Object.fromEntries(totals.absent)];
          return [nodeId, { wire, process_id, before, absent, gone }];
        }),
      );
      for (const [nodeId, { hash, rows, totals }] of next) written.set(nodeId, { hash, rows, totals });
    },
    /** The node's next table is written even if it has not changed, behind what is stored. */
    forget: written.delete,
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

function put<F extends Fields>(collection: Collection<F>, entries: readonly (readonly [string, F])[]): Promise<void> {
  return collection.set(entries.map(([id, fields]) => ({ id, fields })));
}

async function byId<F extends Fields>(
  collection: Collection<F>,
  nodeIds: readonly string[],
): Promise<ReadonlyMap<string, F>> {
  const documents = await collection.getMany(nodeIds);
  return new Map(documents.map(({ id, fields }) => [id, fields]));
}
