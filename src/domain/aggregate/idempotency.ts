/**
 * Idempotency keys of the last 24 hours, folded from event metadata, so that every instance recognises a repeat, also after
 * a restart. Implements `docs/contract/rest.md#consistency`, `Idempotency-Key`.
 */
import type { RecordedEvent } from '../../kernel/event.js';
import { limits } from '../../kernel/limits.js';
import type { Index, Journal, Table } from './journal.js';
import { createIndex, createTable } from './journal.js';

export interface AcceptedKey {
  readonly body_hash: string;
  readonly command_id: string;
  readonly resource_id: string;
  readonly revision: number;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

export interface IdempotencyTable {
  readonly keys: Table<AcceptedKey>;
  /** Hour → keys, so that every fold drops the same old keys. */
  readonly hours: Index;
}

const hourMs = 3_600_000;
const keptHours = limits.rest.idempotencyWindowMs / hourMs;

export function createIdempotencyTable(journal: Journal): IdempotencyTable {
  return { keys: createTable(journal), hours: createIndex(journal) };
}

const hourOf = (at: number): number => Math.floor(at / hourMs);

export function putKey(table: IdempotencyTable, keyHash: string, accepted: AcceptedKey): void {
  // An expired key may be used again before its old hour is dropped: it must not be dropped with that hour.
  const earlier = table.keys.get(keyHash);
  if (earlier !== undefined) table.hours.remove(String(hourOf(earlier.at)), keyHash);
  table.keys.set(keyHash, accepted);
  table.hours.add(String(hourOf(accepted.at)), keyHash);
}

/** Remembers the key of a command's event, and drops the hours that are out of the window. */
export function rememberKey(table: IdempotencyTable, event: RecordedEvent, resourceId: string): void {
  const mark = event.metadata.idempotency;
  if (mark === undefined) return;
  const at = Date.parse(event.metadata.occurred_at);
  const oldest = hourOf(at) - keptHours - 1;
  for (const [hour, keys] of table.hours.entries()) {
    if (Number(hour) >= oldest) continue;
    for (const key of keys) {
      table.hours.remove(hour, key);
      table.keys.delete(key);
    }
  }
  putKey(table, mark.key_hash, {
    body_hash: mark.body_hash,
    command_id: event.metadata.command.id,
    resource_id: resourceId,
    revision: event.revision,
    at,
  });
}

/** The command that used a key within the last 24 hours before `now` (milliseconds). */
export function acceptedKey(table: IdempotencyTable, keyHash: string, now: number): AcceptedKey | undefined {
  const accepted = table.keys.get(keyHash);
  return accepted !== undefined && now - accepted.at < limits.rest.idempotencyWindowMs ? accepted : undefined;
}
