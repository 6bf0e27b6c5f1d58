/**
 * The tables of a heartbeat as bytes. Most differ from the previous heartbeat only in their counters: such a table is recognised
 * and cut out before anything is decoded, and its counters are read in place. `agent-payload.ts` decodes the rest. Serves `docs/contract/agent-protocol.md#heartbeats-commands-metrics`.
 */
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';
import { HeartbeatRequest, type LinkMetric, type RuntimeListener } from '../../gen/svc/control/v1/heartbeat.js';
import { listenerCounters } from '../../reports/counted-rows.js';
import {
  hasValues,
  shapeIdOf,
  shapeOf,
  shapeOfWire,
  tableOfListeners,
  type ListenerTable,
} from '../../reports/listener-table.js';
import { limits } from '../../kernel/limits.js';
import { passOver } from './wire-scan.js';

/** Fields of `AgentPayload` and of `HeartbeatRequest`, all length-delimited. */
const heartbeatTag = (2 << 3) | WireType.LengthDelimited;
const linksTag = (7 << 3) | WireType.LengthDelimited;
const listenersTag = (8 << 3) | WireType.LengthDelimited;
/** The counters of `RuntimeListener`, which follow its other fields: those of `listenerCounters`, and the active sessions. */
const counterTags: readonly number[] = [6, 7, 9, 10].map((field) => field << 3);
const activeTag = 8 << 3;
const firstCounterTag = 6 << 3;
const columns = listenerCounters.length;
/** A table is copied if its buffer is larger by more than this factor. */
const viewFactor = 1.25;

/** Valid links. */
interface KnownLinks {
  /** The fields of a `HeartbeatRequest` that hold the list, in a buffer with hardly anything else. */
  readonly bytes: Uint8Array;
  readonly entries: number;
}
export interface KnownTables {
  readonly links: KnownLinks;
  readonly listeners: ListenerTable;
}

export const noTables: KnownTables = {
  links: { bytes: new Uint8Array(), entries: 0 },
  listeners: tableOfListeners([]),
};

interface Cut {
  /** The payload without the known tables. */
  readonly bytes: Uint8Array;
  readonly links: { readonly known: KnownLinks } | { readonly found: Uint8Array | undefined };
  /** `found` is undefined if the listeners are not in their usual form. */
  readonly listeners: { readonly known: ListenerTable } | { readonly found: SplitListeners | undefined };
}

interface SplitListeners {
  /** The bytes of a `ListenerShape`; overwritten by the next split. */
  readonly wire: Uint8Array;
  /** Those of a `ListenerTable`. */
  readonly values: readonly number[];
}

type Range = readonly [from: number, to: number];

export const uncut = (bytes: Uint8Array): Cut => ({
  bytes,
  links: { found: undefined },
  listeners: { found: undefined },
});

/** Cuts known tables out of the bytes of an `AgentPayload`. @param tables of the previous heartbeat */
export function cutKnownTables(bytes: Uint8Array, tables: KnownTables): Cut {
  const reader = new BinaryReader(bytes);
  const ranges = rangesOf(reader);
  if (ranges === undefined) return uncut(bytes);
  const block = bytes.subarray(...ranges.links);
  const links = Buffer.compare(block, tables.links.bytes) === 0 ? { known: tables.links } : { found: block };
  const split = splitListeners(bytes, reader, ranges);
  const known = split && knownTable(split, tables.listeners);
  const listeners = known === undefined ? { found: split } : { known };
  const cuts = [...('known' in links ? [ranges.links] : []), ...('known' in listeners ? [ranges.listeners] : [])];
  return { bytes: without(bytes, ranges.content, cuts), links, listeners };
}

/** The table, if the previous heartbeat or any other node has its shape. */
function knownTable({ wire, values }: SplitListeners, before: ListenerTable): ListenerTable | undefined {
  const id = shapeIdOf(wire);
  if (id === before.shape.id) return hasValues(before, values) ? before : { shape: before.shape, values };
  const shape = shapeOf(id);
  return shape && { shape, values };
}

/** For the largest allowed table; a part of it is copied at once. */
const noCounters: readonly number[] = Array.from(
  { length: limits.agent.runtimeListeners * (columns + 1) },
  () => Number.NaN,
);
/** Holds one table at a time; a larger one gets its own memory. */
const room = new Uint8Array(64 * 1024);

/**
 * Separates listeners from their counters, without reading texts or creating objects: a busy node has hundreds of listeners.
 * @returns undefined for bytes that no usual encoder writes
 */
function splitListeners(
  bytes: Uint8Array,
  reader: BinaryReader,
  { listeners: [from, to], rows }: Ranges,
): SplitListeners | undefined {
  if (rows > limits.agent.runtimeListeners) return undefined;
  reader.pos = from;
  const wire = to - from > room.length ? new Uint8Array(to - from) : room;
  wire.set(bytes.subarray(from, to));
  const values = noCounters.slice(0, rows * (columns + 1));
  let length = 0;
  try {
    for (let row = 0; row < rows; row += 1) {
      readTag(reader);
      const size = reader.uint32();
      const start = reader.pos;
      const end = start + size;
      let shapeEnd = start;
      while (reader.pos < end) {
        const at = reader.pos;
        const tag = readTag(reader);
        const column = counterTags.indexOf(tag);
        if (column >= 0) values[row * columns + column] = readCounter(bytes, reader);
        else if (tag === activeTag) values[rows * columns + row] = readCounter(bytes, reader);
        else if (!pass(reader, tag)) return undefined;
        else if (tag < firstCounterTag) {
          if (shapeEnd !== at) return undefined;
          shapeEnd = reader.pos;
        }
      }
      if (reader.pos !== end) return undefined;
      length = writeHead(wire, length, listenersTag, shapeEnd - start);
      wire.copyWithin(length, start - from, shapeEnd - from);
      length += shapeEnd - start;
    }
  } catch {
    // The reader throws for malformed bytes.
    return undefined;
  }
  return { wire: wire.subarray(0, length), values };
}

