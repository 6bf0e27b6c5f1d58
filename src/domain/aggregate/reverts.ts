/**
 * Which entry of the audit reverts which, folded from event metadata, so that every instance decides alike. An entry is a
 * command. Implements `docs/contract/domain.md#audit-and-revert`.
 */
import type { RecordedCommand } from '../../kernel/event.js';
import type { Table } from './journal.js';

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
