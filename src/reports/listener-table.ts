/**
 * The table of a node's listeners in two parts: the shape, which changes only with the configuration, and the counters, which
 * change with nearly every heartbeat. A shape is identified by the hash of its bytes, and kept deflated, once for all nodes that
 * have it, with a summary for frequent questions. `counted-rows.ts` adds up counters.
 */
import { hash } from 'node:crypto';
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { HeartbeatRequest, type RuntimeListener } from '../gen/svc/control/v1/heartbeat.js';
import { addUp, byteCount, countersIn, listenerCounters, wholeNumber, type CountedRows } from './counted-rows.js';
import { summarizeListeners, type ListenerSummary } from './listener-states.js';

export interface ListenerShape {
  /** Hash of a `HeartbeatRequest` that holds the listeners without counters. */
  readonly id: string;
  /** The same bytes, deflated. */
  readonly packed: Uint8Array;
  /** Undefined after a read from the store, until it is needed. */
  summary: ShapeSummary | undefined;
}

interface ShapeSummary extends ListenerSummary {
  /** See `reportedKey`. */
  readonly keys: readonly string[];
  /** Whether no two rows have the same key. */
  readonly isDistinct: boolean;
  /** Number of listeners and routes. */
  readonly entries: number;
}

export interface ListenerTable {
  readonly shape: ListenerShape;
  /**
   * The `listenerCounters` of each row, then the active sessions of each row; NaN if the agent did not report it. Not a typed
   * array, whose memory outside the heap would cost more than these numbers.
   */
  readonly values: readonly number[];
}

/** All shapes in use. */
const shapes = new Map<string, WeakRef<ListenerShape>>();
const unused = new FinalizationRegistry<string>((id) => {
  if (shapeOf(id) === undefined) shapes.delete(id);
});

export const shapeIdOf = (wire: Uint8Array): string => hash('sha256', wire, 'base64url');

/** A shape in use. */
export const shapeOf = (id: string): ListenerShape | undefined => shapes.get(id)?.deref();

/** @param packed its deflated bytes, which must be valid */
export function sharedShape(id: string, packed: () => Uint8Array, summary?: ShapeSummary): ListenerShape {
  const known = shapeOf(id);
  if (known !== undefined) return known;
  const shape = { id, packed: packed(), summary };
  shapes.set(id, new WeakRef(shape));
  unused.register(shape, id);
  return shape;
}

/** @param wire a valid `HeartbeatRequest` with the listeners, without counters @param listeners the same, decoded */
export function shapeOfWire(wire: Uint8Array, listeners: readonly RuntimeListener[]): ListenerShape {
  // Copied, because the result is a view of 16 KiB. Higher levels take longer and save hardly anything.
  const packed = (): Uint8Array => new Uint8Array(deflateRawSync(wire, { level: 1 }));
  return sharedShape(shapeIdOf(wire), packed, summarizeShape(listeners));
}

/** A table from decoded rows. */
export function tableOfListeners(listeners: readonly RuntimeListener[]): ListenerTable {
  const bare = listeners.map((listener) => ({ ...listener, ...noCounters }));
  const wire = HeartbeatRequest.encode({ ...HeartbeatRequest.create(), runtimeListeners: bare }).finish();
  const of = (value: bigint | undefined, read = wholeNumber): number =>
    value === undefined ? Number.NaN : read(value);
  const values = listeners.flatMap(({ bytesIn, bytesOut, totalSessions, errorSessions }) => [
    of(bytesIn, byteCount),
    of(bytesOut, byteCount),
    of(totalSessions),
    of(errorSessions),
  ]);
  return {
    shape: shapeOfWire(wire, listeners),
    values: [...values, ...listeners.map((one) => of(one.activeSessions))],
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

export const shapeSummary = (shape: ListenerShape): ShapeSummary =>
  (shape.summary ??= summarizeShape(listenersOf(shape)));

function summarizeShape(listeners: readonly RuntimeListener[]): ShapeSummary {
  const keys = listeners.map(reportedKey);
  const entries = listeners.reduce((sum, { routes }) => sum + 1 + routes.length, 0);
  return { keys, isDistinct: new Set(keys).size === keys.length, entries, ...summarizeListeners(listeners) };
}

type Addressed = Pick<RuntimeListener, 'transport' | 'listenAddr' | 'listenPort'>;

/** The key of a row. Joined, because a template string would keep its parts in memory too. */
export const reportedKey = ({ transport, listenAddr, listenPort }: Addressed): string =>
  [transport, listenAddr, listenPort].join('/');

export function countedOf({ shape, values }: ListenerTable): CountedRows {
  const { keys, isDistinct } = shapeSummary(shape);
  return isDistinct ? { keys, values } : addUp(listenerCounters.length, keys, values);
}

/** The table with the previous counters of its rows; a new row has none. */
export function withCountersOf(before: CountedRows, table: ListenerTable): ListenerTable {
  const known = countersIn(before, listenerCounters.length);
  const counters = shapeSummary(table.shape).keys.flatMap(
    (key) => known(key) ?? listenerCounters.map(() => Number.NaN),
  );
  return { shape: table.shape, values: [...counters, ...activeSessions(table)] };
}

export const isSameTable = (a: ListenerTable, b: ListenerTable): boolean =>
  a === b || (a.shape.id === b.shape.id && hasValues(a, b.values));

/** Whether the values of a table of the same shape are these. */
export function hasValues({ values }: ListenerTable, others: readonly number[]): boolean {
  for (let at = 0; at < values.length; at += 1) if (!Object.is(values[at], others[at])) return false;
  return true;
}

/** Of each row; NaN if the agent did not report them. */
export const activeSessions = ({ values }: ListenerTable): readonly number[] =>
  values.slice((values.length / (listenerCounters.length + 1)) * listenerCounters.length);
