/**
 * The newest reports of this instance's nodes in the read store, written behind in batches: what a start begins with, and what
 * other instances read (`others.ts`). One small document for each sign of life, and one for each table and metrics report that
 * has changed. Implements `docs/contract/agent-protocol.md#several-instances`.
 */
import { shutdownMs } from '../kernel/closers.js';
import { errorText, unreachable } from '../kernel/errors.js';
import { createKeyedBatch } from '../kernel/keyed-batch.js';
import type { Logger } from '../kernel/logger.js';
import { storeRetry } from '../kernel/retry.js';
import type { Collection, Fields, ReadStore, StoredDocument } from '../storage/read-store.js';
import type { Beat, Entry, Part, ToldListeners, ToldMetrics } from './entry.js';
import { partsOf } from './entry.js';
import { sharedShape } from './listener-table.js';
import type { MetricsFacts, PresenceFacts } from './port.js';
import { noTotals } from './process-totals.js';
import type { Counters, ProcessTotals, Rows } from './process-totals.js';
import type { Table } from './table.js';
import { tuning } from './tuning.js';

const MiB = 1024 * 1024;
const batchBytes = 16 * MiB;
/** Documents that are read at once: a table may be large. */
const tablesPerRead = 50;
const beatsPerRead = 1_000;
const valueBytes = Float64Array.BYTES_PER_ELEMENT;

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

type TotalsFields = {
  readonly process_id: string;
  readonly before: { readonly [row: string]: Counters };
  readonly absent: { readonly [row: string]: Counters };
  readonly gone: Counters;
};
type LinksFields = TotalsFields & { readonly wire: Uint8Array };
/** `values` as 64-bit floats; the rest as `ListenerTable` has it. */
type ListenersFields = TotalsFields & {
  readonly shape: string;
  readonly packed: Uint8Array;
  readonly values: Uint8Array;
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
    listeners: await readStore.collection({ name: 'node_listeners', version: 2 }),
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
    const { listeners, links } = entry;
    let weight = parts.includes('links') ? (links?.wire.length ?? 0) : 0;
    if (listeners !== undefined && parts.includes('listeners')) {
      weight += listeners.table.shape.packed.length + valueBytes * listeners.table.values.length;
    }
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

function fieldsOf(part: Part, { listeners, links, metrics }: Entry): Fields | undefined {
  switch (part) {
    case 'listeners':
      return listeners && listenersFields(listeners);
    case 'links':
      return links && ({ wire: links.wire, ...totalsFields(links.totals) } satisfies LinksFields);
    case 'metrics':
      return metrics && metricsFields(metrics);
    default:
      return unreachable(part);
  }
}

function enterFields(part: Part, entry: Entry, fields: Fields): void {
  switch (part) {
    case 'listeners':
      entry.listeners = listenersOfFields(fields as ListenersFields);
      return;
    case 'links': {
      const { wire, ...totals } = fields as LinksFields;
      entry.links = { wire, totals: totalsOf(totals), out: undefined };
      return;
    }
    case 'metrics':
      entry.metrics = metricsOf(fields as MetricsFields);
      return;
    default:
      unreachable(part);
  }
}

function listenersFields({ table: { shape, values }, totals }: ToldListeners): ListenersFields {
  const numbers = new Uint8Array(Float64Array.from(values).buffer);
  return { shape: shape.id, packed: shape.packed, values: numbers, ...totalsFields(totals) };
}

function listenersOfFields({ shape, packed, values, ...totals }: ListenersFields): ToldListeners {
  // Copies: what is read may be a view of more, and not begin where numbers may.
  const numbers = [...new Float64Array(new Uint8Array(values).buffer)];
  const table = { shape: sharedShape(shape, () => new Uint8Array(packed)), values: numbers };
  return { table, totals: totalsOf(totals) };
}

function totalsFields({ processId: process_id, before, absent, gone }: ProcessTotals): TotalsFields {
  return { process_id, before: Object.fromEntries(before), absent: Object.fromEntries(absent), gone };
}

function totalsOf({ process_id: processId, before, absent, gone }: TotalsFields): ProcessTotals {
  return { processId, before: rowsOf(before), absent: rowsOf(absent), gone };
}

/** Most nodes have none, and share it. */
function rowsOf(rows: TotalsFields['before']): Rows {
  const entries = Object.entries(rows);
  return entries.length === 0 ? noTotals.before : new Map(entries);
}

function metricsFields({ healthSince: health_since, ...rest }: ToldMetrics): MetricsFields {
  return { ...rest, health_since };
}

function metricsOf({ health_since: healthSince, ...rest }: MetricsFields): ToldMetrics {
  return { ...rest, healthSince };
}
