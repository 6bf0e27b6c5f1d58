/**
 * The table of a node's listeners in two: its shape, all but the counters, which stays as long as the node runs the same, and
 * the counters, which nearly every heartbeat moves. A shape is known by the hash of its bytes, and kept deflated, once for all
 * nodes that have it; what is asked often of it is read once. How rows are counted on is in `counted-rows.ts`.
 */
import { hash } from 'node:crypto';
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { HeartbeatRequest } from '../gen/svc/control/v1/heartbeat.js';
import type { RuntimeListener } from '../gen/svc/control/v1/heartbeat.js';
import { addUp, countersIn, listenerCounters, wholeNumber } from './counted-rows.js';
import type { CountedRows } from './counted-rows.js';
import { inShort } from './listener-states.js';
import type { ListenersInShort } from './listener-states.js';

export interface ListenerShape {
  /** Of the bytes of a `HeartbeatRequest` with listeners that have no counters. */
  readonly id: string;
  /** The same bytes, deflated. */
  readonly packed: Uint8Array;
  /** Undefined of one that was read from the store, until somebody asks. */
  out: ShapeInShort | undefined;
}

interface ShapeInShort extends ListenersInShort {
  /** Of the rows, see `listenerKey`. */
  readonly keys: readonly string[];
  /** Whether no two rows have one key. */
  readonly isDistinct: boolean;
  /** Listeners and routes. */
  readonly entries: number;
}

export interface ListenerTable {
  readonly shape: ListenerShape;
  /**
   * The `listenerCounters` of each row, then the active sessions of each; NaN where the agent did not report one. Not a typed
   * array: the memory of one lies outside of the heap, which costs more than these numbers.
   */
  readonly values: readonly number[];
}

/** Those that somebody has. */
const shapes = new Map<string, WeakRef<ListenerShape>>();
const unused = new FinalizationRegistry<string>((id) => {
  if (shapeOf(id) === undefined) shapes.delete(id);
});

export const shapeIdOf = (wire: Uint8Array): string => hash('sha256', wire, 'base64url');

/** One that some node has; undefined if none does. */
export const shapeOf = (id: string): ListenerShape | undefined => shapes.get(id)?.deref();

/** @param packed deflated bytes of that id, found valid when they came */
export function sharedShape(id: string, packed: () => Uint8Array, out?: ShapeInShort): ListenerShape {
  const known = shapeOf(id);
  if (known !== undefined) return known;
  const shape = { id, packed: packed(), out };
  shapes.set(id, new WeakRef(shape));
  unused.register(shape, id);
  return shape;
}

/** @param wire the listeners without counters, found valid, as `HeartbeatRequest` @param listeners the same, read */
export function shapeOfWire(wire: Uint8Array, listeners: readonly RuntimeListener[]): ListenerShape {
  // A copy: what comes deflated is a view of 16 KiB. More than the lowest level takes longer, and saves hardly anything.
  const packed = (): Uint8Array => new Uint8Array(deflateRawSync(wire, { level: 1 }));
  return sharedShape(shapeIdOf(wire), packed, shapeInShort(listeners));
}

/** A table from its rows, whatever their bytes were. */
export function tableOfListeners(listeners: readonly RuntimeListener[]): ListenerTable {
  const bare = listeners.map((listener) => ({ ...listener, ...noCounters }));
  const wire = HeartbeatRequest.encode({ ...HeartbeatRequest.create(), runtimeListeners: bare }).finish();
  const values = listeners.flatMap((one) => [one.bytesIn, one.bytesOut, one.totalSessions, one.errorSessions]);
  const all = [...values, ...listeners.map(({ activeSessions }) => activeSessions)];
  return {
    shape: shapeOfWire(wire, listeners),
    values: all.map((value) => (value === undefined ? Number.NaN : wholeNumber(value))),
  };
}

const noCounters = {
  bytesIn: undefined,
  bytesOut: undefined,
  activeSessions: undefined,
  totalSessions: undefined,
  errorSessions: undefined,
};

/** The rows of a shape, without counters. */
export const listenersOf = ({ packed }: ListenerShape): readonly RuntimeListener[] =>
  HeartbeatRequest.decode(new Uint8Array(inflateRawSync(packed))).runtimeListeners;

export const outOf = (shape: ListenerShape): ShapeInShort => (shape.out ??= shapeInShort(listenersOf(shape)));

function shapeInShort(listeners: readonly RuntimeListener[]): ShapeInShort {
  const keys = listeners.map(listenerKey);
  const entries = listeners.reduce((sum, { routes }) => sum + 1 + routes.length, 0);
  return { keys, isDistinct: new Set(keys).size === keys.length, entries, ...inShort(listeners) };
}

/** Joined: a template would keep its parts in memory too. */
const listenerKey = ({ transport, listenAddr, listenPort }: RuntimeListener): string =>
  [transport, listenAddr, listenPort].join('/');

export function countedOf({ shape, values }: ListenerTable): CountedRows {
  const { keys, isDistinct } = outOf(shape);
  return isDistinct ? { keys, values } : addUp(listenerCounters.length, keys, values);
}

/** The table with the counters that its rows had before, and none where a row is new. */
export function withCountersOf(before: CountedRows, table: ListenerTable): ListenerTable {
  const known = countersIn(before, listenerCounters.length);
  const counters = outOf(table.shape).keys.flatMap((key) => known(key) ?? listenerCounters.map(() => Number.NaN));
  return { shape: table.shape, values: [...counters, ...activeSessions(table)] };
}

export const isSameTable = (a: ListenerTable, b: ListenerTable): boolean =>
  a === b || (a.shape.id === b.shape.id && hasValues(a, b.values));

/** Whether the values of a table of the same shape are these. */
export function hasValues({ values }: ListenerTable, others: readonly number[]): boolean {
  for (let at = 0; at < values.length; at += 1) if (!Object.is(values[at], others[at])) return false;
  return true;
}

/** Of each row; NaN where the agent did not report them. */
export const activeSessions = ({ values }: ListenerTable): readonly number[] =>
  values.slice((values.length / (listenerCounters.length + 1)) * listenerCounters.length);
