/**
 * How an entry stands in the read store: a sign of life, which is one small document, and a document for each other part
 * (`store.ts` reads and writes them).
 */
import type { Fields, StoredDocument } from '../storage/read-store.js';
import type { Beat, Entry, LastListeners, LastMetrics, Part } from './entry.js';
import { sharedShape } from './listener-table.js';
import type { PresenceFacts } from './port.js';
import { noTotals, type Counters, type ProcessTotals, type Rows } from './process-totals.js';

const valueBytes = Float64Array.BYTES_PER_ELEMENT;

type Plain<T> = { readonly [K in keyof T]: T[K] };

/** The last sign of life of a node, and its last heartbeat without the tables. */
export type BeatFields = {
  /** Who wrote it, and its place among that instance's writes. Places grow: other instances continue from the last one. */
  readonly instance: string;
  readonly place: string;
  /** Null once the session has ended. */
  readonly presence: Plain<PresenceFacts> | null;
  /** How long a sign of life counts. */
  readonly ttl_ms: number;
  /** Milliseconds since the epoch; 0 before one. */
  readonly seen_at: number;
  /** When the agent itself closed its session; 0 if it did not. */
  readonly closed_at: number;
  readonly beat: Plain<Beat> | null;
  /** See `Entry.written`. */
  readonly written: Plain<Entry['written']>;
};
export type StoredBeat = StoredDocument<BeatFields>;

type TotalsFields = {
  readonly process_id: string;
  readonly before: { readonly [row: string]: Counters };
  readonly absent: { readonly [row: string]: Counters };
  readonly gone: Counters;
};
type LinksFields = TotalsFields & { readonly wire: Uint8Array };
/** A `ListenerTable` whose `values` are stored as 64-bit floats. */
type ListenersFields = TotalsFields & {
  readonly shape: string;
  readonly packed: Uint8Array;
  readonly values: Uint8Array;
};

type MetricsFields = Plain<LastMetrics>;

export function enterBeat(entry: Entry, fields: BeatFields): void {
  entry.seenAt = fields.seen_at;
  entry.closedAt = fields.closed_at;
  entry.offlineAfterMs = fields.ttl_ms;
  entry.beat = fields.beat ?? undefined;
  entry.written = fields.written;
}

/** The approximate size of parts, in bytes. */
export function weightOf({ listeners, links }: Entry, parts: readonly Part[]): number {
  const weight = parts.includes('links') ? (links?.wire.length ?? 0) : 0;
  if (listeners === undefined || !parts.includes('listeners')) return weight;
  return weight + listeners.table.shape.packed.length + valueBytes * listeners.table.values.length;
}

export function beatFields(entry: Entry, instance: string, place: string): BeatFields {
  const { presence, offlineAfterMs, seenAt, closedAt, beat, written } = entry;
  return {
    instance,
    place,
    presence: presence === undefined ? null : { ...presence.facts },
    ttl_ms: offlineAfterMs,
    seen_at: seenAt,
    closed_at: closedAt,
    beat: beat ?? null,
    written,
  };
}

interface Codec {
  fieldsOf(entry: Entry): Fields | undefined;
  enter(entry: Entry, fields: Fields): void;
}

/** How each part of an entry is stored. */
export const codecs: { readonly [P in Part]: Codec } = {
  listeners: {
    fieldsOf: ({ listeners }) => listeners && listenersFields(listeners),
    enter: (entry, fields) => void (entry.listeners = listenersOfFields(fields as ListenersFields)),
  },
  links: {
    fieldsOf: ({ links }) => links && { wire: links.wire, ...totalsFields(links.totals) },
    enter(entry, fields) {
      const { wire, ...totals } = fields as LinksFields;
      entry.links = { wire, totals: totalsOf(totals), summary: undefined };
    },
  },
  metrics: {
    fieldsOf: ({ metrics }) => metrics && { ...metrics },
    enter: (entry, fields) => void (entry.metrics = fields as MetricsFields),
  },
};

function listenersFields({ table: { shape, values }, totals }: LastListeners): ListenersFields {
  const numbers = new Uint8Array(Float64Array.from(values).buffer);
  return { shape: shape.id, packed: shape.packed, values: numbers, ...totalsFields(totals) };
}

function listenersOfFields({ shape, packed, values, ...totals }: ListenersFields): LastListeners {
  // Copied, because a view may not begin where numbers may.
  const numbers = [...new Float64Array(new Uint8Array(values).buffer)];
  const table = { shape: sharedShape(shape, () => new Uint8Array(packed)), values: numbers };
  return { table, totals: totalsOf(totals) };
}

function totalsFields({ processId: process_id, before, absent, gone }: ProcessTotals): TotalsFields {
  return { process_id, before: Object.fromEntries(before), absent: Object.fromEntries(absent), gone };
}

function totalsOf({ process_id: processId, before, absent, gone }: TotalsFields): ProcessTotals {
  return { processId, before: rowsOf(before), absent: rowsOf(absent), gone };
}

/** Shared by most nodes, which have none. */
function rowsOf(rows: TotalsFields['before']): Rows {
  const entries = Object.entries(rows);
  return entries.length === 0 ? noTotals.before : new Map(entries);
}
