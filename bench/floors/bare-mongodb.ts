/** The floor of documents in MongoDB: unordered bulk inserts, one after the other, without indexes. */
import { randomUUID } from 'node:crypto';
import { MongoClient } from 'mongodb';
import { answerParent } from '../child.js';
import { tuning } from '../../src/storage/mongodb/tuning.js';

const [url = ''] = process.argv.slice(2);
const client = new MongoClient(url);

/** Milliseconds for `count` documents with the fields of the sample. */
async function write({ count, sample }: { readonly count: number; readonly sample: string }): Promise<number> {
  const fields = JSON.parse(sample) as { readonly [field: string]: unknown };
  const collection = client.db().collection<{ _id: string }>(`bare_${randomUUID().slice(0, 8)}`);
  const began = performance.now();
  for (let written = 0; written < count;) {
    const size = Math.min(tuning.batchDocuments, count - written);
    const operations = Array.from({ length: size }, () => ({
      insertOne: { document: { ...fields, _id: randomUUID() } },
    }));
    await collection.bulkWrite(operations, { ordered: false });
    written += size;
  }
  const ms = performance.now() - began;
  await collection.drop();
  return ms;
}

answerParent({ write, close: () => client.close() });
