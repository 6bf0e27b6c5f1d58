/**
 * Guarded puts in one collection, in batches, by any number of instances at once. The highest position wins, so neither
 * order nor a transaction matters. Implements `read-store.ts` (Collection.write).
 *
 * One round: read the stored positions, drop the documents that are not above them, insert the missing ones, replace the
 * lower ones. An insert fails on a document that was inserted meanwhile (E11000), also by this very call, and a
 * replacement does not match one that has become higher or was removed: then there is another round. An upsert with the
 * guard in its filter would be one command, but its E11000 does not mean "already applied".
 */
import type { Collection } from 'mongodb';
import type { IndexSpec, StoredDocument } from '../read-store.js';
import { batches, byIds, untilSettled } from './batches.js';
import { encodeDocument, type MongoDocument } from './document-codec.js';
import { duplicatesIn } from './failures.js';
import { reading, tuning } from './tuning.js';

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

/** @throws RangeError when a document cannot be stored; then nothing is written */
export async function applyGuarded(
  collection: Collection<MongoDocument>,
  index: IndexSpec | undefined,
  documents: readonly StoredDocument[],
): Promise<void> {
  for (const batch of batches(documents.map((document) => encodeDocument(index, document)))) {
    await untilSettled(async () => {
      const stored = await storedPositions(collection, batch);
      const missing = batch.filter(({ _id }) => !stored.has(_id));
      const lower = batch.filter(({ _id, position }) => position > (stored.get(_id) ?? position));
      const done = (await insertMissing(collection, missing)) + (await replaceLower(collection, lower));
      return done === missing.length + lower.length;
    });
  }
}
