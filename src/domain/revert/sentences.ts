/** The sentences of refused reverts, which name what is in the way and the entries that put it there. */
import type { Json } from '../../kernel/json.js';
import type { EntryAbout, History } from './history.js';

const listed = 10;
const fieldsListed = 50;
/** Of one value. */
const shownChars = 200;

/** Entries with their actions; after the first ten only their number. */
export function entries(all: readonly EntryAbout[]): string {
  const named = all.slice(0, listed).map(({ action, id }) => `${action} by the entry ${id}`);
  const more = all.length > listed ? [`${all.length - listed} more`] : [];
  return [...named, ...more].join(', ');
}

/** The resource of an entry is no longer there. */
export function gone({ type, id }: { readonly type: string; readonly id: string }, { deletedBy }: History): string {
  return `the ${type} ${id} is gone${deletedBy === undefined ? '' : `: ${entries([deletedBy])}`}`;
}

export interface FieldConflict {
  readonly field: string;
  readonly now: Json;
  readonly wanted: Json;
}

/** Fields that no longer have the value that the entry set. */
export function fieldConflicts(conflicts: readonly FieldConflict[], { changedBy }: History): string {
  const sentences = conflicts.slice(0, fieldsListed).map(({ field, now, wanted }) => {
    const by = changedBy.get(field);
    const since = by === undefined ? 'changed since' : `changed since by the entry ${by}`;
    return `${field}: is now ${shown(now)}, the revert would set ${shown(wanted)}; ${since}`;
  });
  const more = conflicts.length > fieldsListed ? [`${conflicts.length - fieldsListed} more fields`] : [];
  return [...sentences, ...more].join('. ');
}

function shown(value: Json): string {
  const text = JSON.stringify(value);
  return text.length > shownChars ? `${text.slice(0, shownChars)}…` : text;
}
