/**
 * Encodes the fleet as a checkpoint, and restores it, so that a start need not replay the whole log. Indexes are derived
 * again. Implements `docs/contract/domain.md#commands-and-events`, fold checkpoint.
 */
import { canonicalJson } from '../../kernel/json.js';
import { putKey, type AcceptedKey } from '../aggregate/idempotency.js';
import type { Cell, Table } from '../aggregate/containers.js';
import type { ChainHead } from '../log-chain/links.js';
import { putResource } from './put-resource.js';
import { emptyFleet, type Fleet } from './fleet.js';
import { resources, resourceTypes, singletons, singletonTypes, type AnyState, type ResourceType } from './resources.js';

/** Raise it when the fold's state or meaning changes. Older checkpoints are then ignored and the log is replayed. */
export const foldVersion = 14;

interface Head {
  readonly revision: number;
  readonly position: number;
  readonly log_chain: ChainHead;
  readonly deleted_version: number;
  /** The singletons. */
  readonly [type: string]: unknown;
}

/** A row of a table. The first entry names the table: the type of a resource, `key`, or one of `otherTables`. */
type Row = readonly [table: string, id: string, value: unknown];

/** The fold's values at one moment. They are immutable, so the fold can continue meanwhile. */
export interface FleetCapture {
  readonly head: Head;
  readonly rows: readonly Row[];
}

const otherTables = ({ touched, reverts, left, needs }: Fleet): { readonly [name: string]: Table<unknown> } => ({
  touched,
  revert: reverts,
  left,
  need: needs,
});

/** Cheap enough for the hot path. */
export function captureFleet(fleet: Fleet): FleetCapture {
  const values = singletonTypes.map((type) => [type, fleet.singletons[type].value]);
  const rows = (table: string, entries: Iterable<[string, unknown]>): Row[] =>
    [...entries].map(([id, value]): Row => [table, id, value]).sort((a, b) => (a[1] < b[1] ? -1 : 1));
  return {
    head: {
      ...Object.fromEntries(values),
      revision: fleet.revision.value,
      position: fleet.position.value,
      deleted_version: fleet.deletedVersion.value,
      log_chain: fleet.logChain.value,
    },
    rows: [
      ...resourceTypes.flatMap((type) => rows(type, fleet.tables[type].entries())),
      ...rows('key', fleet.idempotency.keys.entries()),
      ...Object.entries(otherTables(fleet)).flatMap(([name, table]) => rows(name, table.entries())),
    ],
  };
}

const linesPerSlice = 500;

/** The bytes of a capture, in slices. Equal fleets give equal bytes. */
export function* encodeFleet({ head, rows }: FleetCapture): Generator<Uint8Array> {
  const encoder = new TextEncoder();
  yield encoder.encode(`${canonicalJson(['head', head])}\n`);
  for (let from = 0; from < rows.length; from += linesPerSlice) {
    const slice = rows.slice(from, from + linesPerSlice);
    yield encoder.encode(slice.map((row) => `${canonicalJson(row)}\n`).join(''));
  }
}

/** The fleet of a checkpoint. @throws Error when the bytes are not a checkpoint of this fold version */
export function restoreFleet(bytes: Uint8Array): Fleet {
  const fleet = emptyFleet();
  const others = otherTables(fleet);
  const text = new TextDecoder().decode(bytes);
  for (let from = 0; from < text.length;) {
    const end = text.indexOf('\n', from);
    const line = JSON.parse(text.slice(from, end === -1 ? undefined : end)) as readonly ['head', Head] | Row;
    if (isHead(line)) restoreHead(fleet, line[1]);
    else restoreRow(fleet, others, line);
    from = end === -1 ? text.length : end + 1;
  }
  return fleet;
}

function isHead(line: readonly ['head', Head] | Row): line is readonly ['head', Head] {
  return line[0] === 'head';
}

function restoreHead(fleet: Fleet, head: Head): void {
  fleet.revision.set(head.revision);
  fleet.position.set(head.position);
  fleet.logChain.set(head.log_chain);
  fleet.deletedVersion.set(head.deleted_version);
  for (const type of singletonTypes)
    (fleet.singletons[type] as Cell<unknown>).set(head[type] ?? singletons[type].initial);
}

function restoreRow(fleet: Fleet, others: ReturnType<typeof otherTables>, [name, id, value]: Row): void {
  const table = Object.hasOwn(others, name) ? others[name] : undefined;
  if (Object.hasOwn(resources, name)) putResource(fleet, name as ResourceType, id, value as AnyState);
  else if (name === 'key') putKey(fleet.idempotency, id, value as AcceptedKey);
  else if (table !== undefined) table.set(id, value);
  else throw new Error(`unknown line in a fold checkpoint: ${JSON.stringify([name, id, value])}`);
}
