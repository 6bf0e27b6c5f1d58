/**
 * The form of a document in MongoDB. Its fields are one JSON text, exact for every key and nesting, unlike BSON; binary
 * fields are stored beside it. Queries run on `groups`, `order` and `time`.
 */
import { Binary } from 'mongodb';
import { placeIn, type IndexPlace } from '../group-index.js';
import type { FieldValue, Fields, IndexSpec, StoredDocument } from '../read-store.js';
import { assertDocumentId } from '../bounds.js';
import { tuning } from './tuning.js';

interface Bytes {
  readonly field: string;
  readonly value: Binary;
}

export interface MongoDocument extends Partial<IndexPlace> {
  readonly _id: string;
  readonly position: number;
  /** Release 0.1.0, which may share the store, lists only documents that have it. */
  readonly live: true;
  readonly json: string;
  readonly bytes?: readonly Bytes[];
}

/** Fields that a read of whole documents does not need. */
export const withoutPlace = { order: 0, groups: 0, time: 0 } as const;

/** @throws RangeError on a bad id, or when the document is larger than a server accepts */
export function encodeDocument(index: IndexSpec | undefined, { id, position, fields }: StoredDocument): MongoDocument {
  assertDocumentId(id);
  const entries = Object.entries(fields);
  const binary = entries.filter((entry): entry is [string, Uint8Array] => entry[1] instanceof Uint8Array);
  const plain =
    binary.length === 0 ? fields : Object.fromEntries(entries.filter((entry) => !(entry[1] instanceof Uint8Array)));
  const json = JSON.stringify(plain);
  const size = Buffer.byteLength(json) + binary.reduce((sum, [, bytes]) => sum + bytes.length, 0);
  if (size > tuning.documentBytes) {
    throw new RangeError(`document ${id} has ${size} bytes, more than ${tuning.documentBytes}`);
  }
  const document = { _id: id, position, live: true as const, json, ...placeIn(index, fields) };
  if (binary.length === 0) return document;
  return { ...document, bytes: binary.map(([field, bytes]) => ({ field, value: new Binary(bytes) })) };
}

export function decodeDocument({ _id: id, position, json, bytes }: MongoDocument): StoredDocument {
  const fields = JSON.parse(json) as Fields;
  if (bytes === undefined) return { id, position, fields };
  const binary = bytes.map(({ field, value }): [string, FieldValue] => [field, new Uint8Array(value.value())]);
  return { id, position, fields: Object.fromEntries([...Object.entries(fields), ...binary]) };
}
