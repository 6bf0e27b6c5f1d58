/**
 * The tables of a heartbeat as bytes. Most are the same as in the previous heartbeat: such a table is recognised by its
 * bytes and cut out before anything is decoded. `agent-payload.ts` parses the rest with the generated decoder. Serves
 * `docs/contract/agent-protocol.md#heartbeats-commands-metrics`.
 */
import { BinaryReader, BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import { HeartbeatRequest } from '../../gen/svc/control/v1/heartbeat.js';
import { passOver } from './wire-scan.js';

/** Fields of `AgentPayload` and of `HeartbeatRequest`. */
const heartbeatField = 2;
const tableFields = { links: 7, listeners: 8 } as const;
type TableName = keyof typeof tableFields;
/** Field of `RuntimeListener`. */
const routesField = 5;
/** A table is copied out of a buffer that is larger than it by more than this factor. */
const viewFactor = 1.25;

/** A table that was parsed and found valid. */
export interface KnownTable {
  /** The list fields of a `HeartbeatRequest`, in a buffer that contains hardly anything else. */
  readonly bytes: Uint8Array;
  /** Its list entries, including nested ones. */
  readonly entries: number;
  /** The heartbeat it was parsed from lacks its routes, which were the same as in the heartbeat before. */
  readonly routesKnown?: boolean;
}
export type KnownTables = { readonly [T in TableName]: KnownTable };

const emptyTable: KnownTable = { bytes: new Uint8Array(), entries: 0 };
export const noTables: KnownTables = { links: emptyTable, listeners: emptyTable };

interface Cut {
  /** The payload without the known parts. */
  readonly bytes: Uint8Array;
  /** The tables that are unchanged. */
  readonly known: Partial<KnownTables>;
  /** The other tables, as they are in the payload. */
  readonly found: { readonly [T in TableName]?: Uint8Array };
  /** The listeners changed, but not their routes, which are cut out too: for example when counters increase. */
  readonly routesKnown: boolean;
}

type Range = readonly [from: number, to: number];
type Piece = { readonly range: Range; readonly instead?: Uint8Array };

/** Cuts everything that the previous heartbeat also had out of the bytes of an `AgentPayload`. */
export function cutKnownTables(bytes: Uint8Array, tables: KnownTables): Cut {
  const ranges = rangesOf(bytes);
  if (ranges === undefined) return { bytes, known: {}, found: {}, routesKnown: false };
  const known: { -readonly [T in TableName]?: KnownTable } = {};
  const found: { [T in TableName]?: Uint8Array } = {};
  const pieces: Piece[] = [];
  for (const name of ['links', 'listeners'] as const) {
    const range = ranges[name];
    const block = bytes.subarray(...range);
    if (Buffer.compare(block, tables[name].bytes) === 0) {
      known[name] = tables[name];
      if (block.length > 0) pieces.push({ range });
    } else found[name] = block;
  }
  const { listeners } = found;
  const instead = listeners === undefined ? undefined : withoutKnownRoutes(listeners, tables.listeners.bytes);
  if (instead !== undefined) pieces.push({ range: ranges.listeners, instead });
  const cut = pieces.length === 0 ? bytes : without(bytes, ranges.content, pieces);
  return { bytes: cut, known, found, routesKnown: instead !== undefined };
}

/**
 * The listeners without their routes; undefined unless each listener has the same routes as before. Creates no views of
 * the bytes: a busy node would need a hundred per heartbeat.
 */
function withoutKnownRoutes(block: Uint8Array, before: Uint8Array): Uint8Array | undefined {
  const [now, then] = [bufferOf(block), bufferOf(before)];
  const [reader, known] = [new BinaryReader(block), new BinaryReader(before)];
  const [listener, earlier] = [{ ...nowhere }, { ...nowhere }];
  const made = Buffer.allocUnsafe(block.length);
  let length = 0;
  try {
    while (reader.pos < block.length && known.pos < before.length) {
      readListener(reader, listener);
      readListener(known, earlier);
      const { from, routesFrom, routesTo, to } = listener;
      if (now.compare(then, earlier.routesFrom, earlier.routesTo, routesFrom, routesTo) !== 0) return undefined;
      length = writeHead(made, length, to - from - (routesTo - routesFrom));
      length += now.copy(made, length, from, routesFrom);
      length += now.copy(made, length, routesTo, to);
    }
  } catch {
    return undefined;
  }
  return reader.pos === block.length && known.pos === before.length ? made.subarray(0, length) : undefined;
}

const bufferOf = ({ buffer, byteOffset, byteLength }: Uint8Array): Buffer =>
  Buffer.from(buffer, byteOffset, byteLength);

/** The location of a listener in a table, and of its routes inside it. */
const nowhere = { from: 0, routesFrom: 0, routesTo: 0, to: 0 };

/** @throws Error unless its routes are contiguous */
function readListener(reader: BinaryReader, into: typeof nowhere): void {
  reader.tag();
  const length = reader.uint32();
  into.from = reader.pos;
  into.to = reader.pos + length;
  into.routesFrom = into.routesTo = into.to;
  while (reader.pos < into.to) {
    const at = reader.pos;
    const [field, wireType] = reader.tag();
    if (wireType === WireType.LengthDelimited) reader.skip(wireType);
    else if (!passOver(reader, wireType)) throw new Error('a group');
    if (field !== routesField) continue;
    if (into.routesTo !== into.to && into.routesTo !== at) throw new Error('routes apart');
    if (into.routesTo === into.to) into.routesFrom = at;
    into.routesTo = reader.pos;
  }
}

/** The tag and length of a listener. @returns the offset after it */
function writeHead(into: Buffer, offset: number, length: number): number {
  let at = into.writeUInt8((tableFields.listeners << 3) | WireType.LengthDelimited, offset);
  let rest = length;
  for (; rest > 0x7f; rest >>>= 7) at = into.writeUInt8((rest & 0x7f) | 0x80, at);
  return into.writeUInt8(rest, at);
}

/** The locations of a heartbeat's tables; undefined for any other payload, and for one that no usual encoder writes. */
function rangesOf(bytes: Uint8Array): ({ readonly [T in TableName]: Range } & { readonly content: Range }) | undefined {
  const reader = new BinaryReader(bytes);
  const ranges: { [T in TableName]: Range } = { links: [0, 0], listeners: [0, 0] };
  try {
    const [number, type] = reader.tag();
    if (number !== heartbeatField || type !== WireType.LengthDelimited) return undefined;
    const length = reader.uint32();
    const content: Range = [reader.pos, bytes.length];
    if (reader.pos + length !== bytes.length) return undefined;
    while (reader.pos < bytes.length) {
      const from = reader.pos;
      const [field, wireType] = reader.tag();
      if (wireType === WireType.LengthDelimited) reader.skip(wireType);
      else if (!passOver(reader, wireType)) return undefined;
      const name = field === tableFields.links ? 'links' : field === tableFields.listeners ? 'listeners' : undefined;
      if (name === undefined) continue;
      const [first, end] = ranges[name];
      if (end !== 0 && end !== from) return undefined;
      ranges[name] = [end === 0 ? from : first, reader.pos];
    }
    return reader.pos === bytes.length ? { ...ranges, content } : undefined;
  } catch {
    return undefined;
  }
}

function without(bytes: Uint8Array, [from, to]: Range, pieces: readonly Piece[]): Uint8Array {
  const kept: Uint8Array[] = [];
  let at = from;
  for (const { range, instead } of pieces.toSorted((a, b) => a.range[0] - b.range[0])) {
    kept.push(bytes.subarray(at, range[0]));
    if (instead !== undefined) kept.push(instead);
    at = range[1];
  }
  kept.push(bytes.subarray(at, to));
  return new BinaryWriter().tag(heartbeatField, WireType.LengthDelimited).bytes(Buffer.concat(kept)).finish();
}

/** The tables of a parsed heartbeat, with the parts that were cut out. @param before those of the previous heartbeat */
export function tablesOf(
  { linkMetrics, runtimeListeners }: HeartbeatRequest,
  { known, found, routesKnown }: Cut,
  before: KnownTables,
): KnownTables {
  const routes = runtimeListeners.reduce((sum, listener) => sum + listener.routes.length, 0);
  const entries = routesKnown ? before.listeners.entries : runtimeListeners.length + routes;
  return {
    links: known.links ?? { bytes: wireOf(found.links, { linkMetrics }), entries: linkMetrics.length },
    listeners: known.listeners ?? { bytes: wireOf(found.listeners, { runtimeListeners }), entries, routesKnown },
  };
}

/** A view of the payload if that is hardly larger, otherwise a copy in its own buffer. */
function wireOf(
  block: Uint8Array | undefined,
  list: Partial<Pick<HeartbeatRequest, 'linkMetrics' | 'runtimeListeners'>>,
): Uint8Array {
  if (block === undefined) return HeartbeatRequest.encode({ ...HeartbeatRequest.create(), ...list }).finish();
  return block.length * viewFactor >= block.buffer.byteLength ? block : new Uint8Array(block);
}
