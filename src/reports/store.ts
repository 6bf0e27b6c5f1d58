/**
 * The newest reports of this instance's nodes in the read store, written behind in batches: what a start begins with, and what
 * other instances read (`others.ts`). One small document for each sign of life, and one for each table and metrics report that
 * has changed. Implements `docs/contract/agent-protocol.md#several-instances`.
 */
import { shutdownMs } from '../kernel/closers.js';
import { errorText } from '../kernel/errors.js';
import { createKeyedBatch } from '../kernel/keyed-batch.js';
import type { Logger } from '../kernel/logger.js';
import { storeRetry } from '../kernel/retry.js';
import type { Collection, Fields, ReadStore, StoredDocument } from '../storage/read-store.js';
import type { Beat, Entry, Part, ToldMetrics, ToldTable } from './entry.js';
import { partsOf } from './entry.js';
import type { MetricsFacts, PresenceFacts } from './port.js';
import type { Counters } from './process-totals.js';
import type { Table } from './table.js';
import { tuning } from './tuning.js';

const MiB = 1024 * 1024;
const batchBytes = 16 * MiB;
/** Documents that are read at once: a table may be large. */
const tablesPerRead = 50;
const beatsPerRead = 1_000;

type Plain<T> = { readonly [K in keyof T]: T[K] };

/** The last sign of life of a node, and what its last heartbeat said beside its tables. */
type BeatFields = {
  /** Who wrote it, and its place among what that instance wrote, which grows: others read on from there. */
  readonly instance: string;
  readonly place: string;
  /** Null once the session has ended. */
  readonly presence: Plain<PresenceFacts> | null;
  /** For how long a sign of life counts, in milliseconds. */
  readonly ttl_ms: number;
  /** Milliseconds since the epoch; 0 before one. */
  readonly seen_at: number;
  readonly beat: Plain<Beat> | null;
  /** Who wrote each of the node's other documents, and at which place. */
  readonly written: Plain<Entry['written']>;
};
export type StoredBeat = StoredDocument<BeatFields>;

type TableFields = {
  readonly wire: Uint8Array;
  readonly process_id: string;
  readonly before: { readonly [row: string]: Counters };
  readonly absent: { readonly [row: string]: Counters };
  readonly gone: Counters;
};

type MetricsFields = {
  readonly process_id: string;
  readonly runs_generation: number | null;
  readonly at: number;
  readonly report: MetricsFacts;
  readonly health_since: { readonly [cluster: string]: string };
};

export interface ReportStoreDeps {
  readonly readStore: ReadStore;
  readonly table: Table;
  readonly instanceId: string;
  /** Whether other instances use the store. */
  readonly isShared: boolean;
  readonly clock: { now(): number };
  readonly logger: Logger;
}

export interface ReportStore {
  /**
   * Fills the table with signs of life; who is online they do not say.
   * @returns how to fill it with the rest @throws ServiceError `unavailable`, as what it returns
   */
  load(): Promise<(signal: AbortSignal) => Promise<void>>;
  /** Enters, and writes soon, what was known of a node that neither the table nor the store has. */
  adopt(nodeId: string, known: Entry): void;
  /** Writes a node's entry soon. @param changed what besides its sign of life */
  write(nodeId: string, changed: readonly Part[]): void;
  /** Up to 1,000 and more of what an instance wrote from a place on, in that order. @throws ServiceError `unavailable` */
  writtenBy(instance: string, place: string): Promise<readonly StoredBeat[]>;
  /** @throws ServiceError `unavailable` */
  beatOf(nodeId: string): Promise<StoredBeat | undefined>;
  /** Enters beats, but not who is online, and reads what they say was written since. @throws ServiceError `unavailable` */
  enter(beats: readonly StoredBeat[]): Promise<void>;
  /** Deletes everything about nodes that are gone. @throws ServiceError `unavailable` */
  forget(nodeIds: readonly string[]): Promise<void>;
  flush(): Promise<void>;
  close(): Promise<void>;
}

