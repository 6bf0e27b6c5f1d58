/**
 * The layout of the log in LMDB: the databases, their keys and small values. `event-codec.ts` encodes the events.
 *
 * - `events`: (stream number, revision) → event. The source of truth; a stream is read with one scan.
 * - `appends`: position of an append's first event → stream number, first revision, count. The global order.
 * - `streams`: name → number, head, retention. `names`: number → name. `meta`: counters. `folds`: checkpoints.
 */
import type { Retention } from '../../event-store.js';
import type { Environment } from '../environment.js';
import type { Batch } from '../group-writer.js';
import type { Reads } from '../lmdb.js';

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
export type LogReads = Reads<LogDatabase>;
export type LogBatch = Batch<LogDatabase>;

export interface StreamRecord {
  readonly number: number;
  /** Revision of the last event; -1 before the first. */
  readonly head: number;
  readonly retention: Retention;
}

/** One append: the location of its events in its stream. */
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

/** The revision in a key of `events`. Plain arithmetic, because scans call it for every event. */
export function revisionOf(key: Uint8Array): number {
  let revision = 0;
  for (let index = 4; index < 10; index += 1) revision = revision * 256 + (key[index] ?? 0);
  return revision;
}

/** Positions stay below 2^48: nine years at a million events per second. */
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

const streamKey = (name: string): Buffer => Buffer.from(name, 'utf8');

export function numberKey(stream: number): Buffer {
  const key = Buffer.allocUnsafe(4);
  key.writeUInt32BE(stream, 0);
  return key;
}

/** Keys of `meta`. */
export const metaKeys = {
  counters: Buffer.from('counters'),
  /** A write that tests whether the log is writable. */
  probe: Buffer.from('probe'),
  /** See `log-time.ts`. */
  time: Buffer.from('time'),
} as const;

type Get = (database: LogDatabase, key: Buffer) => Buffer | undefined;

const recordBytes = 10;

/** Fixed fields, because every append reads and writes a record; then the retention as JSON, if any. */
function encodeRecord(record: StreamRecord): Buffer {
  const { maxAgeSeconds, maxCount } = record.retention;
  const plain = maxAgeSeconds === undefined && maxCount === undefined;
  const retention = plain ? '' : JSON.stringify(record.retention);
  const value = Buffer.allocUnsafe(recordBytes + Buffer.byteLength(retention));
  value.writeUInt32BE(record.number, 0);
  value.writeUIntBE(record.head + 1, 4, 6);
  value.write(retention, recordBytes);
  return value;
}

export function readStreamRecord(get: Get, name: string): StreamRecord | undefined {
  const value = get('streams', streamKey(name));
  if (value === undefined) return undefined;
  const retention = value.length > recordBytes ? (JSON.parse(value.toString('utf8', recordBytes)) as Retention) : {};
  return { number: value.readUInt32BE(0), head: value.readUIntBE(4, 6) - 1, retention };
}

/** Whether any stream has a retention: an import and the first start of a service set them last. */
export const hasRetention = ({ entries }: LogReads): boolean =>
  entries('streams', { from: Buffer.from([0]), to: Buffer.from([0xff]), limit: Number.POSITIVE_INFINITY }).some(
    ({ value }) => value.length > recordBytes,
  );

export function readCounters(get: Get): Counters {
  const value = get('meta', metaKeys.counters);
  return value === undefined
    ? { position: 0, streams: 0 }
    : { position: value.readUIntBE(0, 6), streams: value.readUInt32BE(6) };
}

export function putStreamRecord(batch: LogBatch, name: string, record: StreamRecord): void {
  batch.put('streams', streamKey(name), encodeRecord(record));
}

export function putCounters(batch: LogBatch, counters: Counters): void {
  const value = Buffer.allocUnsafe(10);
  value.writeUIntBE(counters.position, 0, 6);
  value.writeUInt32BE(counters.streams, 6);
  batch.put('meta', metaKeys.counters, value);
}

/** The record of a stream, created when the stream is new. */
export function ensureStream(batch: LogBatch, name: string): StreamRecord {
  const existing = readStreamRecord(batch.get, name);
  if (existing !== undefined) return existing;
  const counters = readCounters(batch.get);
  const record: StreamRecord = { number: counters.streams + 1, head: -1, retention: {} };
  putCounters(batch, { ...counters, streams: record.number });
  putStreamRecord(batch, name, record);
  batch.put('names', numberKey(record.number), streamKey(name));
  return record;
}
