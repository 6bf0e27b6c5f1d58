/**
 * Guarded puts and deletes in one collection, in batches, by any number of instances at once. The highest position wins,
 * so neither order nor a transaction matters. Implements `read-store.ts` (Collection.write).
 *
 * One round: read the stored positions, drop the writes that are not above them, insert the missing documents, replace
 * the lower ones. An insert fails on a document that was inserted meanwhile (E11000), and a replacement does not match
 * one that has become higher or was purged: such writes go through another round. An upsert with the guard in its
 * filter would be one command, but its E11000 does not mean "already applied".
 */
import type { Collection } from 'mongodb';
import { unreachable } from '../../kernel/errors.js';
import type { GuardedWrite, IndexSpec } from '../read-store.js';
import { batches, byIds, untilSettled } from './batches.js';
import { encodeDocument, encodeTombstone, type MongoDocument } from './document-codec.js';
import { duplicatesIn } from './failures.js';
import { reading, tuning } from './tuning.js';

function encode(index: IndexSpec | undefined, write: GuardedWrite): MongoDocument {
  switch (write.kind) {
    case 'put':
      return encodeDocument(index, write.id, write.position, write.fields);
    case 'delete':
      return encodeTombstone(write.id, write.position);
    default:
      return unreachable(write);
  }
}

/** The writes that are above all earlier writes of the same id in this call; the others would never be applied. */
function rising(index: IndexSpec | undefined, writes: readonly GuardedWrite[]): readonly MongoDocument[] {
  const highest = new Map<string, number>();
  const risingWrites: MongoDocument[] = [];
  for (const write of writes) {
    const document = encode(index, write);
    if (write.position <= (highest.get(write.id) ?? -1)) continue;
    highest.set(write.id, write.position);
    risingWrites.push(document);
  }
  return risingWrites;
}

async function storedPositions(
  collection: Collection<MongoDocument>,
  documents: readonly MongoDocument[],
): Promise<Map<string, number>> {
  const ids = [...new Set(documents.map(({ _id }) => _id))];
  const documentsFound = await collection
    .find(byIds(ids), { ...reading, projection: { position: 1 }, batchSize: tuning.batchDocuments + 1 })
    .toArray();
  return new Map(documentsFound.map(({ _id, position }) => [_id, position]));
}

async function insertMissing(
  collection: Collection<MongoDocument>,
  documents: readonly MongoDocument[],
): Promise<number> {
  if (documents.length === 0) return 0;
  try {
    return (await collection.insertMany([...documents], { ordered: false })).insertedCount;
  } catch (error) {
    return documents.length - duplicatesIn(error).length;
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
  return untilSettled(async () => {
    const stored = await storedPositions(collection, batch);
    const pending = batch.filter(({ _id, position }) => position > (stored.get(_id) ?? -1));
    const missing = new Map<string, MongoDocument>();
    for (const document of pending) {
      if (!stored.has(document._id) && !missing.has(document._id)) missing.set(document._id, document);
    }
    const lower = pending.filter((document) => missing.get(document._id) !== document);
    // Inserts go first: a replacement in the same batch must find the document.
    const done = (await insertMissing(collection, [...missing.values()])) + (await replaceLower(collection, lower));
    applied += done;
    return done === pending.length ? applied : undefined;
  });
}

/** @returns how many were applied @throws RangeError when one cannot be stored; then nothing is written */
export async function applyGuarded(
  collection: Collection<MongoDocument>,
  index: IndexSpec | undefined,
  writes: readonly GuardedWrite[],
): Promise<number> {
  let applied = 0;
  for (const batch of batches(rising(index, writes))) applied += await applyBatch(collection, batch);
  return applied;
}
