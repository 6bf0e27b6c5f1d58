/**
 * The names of resources at the time of a command, which most events do not contain. The follower has them in memory; readers
 * behind it ask the read models. Implements `docs/contract/automation.md#event-feed`, "names are those of that time".
 */
import type { Accounts } from '../domain/accounts/accounts.js';
import { apiTokenType, userType } from '../domain/accounts/declaration.js';
import { namedBy } from '../domain/audit/describe.js';
import type { Fleet } from '../domain/fleet/fleet.js';
import { resourceTypes } from '../domain/fleet/resources.js';
import { readCommand } from '../domain/log/upcast.js';
import { ServiceError } from '../kernel/errors.js';
import { lastEvent, streams, type RecordedCommand } from '../kernel/event.js';
import { createLru } from '../kernel/lru.js';
import { getOrMake } from '../kernel/maps.js';
import type { NameLookup, Projections } from '../projections/port.js';
import { tuning } from './tuning.js';

type NameOf = (lookup: NameLookup) => string | null;

export interface Names {
  /**
   * @param commands that show the names, in their current shape
   * @throws ServiceError `unavailable` while the read models are behind
   */
  of(lookups: readonly NameLookup[], commands: readonly RecordedCommand[]): Promise<NameOf>;
}

interface Named {
  readonly type: string;
  readonly id: string;
  readonly name: string;
}

/** All names in a fold of this instance, as of a revision of its stream. */
export interface CommittedNames {
  readonly stream: string;
  readonly revision: number;
  readonly names: Iterable<Named>;
}

export function fleetNames({ revision, tables }: Pick<Fleet, 'revision' | 'tables'>): CommittedNames {
  const names = resourceTypes.flatMap((type) => {
    const all = [...tables[type].values()];
    // Parts of a node have no name.
    return all.flatMap(({ id, name }) => (typeof name === 'string' ? [{ type, id, name }] : []));
  });
  return { stream: streams.fleet, revision: revision.value, names };
}

export function accountNames({ revision, users, apiTokens }: Accounts): CommittedNames {
  const names = [
    ...[...users.values()].map(({ id, username: name }) => ({ type: userType, id, name })),
    ...[...apiTokens.byId.values()].map(({ id, name }) => ({ type: apiTokenType, id, name })),
  ];
  return { stream: streams.accounts, revision: revision.value, names };
}

/** Names from the read models, for commands of any time in any order. */
export function storedNames(projections: Pick<Projections, 'names' | 'reached'>): Names {
  return {
    async of(lookups) {
      if (lookups.length === 0) return () => null;
      const newest = lookups.reduce((most, { position }) => Math.max(most, position), 0);
      if (!(await projections.reached(newest, tuning.namesWaitMs))) {
        throw new ServiceError('unavailable', 'the read models, which know the names, are behind the log');
      }
      return projections.names(lookups);
    },
  };
}

export interface FollowedNames extends Names {
  /** Learns the names that commands give; later questions must be about later commands. @throws UnknownEventError */
  learn(commands: readonly RecordedCommand[]): void;
}

/**
 * Names for a follower, which asks about each command once, in the log's order. Starts with the committed names, learns from
 * commands, and asks the read models, which may be away, for the rest.
 */
export function followedNames(stored: Names, committed: readonly CommittedNames[]): FollowedNames {
  const known = createLru<string>(tuning.names);
  for (const { names } of committed) for (const { type, id, name } of names) known.set(keyOf(type, id), name);
  const keep = (given: ReturnType<typeof namesGiven>): void => {
    for (const [key, names] of given) known.set(key, names.at(-1)?.name ?? '');
  };
  return {
    learn: (commands) => keep(namesGiven(commands.map(readCommand))),
    async of(lookups, commands) {
      const given = namesGiven(commands);
      const givenTo = ({ type, id, position }: NameLookup): string | undefined =>
        given.get(keyOf(type, id))?.findLast((one) => one.position <= position)?.name;
      const before = new Map<string, string | null>();
      const missing: NameLookup[] = [];
      for (const lookup of lookups) {
        const key = keyOf(lookup.type, lookup.id);
        const name = known.get(key);
        if (name !== undefined) before.set(key, name);
        else if (givenTo(lookup) === undefined) missing.push(lookup);
      }
      if (missing.length > 0) {
        const nameOf = await stored.of(missing, commands);
        for (const lookup of missing) before.set(keyOf(lookup.type, lookup.id), nameOf(lookup));
      }
      for (const [key, name] of before) if (name !== null) known.set(key, name);
      keep(given);
      return (lookup) => givenTo(lookup) ?? before.get(keyOf(lookup.type, lookup.id)) ?? null;
    },
  };
}

interface Given {
  readonly position: number;
  readonly name: string;
}

const keyOf = (type: string, id: string): string => `${type}/${id}`;

/** The names given by commands, oldest first, by type and id. */
function namesGiven(commands: readonly RecordedCommand[]): ReadonlyMap<string, readonly Given[]> {
  const given = new Map<string, Given[]>();
  for (const command of commands) {
    const { position } = lastEvent(command);
    for (const event of command.events) {
      const named = namedBy(event);
      if (named === undefined) continue;
      getOrMake(given, keyOf(named.type, named.id), () => []).push({ position, name: named.name });
    }
  }
  return given;
}
