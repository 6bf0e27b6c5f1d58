/**
 * The last that each node told: sign of life, heartbeat, runtime table, metrics. One small document each, written in
 * batches, the newest of a node only; a runtime table that has not changed is not written again.
 * Implements `docs/contract/agent-protocol.md`, Heartbeats ("an unchanged runtime table rewrites only its time").
 */
import { createHash } from 'node:crypto';
import { errorText } from '../kernel/errors.js';
import type { Json, JsonObject } from '../kernel/json.js';
import { createKeyedBatch } from '../kernel/keyed-batch.js';
import type { KeyedBatch } from '../kernel/keyed-batch.js';
import { limits } from '../kernel/limits.js';
import type { Logger } from '../kernel/logger.js';
import type { Collection, CollectionSpec, Fields, ReadStore } from '../storage/read-store.js';
import type { HeartbeatFacts, LinkSample, NodeTelemetry, RuntimeListener } from './port.js';

const spec = (name: string): CollectionSpec => ({ name, version: 1, indexes: [] });
export const telemetryCollections = {
  seen: spec('node_seen'),
  heartbeats: spec('node_heartbeats'),
  runtime: spec('node_runtime'),
  metrics: spec('node_metrics'),
} as const;

type SeenFields = { readonly last_seen_at: string };
type HeartbeatFields = {
  readonly reported_at: string;
  readonly cpu_usage: number;
  readonly memory_usage: number;
  readonly uptime_seconds: number;
  readonly link_metrics: Json;
};
type RuntimeFields = { readonly listeners: Json };
type MetricsFields = { readonly received_at: string; readonly report: JsonObject };

interface Heartbeat {
  readonly fields: HeartbeatFields;
  /** JSON text of the runtime table. */
  readonly runtime: string;
}

export interface NodeDocuments {
  /** @param at RFC 3339 */
  seen(nodeId: string, at: string): void;
  heartbeat(nodeId: string, facts: HeartbeatFacts, at: string): void;
  metrics(nodeId: string, report: object, at: string): void;
  /** The node may have told another instance something else meanwhile: its next runtime table is written. */
  anew(nodeId: string): void;
  read(nodeIds: readonly string[]): Promise<ReadonlyMap<string, NodeTelemetry>>;
  /** Deletes everything about nodes that are gone. */
  forget(nodeIds: readonly string[]): Promise<void>;
  flush(): Promise<void>;
  close(): Promise<void>;
}

const nothing: NodeTelemetry = {
  last_seen_at: null,
  reported_at: null,
  cpu_usage: null,
  memory_usage: null,
  uptime_seconds: null,
  runtime_listeners: [],
  link_metrics: [],
};

