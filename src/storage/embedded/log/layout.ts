/**
 * How the log lies in LMDB: names of the databases, keys and small values. Not how events are encoded.
 *
 * - `events`: (stream number, revision) → event. The truth; a stream read is one scan.
 * - `appends`: position of an append's first event → stream number, first revision, count. The global order.
 * - `streams`: name → number, head, retention. `names`: number → name. `meta`: counters. `folds`: checkpoints.
 */
import type { Retention } from '../../event-store.js';
import type { Environment } from '../environment.js';
import type { Batch } from '../group-writer.js';

export const logDatabases = {
  events: 'text',
  appends: 'bytes',
  streams: 'bytes',
  names: 'bytes',
  meta: 'bytes',
  folds: 'bytes',
} as const;
export type LogDatabase = keyof typeof logDatabases;
export type LogEnvironment = Environment<LogDatabase>;
export type LogBatch = Batch<LogDatabase>;

export interface StreamRecord {
  readonly number: number;
  /** Revision of the last event; -1 before the first. */
  readonly head: number;
  readonly retention: Retention;
}

/** One append: where its events lie in its stream. */
export interface AppendRecord {
  readonly position: number;
  readonly stream: number;
  readonly revision: number;
  readonly count: number;
}

export interface Counters {
  readonly position: number;
  readonly streams: number;
}

export function eventKey(stream: number, revision: number): Buffer {
  const key = Buffer.allocUnsafe(10);
  key.writeUInt32BE(stream, 0);
  key.writeUIntBE(revision, 4, 6);
  return key;
}

/** The revision in a key of `events`; arithmetic, as a scan calls it for each event. */
export function revisionOf(key: Uint8Array): number {
  let revision = 0;
  for (let index = 4; index < 10; index += 1) revision = revision * 256 + (key[index] ?? 0);
  return revision;
}

/** Positions stay below 2^48 here: appended at a million events per second, that is nine years. */
export function positionKey(position: number): Buffer {
  const key = Buffer.allocUnsafe(6);
  key.writeUIntBE(Math.min(position, 2 ** 48 - 1), 0, 6);
  return key;
}

export function encodeAppend(record: AppendRecord): Buffer {
  const value = Buffer.allocUnsafe(14);
  value.writeUInt32BE(record.stream, 0);
  value.writeUIntBE(record.revision, 4, 6);
  value.writeUInt32BE(record.count, 10);
  return value;
}

export function decodeAppend(key: Buffer, value: Buffer): AppendRecord {
  return {
    position: key.readUIntBE(0, 6),
    stream: value.readUInt32BE(0),
    revision: value.readUIntBE(4, 6),
    count: value.readUInt32BE(10),
  };
}

export const streamKey = (name: string): Buffer => Buffer.from(name, 'utf8');

export function numberKey(stream: number): Buffer {
  const key = Buffer.allocUnsafe(4);
  key.writeUInt32BE(stream, 0);
  return key;
}

const countersKey = Buffer.from('counters');

function parse<T>(value: Buffer | undefined): T | undefined {
  // What is parsed here was written by the functions beside it, under the folder's format version.
  return value === undefined ? undefined : (JSON.parse(value.toString('utf8')) as T);
}

type Get = (database: LogDatabase, key: Buffer) => Buffer | undefined;

export function readStreamRecord(get: Get, name: string): StreamRecord | undefined {
  return parse<StreamRecord>(get('streams', streamKey(name)));
}

export function readCounters(get: Get): Counters {
  return parse<Counters>(get('meta', countersKey)) ?? { position: 0, streams: 0 };
}

const json = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));

export function putStreamRecord(batch: LogBatch, name: string, record: StreamRecord): void {
  batch.put('streams', streamKey(name), json(record));
}

export function putCounters(batch: LogBatch, counters: Counters): void {
  batch.put('meta', countersKey, json(counters));
}

/** The record of a stream, made when it is new. */
export function ensureStream(batch: LogBatch, name: string): StreamRecord {
  const found = readStreamRecord(batch.get, name);
  if (found !== undefined) return found;
  const counters = readCounters(batch.get);
  const record: StreamRecord = { number: counters.streams + 1, head: -1, retention: {} };
  putCounters(batch, { ...counters, streams: record.number });
  putStreamRecord(batch, name, record);
  batch.put('names', numberKey(record.number), streamKey(name));
  return record;
}
