/**
 * Which audit entry (a command) reverts which: folded from event metadata, so that every instance decides alike.
 * Implements `docs/contract/domain.md#audit-and-revert`.
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
 * The active revert of an entry, or undefined. A revert that was reverted is not active, so the entry can be reverted
 * again.
 */
export function activeRevert(reverts: Pick<RevertTable, 'get'>, entryId: string): string | undefined {
  const newest = reverts.get(entryId);
  let isActive = false;
  for (let by = newest; by !== undefined; by = reverts.get(by)) isActive = !isActive;
  return isActive ? newest : undefined;
}

/** The same as a `Refusal`, which cannot be imported here: its folder imports this one. */
interface Conflict {
  readonly code: 'conflict';
  readonly message: string;
}

/** The refusal of an entry that can never be reverted. @param because the reason in its audit */
export function notRevertible(because: string): Conflict {
  return { code: 'conflict', message: `the entry cannot be reverted: ${because}` };
}

/** The refusal of an entry with an active revert. */
export function alreadyReverted(reverts: Pick<RevertTable, 'get'>, entryId: string): Conflict | undefined {
  const by = activeRevert(reverts, entryId);
  if (by === undefined) return undefined;
  return { code: 'conflict', message: `the entry was reverted by the entry ${by}; revert that one instead` };
}
