/**
 * Which entry of the audit reverts which, folded from event metadata, so that every instance decides alike. An entry is a
 * command. Implements `docs/contract/domain.md#audit-and-revert`.
 */
import type { RecordedCommand } from '../../kernel/event.js';
import type { Table } from './containers.js';

/** Entry → the newest entry that reverts it. */
export type RevertTable = Table<string>;

export function rememberRevert(reverts: RevertTable, { events: [first] }: RecordedCommand): void {
  const { command, revert_of } = first.metadata;
  if (revert_of !== undefined) reverts.set(revert_of, command.id);
}

/**
 * The revert of an entry that stands, or undefined. A revert that was itself reverted does not stand, and makes the entry
 * revertible again.
 */
export function standingRevert(reverts: Pick<RevertTable, 'get'>, entryId: string): string | undefined {
  const newest = reverts.get(entryId);
  let stands = false;
  for (let by = newest; by !== undefined; by = reverts.get(by)) stands = !stands;
  return stands ? newest : undefined;
}

/** A `Refusal`, said here without its folder, which imports this one. */
interface Conflict {
  readonly code: 'conflict';
  readonly message: string;
}

/** The refusal of an entry whose kind has no revert. @param because why, as its audit says */
export function notRevertible(because: string): Conflict {
  return { code: 'conflict', message: `the entry cannot be reverted: ${because}` };
}

/** The refusal of an entry that stands reverted. */
export function alreadyReverted(reverts: Pick<RevertTable, 'get'>, entryId: string): Conflict | undefined {
  const by = standingRevert(reverts, entryId);
  if (by === undefined) return undefined;
  return { code: 'conflict', message: `the entry was reverted by the entry ${by}; revert that one instead` };
}