/** Like `reader.tag`, but without creating an array. */
function readTag(reader: BinaryReader): number {
  const at = reader.pos;
  const tag = reader.uint32();
  if (reader.pos - at > 4) throw new Error('no field of this protocol has such a tag');
  return tag;
}

/** Skips a field. @returns false for one that this protocol does not have */
function pass(reader: BinaryReader, tag: number): boolean {
  const wireType: WireType = tag & 7;
  if (tag < 1 << 3) return false;
  if (wireType !== WireType.LengthDelimited) return passOver(reader, wireType);
  // `reader.skip` would create a view.
  const length = reader.uint32();
  reader.pos += length;
  return reader.pos <= reader.len;
}

/** Like `wholeNumber`, but without a bigint. @throws Error for more than 56 bits, which agents hardly count */
function readCounter(bytes: Uint8Array, reader: BinaryReader): number {
  let value = 0;
  for (let scale = 1; scale < 2 ** 56; scale *= 128) {
    const byte = bytes[reader.pos] ?? 0x80;
    reader.pos += 1;
    value += (byte & 0x7f) * scale;
    if (byte < 0x80) return Math.min(value, Number.MAX_SAFE_INTEGER);
  }
  throw new Error('a counter of more than 56 bits');
}

const longestHead = 6;
/** Writes a tag and the length of its content. @returns the offset after them */
function writeHead(into: Uint8Array, offset: number, tag: number, length: number): number {
  into[offset] = tag;
  let at = offset + 1;
  let rest = length;
  for (; rest > 0x7f; rest >>>= 7, at += 1) into[at] = (rest & 0x7f) | 0x80;
  into[at] = rest;
  return at + 1;
}

interface Ranges {
  readonly links: Range;
  readonly listeners: Range;
  /** Number of listeners. */
  readonly rows: number;
  readonly content: Range;
}

/** The places of a heartbeat's tables; undefined for other payloads, and for bytes that no usual encoder writes. */
function rangesOf(reader: BinaryReader): Ranges | undefined {
  let rows = 0;
  try {
    if (readTag(reader) !== heartbeatTag) return undefined;
    const length = reader.uint32();
    const content: Range = [reader.pos, reader.len];
    const links: [from: number, to: number] = [reader.pos, reader.pos];
    const listeners: [from: number, to: number] = [reader.pos, reader.pos];
    if (reader.pos + length !== reader.len) return undefined;
    while (reader.pos < reader.len) {
      const from = reader.pos;
      const tag = readTag(reader);
      if (!pass(reader, tag)) return undefined;
      if (tag !== linksTag && tag !== listenersTag) continue;
      const range = tag === linksTag ? links : listeners;
      if (range[0] === range[1]) range[0] = from;
      else if (range[1] !== from) return undefined;
      range[1] = reader.pos;
      if (tag === listenersTag) rows += 1;
    }
    return reader.pos === reader.len ? { links, listeners, rows, content } : undefined;
  } catch {
    return undefined;
  }
}

/** A heartbeat without some ranges; the same bytes if nothing is cut. */
function without(bytes: Uint8Array, [from, to]: Range, cuts: readonly Range[]): Uint8Array {
  const left = cuts.reduce((sum, [start, end]) => sum - (end - start), to - from);
  if (left === to - from) return bytes;
  const made = new Uint8Array(left + longestHead);
  let length = writeHead(made, 0, heartbeatTag, left);
  let at = from;
  for (const [start, end] of [...cuts.toSorted((a, b) => a[0] - b[0]), [to, to] as const]) {
    made.set(bytes.subarray(at, start), length);
    length += start - at;
    at = end;
  }
  return made.subarray(0, length);
}

/** The tables of a decoded heartbeat, including those that were cut out. */
export function tablesOf({ linkMetrics, runtimeListeners }: HeartbeatRequest, { links, listeners }: Cut): KnownTables {
  return {
    links: 'known' in links ? links.known : { bytes: wireOf(links.found, linkMetrics), entries: linkMetrics.length },
    listeners: 'known' in listeners ? listeners.known : tableOf(listeners.found, runtimeListeners),
  };
}

const tableOf = (split: SplitListeners | undefined, listeners: readonly RuntimeListener[]): ListenerTable =>
  split === undefined
    ? tableOfListeners(listeners)
    : { shape: shapeOfWire(split.wire, listeners), values: split.values };

/** A view of the payload if that is hardly larger, or else a copy. */
function wireOf(block: Uint8Array | undefined, linkMetrics: readonly LinkMetric[]): Uint8Array {
  if (block === undefined) return HeartbeatRequest.encode({ ...HeartbeatRequest.create(), linkMetrics }).finish();
  return block.length * viewFactor >= block.buffer.byteLength ? block : new Uint8Array(block);
}
