/**
 * Recent idempotency keys, folded from event metadata, so that every instance recognises a repeat, even after a restart.
 * Implements `docs/contract/rest.md#consistency`, `Idempotency-Key`.
 */
import type { RecordedEvent } from '../../kernel/event.js';
import { limits } from '../../kernel/limits.js';
import { createIndex, createTable, type Index, type Table } from './containers.js';

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
/** Twice the window, so that a clock that is slightly wrong drops no key within it. */
const keptHours = (2 * limits.rest.idempotencyWindowMs) / hourMs;
/** A key is dropped once this many keys are newer by `keptHours`. */
const newerKeys = 1_000;

export function createIdempotencyTable(): IdempotencyTable {
  return { keys: createTable(), hours: createIndex() };
}

const hourOf = (at: number): number => Math.floor(at / hourMs);

export function putKey(table: IdempotencyTable, keyHash: string, accepted: AcceptedKey): void {
  // An expired key that is used again must not be dropped with its old hour.
  const earlier = table.keys.get(keyHash);
  if (earlier !== undefined) table.hours.remove(String(hourOf(earlier.at)), keyHash);
  table.keys.set(keyHash, accepted);
  table.hours.add(String(hourOf(accepted.at)), keyHash);
}

/**
 * Drops the hours outside the window. A clock that runs days ahead must not drop valid keys, so a key is dropped only
 * when many commands, and the folded one too, are later by the window: the many alone may come from a clock that was
 * set right since.
 * @param at when the folded command happened, in milliseconds since the epoch
 */
function dropOld(table: IdempotencyTable, at: number): void {
  if (table.keys.size <= newerKeys) return;
  const hours = [...table.hours.keys()].map((hour) => ({ hour: Number(hour), keys: table.hours.get(hour) }));
  let counted = 0;
  const newest = hours
    .sort((a, b) => b.hour - a.hour)
    .find(({ keys }) => {
      counted += keys.size;
      return counted >= newerKeys;
    });
  for (const { hour, keys } of hours) {
    if (newest === undefined || hour >= Math.min(newest.hour, hourOf(at)) - keptHours) continue;
    for (const key of keys) {
      table.hours.remove(String(hour), key);
      table.keys.delete(key);
    }
  }
}

/** Remembers the key of a command's event, and drops old ones. */
export function rememberKey(table: IdempotencyTable, event: RecordedEvent, resourceId: string): void {
  const mark = event.metadata.idempotency;
  if (mark === undefined) return;
  const at = Date.parse(event.metadata.occurred_at);
  putKey(table, mark.key_hash, {
    body_hash: mark.body_hash,
    command_id: event.metadata.command.id,
    resource_id: resourceId,
    revision: event.revision,
    at,
  });
  dropOld(table, at);
}

/**
 * The command that used a key within the last 24 hours.
 * @param now milliseconds since the epoch, never ahead because of one instance's clock (`src/instance/store-clocks.ts`)
 */
export function acceptedKey(table: IdempotencyTable, keyHash: string, now: number): AcceptedKey | undefined {
  const accepted = table.keys.get(keyHash);
  return accepted !== undefined && now - accepted.at < limits.rest.idempotencyWindowMs ? accepted : undefined;
}
