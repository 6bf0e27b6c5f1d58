/**
 * Fills the indexes of a collection that were declared after its documents were written, or that an older release wrote in
 * another form. The entries of many documents are gathered in memory, sorted and then written, so that each page of an index
 * is written once. Other callers may write documents meanwhile. Starts over after a crash.
 *
 * A new collection that is indexed later (`CollectionSpec.indexedLater`), as a rebuild opens it, has its entries gathered
 * while its documents are written, as long as no indexed field of one changes: most documents of a log are entries of the
 * audit, whose indexed fields never do. Otherwise its documents are read at the end. Part of `collections.ts`.
 */
import { applyTally, addTo, type Tally } from './counts.js';
import { decodeDocument } from './document-codec.js';
import { createGatheredKeys, type GatheredKeys } from './gathered-keys.js';
import { documentKeys, keepsKeys } from './index-keys.js';
import {
  collectionPrefix,
  documentKey,
  idOfKey,
  justAbove,
  present,
  within,
  type IndexDatabase,
  type ReadBatch,
  type ReadEnvironment,
  type RunWrite,
} from './layout.js';
import type { OpenIndex } from './query-plan.js';
import type { Fields } from '../../read-store.js';
import { tuning } from '../tuning.js';

export interface Filling {
  readonly database: IndexDatabase;
  /** The indexes that are being filled. */
  readonly indexes: readonly OpenIndex[];
  /** Documents below this key, in latin-1 text, have been read; those above it will be. */
  upTo: string;
  /** The entries of documents are gathered when they are written, until the indexes are wanted. */
  fromWrites: boolean;
  /** Entries that are not written yet. */
  gathered: GatheredKeys;
  /** Entries that may still be among the gathered ones although their documents have changed. */
  readonly outdated: Set<string>;
  /** Counts of the documents that have been read; stored when the indexes are ready. */
  readonly tally: Tally;
  /** A write failed that had changed `outdated` or `tally`: nothing here can be relied on. */
  spoiled: boolean;
}

export function startFilling(database: IndexDatabase, indexes: readonly OpenIndex[]): Filling {
  return {
    database,
    indexes,
    fromWrites: false,
    upTo: '',
    gathered: createGatheredKeys(),
    outdated: new Set(),
    tally: new Map(),
    spoiled: false,
  };
}

/** For a collection that has no document yet: there is nothing to read. */
export function startGathering(database: IndexDatabase, indexes: readonly OpenIndex[], collection: number): Filling {
  const upTo = within(collectionPrefix(collection)).to.toString('latin1');
  return { ...startFilling(database, indexes), fromWrites: true, upTo };
}

function keep(filling: Filling, id: string, fields: Fields): void {
  const { keys, heads, groups } = documentKeys(filling.indexes, id, fields);
  filling.gathered.add(keys, heads);
  for (const group of groups) addTo(filling.tally, group, 1);
}

const allKeep = (indexes: readonly OpenIndex[], before: Fields, after: Fields): boolean =>
  indexes.every((index) => keepsKeys(index, before, after));

/** What was gathered is of no use any more: the documents are read when the indexes are wanted. */
function giveUp(filling: Filling): void {
  filling.spoiled = true;
  filling.gathered = createGatheredKeys();
}

/** A document that changes while the indexes are being filled. One that has not been read yet will be read as it is then. */
export function replaceInFilling(
  batch: ReadBatch,
  filling: Filling,
  collection: number,
  id: string,
  before: Fields | undefined,
  after: Fields | undefined,
): void {
  if (filling.fromWrites) {
    if (filling.spoiled) return;
    if (before === undefined && after !== undefined) keep(filling, id, after);
    else if (before !== undefined && (after === undefined || !allKeep(filling.indexes, before, after))) giveUp(filling);
    return;
  }
  if (documentKey(collection, id) >= filling.upTo) return;
  if (before !== undefined) {
    const { keys, groups } = documentKeys(filling.indexes, id, before);
    for (const key of keys) {
      filling.outdated.add(key);
      batch.remove(filling.database, key);
    }
    for (const group of groups) addTo(filling.tally, group, -1);
  }
  if (after === undefined) return;
  const { keys, groups } = documentKeys(filling.indexes, id, after);
  for (const key of keys) {
    filling.outdated.delete(key);
    batch.put(filling.database, key, present);
  }
  for (const group of groups) addTo(filling.tally, group, 1);
}

/** Reads the next documents. @returns whether there are more */
function gather(environment: ReadEnvironment, filling: Filling, collection: number): boolean {
  const all = within(collectionPrefix(collection));
  const from = filling.upTo === '' ? all.from : Buffer.from(filling.upTo, 'latin1');
  const slice = environment.entries('documents', { from, to: all.to, limit: tuning.filledDocuments });
  for (const { key, value } of slice) {
    const { id, fields } = decodeDocument(idOfKey(key), value);
    keep(filling, id, fields);
  }
  const last = slice.at(-1);
  const more = last !== undefined && slice.length === tuning.filledDocuments;
  filling.upTo = (more ? justAbove(last.key) : all.to).toString('latin1');
  return more;
}

/** Writes what was gathered in the order of the keys, in parts that let other writes in between. */
async function write(run: RunWrite, filling: Filling): Promise<void> {
  const parts: Promise<void>[] = [];
  async function writePart(part: readonly string[]): Promise<void> {
    const putAll = (batch: ReadBatch): void => {
      for (const key of part) if (!filling.outdated.has(key)) batch.put(filling.database, key, present);
    };
    const written = run(putAll, { bulk: true });
    // Both parts under way fail together, and only the failure of the first is thrown.
    written.catch(() => undefined);
    parts.push(written);
    // One part is prepared while another is written.
    if (parts.length > 1) await parts.shift();
  }
  let part: string[] = [];
  for (const keys of filling.gathered.take()) {
    for (const key of keys) {
      part.push(key);
      if (part.length < tuning.bulkChanges) continue;
      await writePart(part);
      part = [];
    }
  }
  if (part.length > 0) await writePart(part);
  await Promise.all(parts);
}

/** Writes what was gathered if it is much. @throws ServiceError `unavailable` */
export async function writeIfMuch(run: RunWrite, filling: Filling): Promise<void> {
  if (filling.gathered.bytes() >= tuning.gatheredBytes) await write(run, filling);
}

/**
 * Returns once all entries are durable. Their counts are not stored yet (`finishFilling`).
 * @throws ServiceError `unavailable`
 */
export async function fillIndexes(
  environment: ReadEnvironment,
  run: RunWrite,
  filling: Filling,
  collection: number,
): Promise<void> {
  // As the first of its group: the read does not see documents that the group has not committed yet.
  while (await run(() => gather(environment, filling, collection), { first: true })) await writeIfMuch(run, filling);
  await write(run, filling);
}

/** Stores the counts, in the operation that declares the indexes as ready. @returns false when filling must start over */
export function finishFilling(batch: ReadBatch, filling: Filling): boolean {
  if (filling.spoiled) return false;
  applyTally(batch, filling.tally);
  return true;
}