/** A new object for each change, so that one that comes while it is written waits again. */
interface Waiting {
  readonly changed: readonly Part[];
  /** Bytes of the tables. */
  readonly weight: number;
}

/** @throws ServiceError `unavailable` */
export async function openReportStore(deps: ReportStoreDeps): Promise<ReportStore> {
  const { readStore, table, instanceId, clock, logger } = deps;
  // Nobody else reads an embedded store, where an index would cost a write for each heartbeat.
  const index = deps.isShared ? { index: { group: 'instance', order: 'place' } } : {};
  const beats = await readStore.collection<BeatFields>({ name: 'node_beats', version: 1, ...index });
  const collections: { readonly [P in Part]: Collection } = {
    listeners: await readStore.collection({ name: 'node_listeners', version: 1 }),
    links: await readStore.collection({ name: 'node_links', version: 3 }),
    metrics: await readStore.collection({ name: 'node_metrics', version: 4 }),
  };
  let last = 0;
  /** Grows, also over a restart. */
  const nextPlace = (): string => String((last = Math.max(last + 1, clock.now()))).padStart(16, '0');
  /** What has not changed is written again by and by: a store that lost it under a running service has it again. */
  const isLongAgo = (written: string): boolean =>
    Number(written.slice(written.indexOf('/') + 1)) < clock.now() - tuning.writeAgainMs;

  const batch = createKeyedBatch<Waiting>({
    everyMs: tuning.batchMs,
    batchEntries: tuning.batchDocuments,
    batchWeight: batchBytes,
    maxEntries: tuning.waitingNodes,
    weigh: ({ weight }) => weight,
    write: writeBatch,
    onError: (error) => logger.warn({ error: errorText(error) }, 'reports of agents could not be written yet'),
    onDropped: (nodeId) => logger.warn({ node_id: nodeId }, 'the reports of a node are not written: too many wait'),
    retry: storeRetry,
    closeWithinMs: shutdownMs,
  });

  async function writeBatch(waiting: readonly (readonly [nodeId: string, Waiting])[]): Promise<void> {
    const place = nextPlace();
    const documents: { readonly id: string; readonly fields: BeatFields }[] = [];
    const changed: { readonly [P in Part]: { readonly id: string; readonly fields: Fields }[] } = {
      listeners: [],
      links: [],
      metrics: [],
    };
    for (const [id, { changed: parts }] of waiting) {
      const entry = table.find(id);
      if (entry === undefined) continue;
      for (const part of partsOf) {
        if (!parts.includes(part) && !isLongAgo(entry.written[part])) continue;
        const fields = fieldsOf(part, entry);
        if (fields === undefined) continue;
        changed[part].push({ id, fields });
        entry.written = { ...entry.written, [part]: `${instanceId}/${place}` };
      }
      documents.push({ id, fields: beatFields(entry, instanceId, place) });
    }
    await Promise.all(partsOf.map((part) => changed[part].length > 0 && collections[part].set(changed[part])));
    // Last: a sign of life that is newer than its tables would be wrong.
    await beats.set(documents);
  }

  /** Reads documents of nodes, a few at a time. */
  async function readParts(part: Part, nodeIds: readonly string[]): Promise<void> {
    for (let from = 0; from < nodeIds.length; from += tablesPerRead) {
      for (const { id, fields } of await collections[part].getMany(nodeIds.slice(from, from + tablesPerRead))) {
        enterFields(part, table.entry(id), fields);
      }
    }
  }

  async function enter(stored: readonly StoredBeat[]): Promise<void> {
    for (const part of partsOf) {
      const news = stored.filter(({ id, fields }) => fields.written[part] !== table.find(id)?.written[part]);
      await readParts(
        part,
        news.map(({ id }) => id),
      );
    }
    stored.forEach(enterBeat);
  }

  function enterBeat({ id, fields }: StoredBeat): void {
    const entry = table.entry(id);
    entry.seenAt = fields.seen_at;
    entry.beat = fields.beat ?? undefined;
    entry.written = fields.written;
  }

  function write(nodeId: string, changed: readonly Part[]): void {
    const entry = table.find(nodeId);
    // It was forgotten meanwhile.
    if (entry === undefined) return;
    const before = batch.get(nodeId)?.changed ?? [];
    const parts = before.length === 0 ? changed : [...new Set([...before, ...changed])];
    let weight = 0;
    for (const part of parts) if (part !== 'metrics') weight += entry[part]?.wire.length ?? 0;
    batch.put(nodeId, { changed: parts, weight });
  }

  return {
    async load() {
      const all: StoredBeat[] = [];
      for (let more = true; more;) {
        const some = await beats.list(all.at(-1)?.id, beatsPerRead);
        some.forEach(enterBeat);
        all.push(...some);
        more = some.length === beatsPerRead;
      }
      return async (signal) => {
        for (let from = 0; from < all.length && !signal.aborted; from += tablesPerRead) {
          // What was written since is read by others, or was written here.
          const isAsThen = ({ id, fields }: StoredBeat): boolean => table.find(id)?.written === fields.written;
          const ids = all
            .slice(from, from + tablesPerRead)
            .filter(isAsThen)
            .map(({ id }) => id);
          for (const part of partsOf) await readParts(part, ids);
          ids.forEach(table.told);
        }
      };
    },
    adopt(nodeId, known) {
      if (table.find(nodeId) !== undefined) return;
      // Who is online now, sessions and leases say.
      Object.assign(table.entry(nodeId), known, { presence: undefined, hasReported: false });
      write(nodeId, partsOf);
    },
    write,
    // One batch has one place, and is read whole.
    writtenBy: (instance, place) =>
      beats.find({ groups: [instance], from: place, direction: 'asc', limit: 2 * tuning.batchDocuments }),
    beatOf: (nodeId) => beats.get(nodeId),
    enter,
    async forget(nodeIds) {
      for (const nodeId of nodeIds) {
        batch.delete(nodeId);
        table.forget(nodeId);
      }
      await Promise.all([beats, ...Object.values(collections)].map((collection) => collection.remove(nodeIds)));
    },
    flush: batch.flush,
    close: batch.close,
  };
}

