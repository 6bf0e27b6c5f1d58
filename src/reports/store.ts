/**
 * The last reports of this instance's nodes in the read store, written in batches, for the next start and for other instances
 * (`others.ts`). A sign of life is one small document; a table or metrics report is written when it has changed. Implements
 * `docs/contract/agent-protocol.md#several-instances`.
 */
import { shutdownMs } from '../kernel/closers.js';
import { createKeyedBatch } from '../kernel/keyed-batch.js';
import { logsWarning, type Logger } from '../kernel/logger.js';
import { storeRetry } from '../kernel/retry.js';
import type { Collection, Fields, ReadStore } from '../storage/read-store.js';
import { partsOf, type Entry, type Part } from './entry.js';
import { beatFields, codecs, enterBeat, weightOf, type BeatFields, type StoredBeat } from './stored-entry.js';
import type { Table } from './table.js';
import { tuning } from './tuning.js';

const MiB = 1024 * 1024;
const batchBytes = 16 * MiB;
/** Documents per read; a table may be large. */
const tablesPerRead = 50;
const beatsPerRead = 1_000;

export interface ReportStoreDeps {
  readonly readStore: ReadStore;
  readonly table: Table;
  readonly instanceId: string;
  /** Whether other instances use the store. */
  readonly isShared: boolean;
  /** Whether the node's session is at this instance. */
  isOwn(nodeId: string): boolean;
  /** The node is no longer in the fleet. */
  isGone(nodeId: string): boolean;
  /** Called with each node whose reports at another instance were entered. @param before its entry until then */
  readonly onEntered?: ((nodeId: string, entry: Entry, before: Readonly<Entry>) => void) | undefined;
  readonly clock: { now(): number };
  readonly logger: Logger;
}

/** A new object for each change, so that a change during its write waits again. */
interface Waiting {
  readonly changed: readonly Part[];
  /** Bytes. */
  readonly weight: number;
}

type Collections = Awaited<ReturnType<typeof openCollections>>;

async function openCollections(readStore: ReadStore, isShared: boolean) {
  // No other instance reads an embedded store, where an index would cost a write for each heartbeat.
  const index = isShared ? { index: { group: 'instance', order: 'place' } } : {};
  const beats = await readStore.collection<BeatFields>({ name: 'node_beats', version: 2, ...index });
  const collections: { readonly [P in Part]: Collection } = {
    listeners: await readStore.collection({ name: 'node_listeners', version: 2 }),
    links: await readStore.collection({ name: 'node_links', version: 3 }),
    metrics: await readStore.collection({ name: 'node_metrics', version: 4 }),
  };
  return {
    beats,
    collections,
    async remove(nodeIds: readonly string[]): Promise<void> {
      if (nodeIds.length === 0) return;
      await Promise.all([beats, ...Object.values(collections)].map((collection) => collection.remove(nodeIds)));
    },
  };
}

/** Writes the entries of nodes in batches. */
function createWriter(deps: ReportStoreDeps, { beats, collections, remove }: Collections) {
  const { table, instanceId, clock, logger } = deps;
  let last = 0;
  /** Grows, even over a restart. */
  const nextPlace = (): string => String((last = Math.max(last + 1, clock.now()))).padStart(16, '0');
  /** Unchanged parts are written again from time to time, in case the store has lost them. */
  const isLongAgo = (written: string): boolean =>
    Number(written.slice(written.indexOf('/') + 1)) < clock.now() - tuning.writeAgainMs;

  const batch = createKeyedBatch<Waiting>({
    everyMs: tuning.batchMs,
    batchEntries: tuning.batchDocuments,
    batchWeight: batchBytes,
    maxEntries: tuning.waitingNodes,
    weigh: ({ weight }) => weight,
    write: writeBatch,
    onError: logsWarning(logger, 'reports of agents could not be written yet'),
    onDropped: (nodeId) => logger.warn({ node_id: nodeId }, 'the reports of a node are not written: too many wait'),
    retry: storeRetry,
    closeWithinMs: shutdownMs,
  });

  /**
   * Nodes without a session here that now have one at another instance, which has written newer reports than those
   * waiting here.
   */
  async function heldByOthers(nodeIds: readonly string[]): Promise<ReadonlySet<string>> {
    const without = deps.isShared ? nodeIds.filter((id) => !deps.isOwn(id)) : [];
    const stored = without.length === 0 ? [] : await beats.getMany(without);
    const held = stored.filter(({ fields }) => fields.presence !== null && fields.instance !== instanceId);
    return new Set(held.map(({ id }) => id));
  }

  async function writeBatch(waiting: readonly (readonly [nodeId: string, Waiting])[]): Promise<void> {
    const held = await heldByOthers(waiting.map(([id]) => id));
    const place = nextPlace();
    const documents: { readonly id: string; readonly fields: BeatFields }[] = [];
    const changed: { readonly [P in Part]: { readonly id: string; readonly fields: Fields }[] } = {
      listeners: [],
      links: [],
      metrics: [],
    };
    for (const [id, { changed: parts }] of waiting) {
      const entry = table.find(id);
      if (entry === undefined || held.has(id)) continue;
      for (const part of partsOf) {
        if (!parts.includes(part) && !isLongAgo(entry.written[part])) continue;
        const fields = codecs[part].fieldsOf(entry);
        if (fields === undefined) continue;
        changed[part].push({ id, fields });
        entry.written = { ...entry.written, [part]: `${instanceId}/${place}` };
      }
      documents.push({ id, fields: beatFields(entry, instanceId, place) });
    }
    await Promise.all(partsOf.map((part) => changed[part].length > 0 && collections[part].set(changed[part])));
    // Last, because a sign of life must not be newer than its tables.
    await beats.set(documents);
    const forgotten = documents.filter(({ id }) => table.find(id) === undefined);
    await remove(forgotten.map(({ id }) => id));
  }

  function write(nodeId: string, changed: readonly Part[]): void {
    const entry = table.find(nodeId);
    if (entry === undefined) return;
    const before = batch.get(nodeId)?.changed ?? [];
    const parts = before.length === 0 ? changed : [...new Set([...before, ...changed])];
    batch.put(nodeId, { changed: parts, weight: weightOf(entry, parts) });
  }

  return { write, batch };
}

