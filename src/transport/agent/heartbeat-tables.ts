/**
 * The tables of a heartbeat as bytes. Most come as the heartbeat before had them: such a one is recognised by its bytes and cut
 * out before anything is decoded. `agent-payload.ts` reads what is left, with the generated decoder. Serves
 * `docs/contract/agent-protocol.md#heartbeats-commands-metrics`.
 */
import { BinaryReader, BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import { HeartbeatRequest } from '../../gen/svc/control/v1/heartbeat.js';
import { passOver } from './wire-scan.js';

/** Fields of `AgentPayload` and of `HeartbeatRequest`. */
const heartbeatField = 2;
const tableFields = { links: 7, listeners: 8 } as const;
type TableName = keyof typeof tableFields;

/** A table that was read, and found valid. */
export interface KnownTable {
  /** The fields of a `HeartbeatRequest` that are the list, in a buffer of their own. */
  readonly bytes: Uint8Array;
  /** Its list entries, those inside of them included. */
  readonly entries: number;
}
export type KnownTables = { readonly [T in TableName]: KnownTable };

const emptyTable: KnownTable = { bytes: new Uint8Array(), entries: 0 };
export const noTables: KnownTables = { links: emptyTable, listeners: emptyTable };

interface Cut {
  /** The payload without the tables that are known. */
  readonly bytes: Uint8Array;
  /** Those tables. */
  readonly known: Partial<KnownTables>;
  /** The others, as they are inside the payload. */
  readonly found: { readonly [T in TableName]?: Uint8Array };
}

type Range = readonly [from: number, to: number];

/** Cuts known tables out of the bytes of an `AgentPayload`. */
export function cutKnownTables(bytes: Uint8Array, tables: KnownTables): Cut {
  const ranges = rangesOf(bytes);
  if (ranges === undefined) return { bytes, known: {}, found: {} };
  const known: { -readonly [T in TableName]?: KnownTable } = {};
  const found: { [T in TableName]?: Uint8Array } = {};
  const cuts: Range[] = [];
  for (const name of ['links', 'listeners'] as const) {
    const range = ranges[name];
    const block = bytes.subarray(...range);
    if (Buffer.compare(block, tables[name].bytes) !== 0) found[name] = block;
    else {
      known[name] = tables[name];
      if (block.length > 0) cuts.push(range);
    }
  }
  return { bytes: cuts.length === 0 ? bytes : without(bytes, ranges.content, cuts), known, found };
}

/** Where the tables of a heartbeat are; undefined for any other payload, and for one that no usual encoder makes. */
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

function without(bytes: Uint8Array, [from, to]: Range, cuts: readonly Range[]): Uint8Array {
  const kept: Uint8Array[] = [];
  let at = from;
  for (const [first, end] of cuts.toSorted(([a], [b]) => a - b)) {
    kept.push(bytes.subarray(at, first));
    at = end;
  }
  kept.push(bytes.subarray(at, to));
  return new BinaryWriter().tag(heartbeatField, WireType.LengthDelimited).bytes(Buffer.concat(kept)).finish();
}

/** The tables of a heartbeat that was read, those that were cut out of it included. */
export function tablesOf(heartbeat: HeartbeatRequest, { known, found }: Cut): KnownTables {
  const { linkMetrics, runtimeListeners } = heartbeat;
  const routes = runtimeListeners.reduce((sum, listener) => sum + listener.routes.length, 0);
  return {
    links: known.links ?? { bytes: wireOf(found.links, { linkMetrics }), entries: linkMetrics.length },
    listeners: known.listeners ?? {
      bytes: wireOf(found.listeners, { runtimeListeners }),
      entries: runtimeListeners.length + routes,
    },
  };
}

/** In a buffer of its own: the payload's is not kept for a part of it. */
function wireOf(
  block: Uint8Array | undefined,
  list: Partial<Pick<HeartbeatRequest, 'linkMetrics' | 'runtimeListeners'>>,
): Uint8Array {
  if (block === undefined) return HeartbeatRequest.encode({ ...HeartbeatRequest.create(), ...list }).finish();
  return new Uint8Array(block);
}