function beatFields(entry: Entry, instance: string, place: string): BeatFields {
  const { presence, offlineAfterMs, seenAt, beat, written } = entry;
  return {
    instance,
    place,
    presence: presence === undefined ? null : { ...presence.facts },
    ttl_ms: offlineAfterMs,
    seen_at: seenAt,
    beat: beat ?? null,
    written,
  };
}

function fieldsOf(part: Part, entry: Entry): TableFields | MetricsFields | undefined {
  if (part === 'metrics') return entry.metrics && metricsFields(entry.metrics);
  const told = entry[part];
  return told && tableFields(told);
}

function enterFields(part: Part, entry: Entry, fields: Fields): void {
  if (part === 'metrics') entry.metrics = metricsOf(fields as MetricsFields);
  else entry[part] = { ...tableOf(fields as TableFields), out: undefined };
}

function tableFields({ wire, totals }: ToldTable): TableFields {
  const { processId: process_id, gone } = totals;
  const [before, absent] = [Object.fromEntries(totals.before), Object.fromEntries(totals.absent)];
  return { wire, process_id, before, absent, gone };
}

function tableOf({ wire, process_id, before, absent, gone }: TableFields): ToldTable {
  const totals = {
    processId: process_id,
    before: new Map(Object.entries(before)),
    absent: new Map(Object.entries(absent)),
    gone,
  };
  return { wire, totals };
}

function metricsFields({ healthSince: health_since, ...rest }: ToldMetrics): MetricsFields {
  return { ...rest, health_since };
}

function metricsOf({ health_since: healthSince, ...rest }: MetricsFields): ToldMetrics {
  return { ...rest, healthSince };
}
