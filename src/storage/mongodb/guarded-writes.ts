/**
 * Guarded puts and deletes of one collection, in batches, by any number of instances at once. Not a transaction: each
 * write stands for itself, and because the highest position wins they may land in any order.
 * Implements `read-store.ts` (Collection.write); `docs/architecture.md`, "Read models need no transactions".
 *
 * One round: see which positions stand; drop the writes that they are past; insert the documents that are missing;
 * replace those that are lower. Both are atomic for themselves: an insert fails on a document that came in between
 * (E11000), a replacement does not match one that has grown past it or was purged. Who lost such a race goes round
 * again. An upsert with the guard in its filter would be one command, but E11000 then does not mean "already applied":
 * the document that came in between may be lower.
 */
import type { Collection } from 'mongodb';
import { unreachable } from '../../kernel/errors.js';
import type { GuardedWrite } from '../read-store.js';
import { batches, untilSettled } from './batches.js';
import { encodeDocument, encodeTombstone, type MongoDocument } from './document-codec.js';
import { insertedDespite } from './failures.js';
import { byIds } from './query.js';
import { tuning } from './tuning.js';

function encode(write: GuardedWrite): MongoDocument {
  switch (write.kind) {
    case 'put':
      return encodeDocument(write.id, write.position, write.fields);
    case 'delete':
      return encodeTombstone(write.id, write.position);
    default:
      return unreachable(write);
  }
}

/** Without those that an earlier one of the same call is past: they are never applied, whatever stands. */
function rising(writes: readonly GuardedWrite[]): readonly MongoDocument[] {
  const highest = new Map<string, number>();
  const kept: MongoDocument[] = [];
  for (const write of writes) {
    const document = encode(write);
    if (write.position <= (highest.get(write.id) ?? -1)) continue;
    highest.set(write.id, write.position);
    kept.push(document);
  }
  return kept;
}

async function standingPositions(
  collection: Collection<MongoDocument>,
  documents: readonly MongoDocument[],
): Promise<Map<string, number>> {
  const ids = [...new Set(documents.map(({ _id }) => _id))];
  const found = await collection
    .find(byIds(ids), { projection: { position: 1 }, batchSize: tuning.batchDocuments + 1 })
    .toArray();
  return new Map(found.map(({ _id, position }) => [_id, position]));
}

async function insertMissing(
  collection: Collection<MongoDocument>,
  documents: readonly MongoDocument[],
): Promise<number> {
  if (documents.length === 0) return 0;
  try {
    return (await collection.insertMany([...documents], { ordered: false })).insertedCount;
  } catch (error) {
    return insertedDespite(error);
  }
}

async function replaceLower(
  collection: Collection<MongoDocument>,
  documents: readonly MongoDocument[],
): Promise<number> {
  if (documents.length === 0) return 0;
  const replacements = documents.map((document) => ({
    replaceOne: { filter: { _id: document._id, position: { $lt: document.position } }, replacement: document },
  }));
  return (await collection.bulkWrite(replacements, { ordered: false })).matchedCount;
}

async function applyBatch(collection: Collection<MongoDocument>, batch: readonly MongoDocument[]): Promise<number> {
  let applied = 0;
  return untilSettled('these documents', async () => {
    const standing = await standingPositions(collection, batch);
    const pending = batch.filter(({ _id, position }) => position > (standing.get(_id) ?? -1));
    const missing = new Map<string, MongoDocument>();
    for (const document of pending) {
      if (!standing.has(document._id) && !missing.has(document._id)) missing.set(document._id, document);
    }
    const lower = pending.filter((document) => missing.get(document._id) !== document);
    // The inserts first: what replaces one of them in the same batch must find it.
    const done = (await insertMissing(collection, [...missing.values()])) + (await replaceLower(collection, lower));
    applied += done;
    return done === pending.length ? applied : undefined;
  });
}

/** Returns how many were applied. @throws RangeError when one cannot be stored; then none of this call is written. */
export async function applyGuarded(
  collection: Collection<MongoDocument>,
  writes: readonly GuardedWrite[],
): Promise<number> {
  let applied = 0;
  for (const batch of batches(rising(writes))) applied += await applyBatch(collection, batch);
  return applied;
}
