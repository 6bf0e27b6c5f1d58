/**
 * Read model of names: what each resource was called from which log position on, kept after its delete. The audit shows
 * an entry with the name that its resource had at that time, which most events do not tell.
 * Implements `docs/contract/rest.md#audit` (`resource.name` is the name at that time).
 */
import { accountEvent, fleetEvent } from '../../domain/log/upcast.js';
import { lastEvent, streams } from '../../kernel/event.js';
import type { RecordedEvent } from '../../kernel/event.js';
import type { Collection } from '../../storage/read-store.js';
import type { ReadModel } from '../read-model.js';
import { tuning } from '../tuning.js';

/** Oldest first. */
type Names = readonly { readonly position: number; readonly name: string }[];

export type NameFields = { readonly names: Names };

interface Named {
  readonly type: 'node' | 'l4_upstream' | 'l4_chain' | 'user';
  readonly id: string;
  readonly name: string;
}

const renamed = (type: Named['type'], id: string, name: unknown): Named | undefined =>
  typeof name === 'string' ? { type, id, name } : undefined;

/** The name that an event gives its resource, if it gives one. */
function namedBy(event: RecordedEvent): Named | undefined {
  if (event.stream === streams.accounts) {
    const own = accountEvent(event);
    return own.type === 'UserCreated' ? renamed('user', own.data.user_id, own.data.username) : undefined;
  }
  if (event.stream !== streams.fleet) return undefined;
  const own = fleetEvent(event);
  switch (own.type) {
    case 'NodeCreated':
      return renamed('node', own.data.node_id, own.data.name);
    case 'NodeUpdated':
      return renamed('node', own.data.node_id, own.data.changes['name']?.to);
    case 'UpstreamCreated':
      return renamed('l4_upstream', own.data.upstream_id, own.data.name);
    case 'UpstreamUpdated':
      return renamed('l4_upstream', own.data.upstream_id, own.data.changes['name']?.to);
    case 'ChainCreated':
      return renamed('l4_chain', own.data.chain_id, own.data.name);
    case 'ChainUpdated':
      return renamed('l4_chain', own.data.chain_id, own.data.changes['name']?.to);
    default:
      return undefined;
  }
}

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
