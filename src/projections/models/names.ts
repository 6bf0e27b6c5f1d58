/**
 * Read model of names: what each resource was called from which log position on, kept after its delete. The audit shows
 * an entry with the name that its resource had at that time, which most events do not tell.
 * Implements `docs/contract/rest.md#audit` (`resource.name` is the name at that time).
 */
import { namedBy } from '../../domain/audit/names.js';
import { lastEvent } from '../../kernel/event.js';
import type { Collection } from '../../storage/read-store.js';
import type { ReadModel } from '../read-model.js';
import { tuning } from '../tuning.js';

/** Oldest first. */
type Names = readonly { readonly position: number; readonly name: string }[];

export type NameFields = { readonly names: Names };

const keyOf = (type: string, id: string): string => `${type}/${id}`;

export const names: ReadModel<NameFields> = {
  name: 'resource_names',
  indexes: [],

  keys(event) {
    const named = namedBy(event);
    return named === undefined ? [] : [keyOf(named.type, named.id)];
  },

  evolve(fields, event, command) {
    const named = namedBy(event);
    const known = fields?.names ?? [];
    if (named === undefined || known.at(-1)?.name === named.name) return fields;
    const next = [...known, { position: lastEvent(command).position, name: named.name }];
    return { names: next.slice(-tuning.namesPerResource) };
  },
};

export interface NameAsked {
  readonly type: string;
  readonly id: string;
  /** Log position of the command that the name is asked for. */
  readonly position: number;
}

/** Looks many names up at once. Answers a function that tells the name, null when none is known. */
export async function namesAt(
  collection: Collection<NameFields>,
  asked: readonly NameAsked[],
): Promise<(one: NameAsked) => string | null> {
  const keys = [...new Set(asked.map(({ type, id }) => keyOf(type, id)))];
  const found = keys.length === 0 ? [] : await collection.getMany(keys);
  const byKey = new Map(found.map(({ id, fields }) => [id, fields.names]));
  return ({ type, id, position }) => {
    const known = byKey.get(keyOf(type, id)) ?? [];
    return known.findLast((name) => name.position <= position)?.name ?? null;
  };
}
