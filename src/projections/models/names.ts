/**
 * Stored read model: the names of each resource over time, kept after its delete. The audit shows entries with the
 * names of that time, which most events lack. Implements `docs/contract/rest.md#audit`, `resource.name`.
 */
import { userType } from '../../domain/accounts/declaration.js';
import { namedBy } from '../../domain/audit/describe.js';
import { lastEvent } from '../../kernel/event.js';
import type { Collection } from '../../storage/read-store.js';
import type { NameLookup } from '../port.js';
import type { ReadModel } from '../read-model.js';
import { tuning } from '../tuning.js';

/** Oldest first. */
type Names = readonly { readonly position: number; readonly name: string }[];

export type NameFields = { readonly names: Names };

/** The id of a document. */
const keyOfNames = (type: string, id: string): string => `${type}/${id}`;

export const names: ReadModel<NameFields> = {
  name: 'resource_names',

  keys(event) {
    const named = namedBy(event);
    return named === undefined ? [] : [keyOfNames(named.type, named.id)];
  },

  evolve(fields, event, command) {
    const named = namedBy(event);
    const before = fields?.names ?? [];
    if (named === undefined || before.at(-1)?.name === named.name) return fields;
    // A second event that creates the same user changes nothing.
    if (named.type === userType && before.length > 0) return fields;
    const next = [...before, { position: lastEvent(command).position, name: named.name }];
    return { names: next.slice(-tuning.namesPerResource) };
  },
};

/** Looks up many names at once. @returns a function that gives the name of a lookup, or null */
export async function namesAt(
  collection: Collection<NameFields>,
  lookups: readonly NameLookup[],
): Promise<(lookup: NameLookup) => string | null> {
  const keys = [...new Set(lookups.map(({ type, id }) => keyOfNames(type, id)))];
  const documents = keys.length === 0 ? [] : await collection.getMany(keys);
  const byKey = new Map(documents.map(({ id, fields }) => [id, fields.names]));
  return ({ type, id, position }) => {
    return (byKey.get(keyOfNames(type, id)) ?? []).findLast((name) => name.position <= position)?.name ?? null;
  };
}