export type ReportStore = Awaited<ReturnType<typeof openReportStore>>;

/** @throws ServiceError `unavailable` */
export async function openReportStore(deps: ReportStoreDeps) {
  const { table, clock } = deps;
  const opened = await openCollections(deps.readStore, deps.isShared);
  const { beats, collections, remove } = opened;
  const { write, batch } = createWriter(deps, opened);

  /** Reads documents of nodes, a few at a time. */
  async function readParts(part: Part, nodeIds: readonly string[]): Promise<void> {
    for (let from = 0; from < nodeIds.length; from += tablesPerRead) {
      for (const { id, fields } of await collections[part].getMany(nodeIds.slice(from, from + tablesPerRead))) {
        codecs[part].enter(table.entry(id), fields);
      }
    }
  }

  async function enter(stored: readonly StoredBeat[]): Promise<void> {
    const before = stored.map(({ id }): Readonly<Entry> => ({ ...table.entry(id) }));
    for (const part of partsOf) {
      const news = stored.filter(({ id, fields }) => fields.written[part] !== table.find(id)?.written[part]);
      await readParts(
        part,
        news.map(({ id }) => id),
      );
    }
    for (const [index, beat] of stored.entries()) {
      enterBeat(table.entry(beat.id), beat.fields);
      const known = before[index];
      if (known !== undefined) deps.onEntered?.(beat.id, table.entry(beat.id), known);
    }
  }

  return {
    /**
     * Fills the table with signs of life, but not with presence.
     * @returns a function that fills in the rest
     * @throws ServiceError `unavailable`, like that function
     */
    async load(): Promise<(signal: AbortSignal) => Promise<void>> {
      const all: StoredBeat[] = [];
      const gone: string[] = [];
      let last: string | undefined;
      for (let more = true; more;) {
        const some = await beats.list(last, beatsPerRead);
        for (const beat of some) {
          // One that was seen lately may be new.
          if (deps.isGone(beat.id) && beat.fields.seen_at < clock.now() - tuning.writeAgainMs) gone.push(beat.id);
          else {
            enterBeat(table.entry(beat.id), beat.fields);
            all.push(beat);
          }
        }
        last = some.at(-1)?.id;
        more = some.length === beatsPerRead;
      }
      // The store was away when they were deleted.
      await remove(gone);
      return async (signal) => {
        for (let from = 0; from < all.length && !signal.aborted; from += tablesPerRead) {
          // Otherwise, newer parts were written here, or `others.ts` reads them.
          const isAsThen = ({ id, fields }: StoredBeat): boolean => table.find(id)?.written === fields.written;
          const ids = all
            .slice(from, from + tablesPerRead)
            .filter(isAsThen)
            .map(({ id }) => id);
          for (const part of partsOf) await readParts(part, ids);
          ids.forEach(table.notify);
        }
      };
    },
    /** Enters, and writes soon, an entry that neither the table nor the store has. */
    adopt(nodeId: string, known: Entry): void {
      if (table.find(nodeId) !== undefined) return;
      // Sessions and leases say who is online now.
      Object.assign(table.entry(nodeId), known, { presence: undefined, hasReported: false });
      write(nodeId, partsOf);
    },
    /** Writes a node's sign of life soon. @param changed the other parts of its entry to write */
    write,
    // All documents of a batch have one place and must be read together.
    /** The next documents that an instance wrote, in order, starting at a place. @throws ServiceError `unavailable` */
    writtenBy: (instance: string, place: string): Promise<readonly StoredBeat[]> =>
      beats.find({ groups: [instance], from: place, direction: 'asc', limit: 2 * tuning.batchDocuments }),
    /** @throws ServiceError `unavailable` */
    beatOf: (nodeId: string): Promise<StoredBeat | undefined> => beats.get(nodeId),
    /** Enters beats, but not presence, and reads the parts that were written with them. @throws ServiceError `unavailable` */
    enter,
    /** Deletes everything about deleted nodes. @throws ServiceError `unavailable` */
    async forget(nodeIds: readonly string[]): Promise<void> {
      for (const nodeId of nodeIds) {
        batch.delete(nodeId);
        table.forget(nodeId);
      }
      await remove(nodeIds);
    },
    flush: batch.flush,
    close: batch.close,
  };
}