/** @throws ServiceError `unavailable` */
export async function openNodeDocuments(readStore: ReadStore, logger: Logger): Promise<NodeDocuments> {
  const collections = {
    seen: await readStore.collection<SeenFields>(telemetryCollections.seen),
    heartbeats: await readStore.collection<HeartbeatFields>(telemetryCollections.heartbeats),
    runtime: await readStore.collection<RuntimeFields>(telemetryCollections.runtime),
    metrics: await readStore.collection<MetricsFields>(telemetryCollections.metrics),
  };
  /** Hash of the runtime table that this instance wrote last, per node. */
  const written = new Map<string, string>();

  const batchOf = <V>(
    weigh: (value: V) => number,
    write: (entries: readonly (readonly [string, V])[]) => Promise<void>,
  ): KeyedBatch<V> =>
    createKeyedBatch<V>({
      everyMs: limits.telemetry.batchMs,
      batchEntries: limits.telemetry.batchDocuments,
      batchWeight: limits.telemetry.batchBytes,
      maxEntries: limits.telemetry.waitingNodes,
      maxWeight: limits.telemetry.waitingBytes,
      weigh,
      write,
      onError: (error) => logger.warn({ error: errorText(error) }, 'telemetry could not be written yet'),
      onDropped: (nodeId) => logger.warn({ node_id: nodeId }, 'no room for the telemetry of the node'),
      retryMinMs: limits.projections.retryMinMs,
      retryMaxMs: limits.projections.retryMaxMs,
      closeWithinMs: limits.shutdownMs,
    });

  const put = <F extends Fields>(
    collection: Collection<F>,
    entries: readonly (readonly [string, F])[],
  ): Promise<void> => collection.set(entries.map(([id, fields]) => ({ id, fields })));

  const remember = (nodeId: string, hash: string): void => {
    written.delete(nodeId);
    written.set(nodeId, hash);
    if (written.size <= limits.telemetry.waitingNodes) return;
    for (const oldest of written.keys()) {
      written.delete(oldest);
      break;
    }
  };

  const writeHeartbeats = async (entries: readonly (readonly [string, Heartbeat])[]): Promise<void> => {
    const changed = entries
      .map(([nodeId, { runtime }]) => ({
        nodeId,
        runtime,
        hash: createHash('sha256').update(runtime).digest('base64'),
      }))
      .filter(({ nodeId, hash }) => written.get(nodeId) !== hash);
    if (changed.length > 0) {
      const tables = changed.map(
        ({ nodeId, runtime }) => [nodeId, { listeners: JSON.parse(runtime) as Json }] as const,
      );
      await put(collections.runtime, tables);
      for (const { nodeId, hash } of changed) remember(nodeId, hash);
    }
    // After the table: a time that is newer than its table would claim too much.
    await put(
      collections.heartbeats,
      entries.map(([nodeId, { fields }]) => [nodeId, fields] as const),
    );
  };

  const batches = {
    seen: batchOf<SeenFields>(
      () => 0,
      (entries) => put(collections.seen, entries),
    ),
    heartbeats: batchOf<Heartbeat>(({ runtime }) => runtime.length, writeHeartbeats),
    metrics: batchOf<MetricsFields>(
      () => 0,
      (entries) => put(collections.metrics, entries),
    ),
  };
  const everyBatch = [batches.seen, batches.heartbeats, batches.metrics];

  return {
    seen: (nodeId, at) => batches.seen.put(nodeId, { last_seen_at: at }),
    heartbeat(nodeId, facts, at) {
      const { cpu_usage, memory_usage, uptime_seconds, link_metrics, runtime_listeners } = facts;
      const fields = {
        reported_at: at,
        cpu_usage,
        memory_usage,
        uptime_seconds,
        link_metrics: plainJson(link_metrics),
      };
      batches.heartbeats.put(nodeId, { fields, runtime: JSON.stringify(runtime_listeners, withoutBigInt) });
    },
    metrics: (nodeId, report, at) =>
      batches.metrics.put(nodeId, { received_at: at, report: plainJson(report) as JsonObject }),
    anew(nodeId) {
      written.delete(nodeId);
    },
    async read(nodeIds) {
      const [seen, heartbeats, runtime] = await Promise.all([
        byId(collections.seen, nodeIds),
        byId(collections.heartbeats, nodeIds),
        byId(collections.runtime, nodeIds),
      ]);
      const told = nodeIds.map((nodeId): [string, NodeTelemetry] => {
        const { link_metrics, ...heartbeat } = heartbeats.get(nodeId) ?? {};
        return [
          nodeId,
          {
            ...nothing,
            ...heartbeat,
            last_seen_at: seen.get(nodeId)?.last_seen_at ?? null,
            runtime_listeners: (runtime.get(nodeId)?.listeners ?? []) as unknown as readonly RuntimeListener[],
            link_metrics: (link_metrics ?? []) as unknown as readonly LinkSample[],
          },
        ];
      });
      return new Map(told);
    },
    async forget(nodeIds) {
      for (const nodeId of nodeIds) {
        for (const batch of everyBatch) batch.delete(nodeId);
        written.delete(nodeId);
      }
      await Promise.all(Object.values(collections).map((collection) => collection.remove(nodeIds)));
    },
    async flush() {
      await Promise.all(everyBatch.map((batch) => batch.flush()));
    },
    async close() {
      await Promise.all(everyBatch.map((batch) => batch.close()));
    },
  };
}

async function byId<F extends Fields>(
  collection: Collection<F>,
  nodeIds: readonly string[],
): Promise<ReadonlyMap<string, F>> {
  const documents = await collection.getMany(nodeIds);
  return new Map(documents.map(({ id, fields }) => [id, fields]));
}

/** Counters of the wire are 64 bits; beyond 2^53 they lose their last digits, which no chart shows. */
const withoutBigInt = (_key: string, value: unknown): unknown => (typeof value === 'bigint' ? Number(value) : value);

function plainJson(value: unknown): Json {
  return JSON.parse(JSON.stringify(value, withoutBigInt)) as Json;
}
