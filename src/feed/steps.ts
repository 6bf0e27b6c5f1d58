/**
 * Makes steps of the feed from commands: each item once, with the names of then, and as JSON. The names come from the read
 * models, which therefore have to hold the commands first; a follower remembers those that it has met, so that most commands
 * wait for nothing. Implements `docs/contract/automation.md#event-feed`, "names are those of that time".
 */
import { namedBy } from '../domain/audit/describe.js';
import { readCommand } from '../domain/log/upcast.js';
import { ServiceError } from '../kernel/errors.js';
import type { RecordedCommand } from '../kernel/event.js';
import { lastEvent } from '../kernel/event.js';
import { createLru } from '../kernel/lru.js';
import type { NameLookup, Projections } from '../projections/port.js';
import type { Cursors } from './cursor.js';
import { outlineOf } from './items.js';
import type { FeedItem, FeedSubject } from './port.js';
import { tuning } from './tuning.js';
import type { Step } from './window.js';

type NameOf = (lookup: NameLookup) => string | null;

export interface Names {
  /**
   * @param commands that show the names, in their current shape
   * @throws ServiceError `unavailable` while the read models do not hold the positions
   */
  of(lookups: readonly NameLookup[], commands: readonly RecordedCommand[]): Promise<NameOf>;
}

/** Names from the read models alone: for commands of any time, in any order. */
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

/** @param select which items are made; a step of another command has none @throws ServiceError `unavailable`, UnknownEventError */
export async function stepsOf(
  commands: readonly RecordedCommand[],
  { cursors, names }: { readonly cursors: Cursors; readonly names: Names },
  select: (about: FeedSubject) => boolean = () => true,
): Promise<readonly Step[]> {
  const read = commands.map(readCommand);
  const outlined = read.map((command) => {
    const outline = outlineOf(command);
    return { last: lastEvent(command), outline: outline !== null && select(outline.about) ? outline : null };
  });
  const lookups = outlined.flatMap(({ outline }) => outline?.names ?? []);
  const nameOf = await names.of(lookups, read);
  return outlined.map(({ last, outline }) => {
    const place = { position: last.position, cursor: cursors.of(last) };
    const events = last.metadata.command.count;
    if (outline === null) return { place, item: null, events };
    const { at, about } = outline;
    const content = outline.content(nameOf);
    const item: FeedItem = { ...content, ...place, at, about, json: JSON.stringify(content.data) };
    return { place, item, events };
  });
}

/**
 * Names for a follower, which asks for those of each command once and in the log's order: it remembers what it has met, and
 * asks the read models for the rest.
 */
export function rememberedNames(stored: Names): Names {
  const known = createLru<string, string>({ maxEntries: tuning.names });
  return {
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
      for (const [key, names] of given) known.set(key, names.at(-1)?.name ?? '');
      return (lookup) => givenTo(lookup) ?? before.get(keyOf(lookup.type, lookup.id)) ?? null;
    },
  };
}

interface Given {
  readonly position: number;
  readonly name: string;
}

const keyOf = (type: string, id: string): string => `${type}/${id}`;

/** The names that commands give, oldest first, by type and id. */
function namesGiven(commands: readonly RecordedCommand[]): ReadonlyMap<string, readonly Given[]> {
  const given = new Map<string, Given[]>();
  for (const command of commands) {
    const { position } = lastEvent(command);
    for (const event of command.events) {
      const named = namedBy(event);
      if (named === undefined) continue;
      const key = keyOf(named.type, named.id);
      const names = given.get(key) ?? [];
      names.push({ position, name: named.name });
      given.set(key, names);
    }
  }
  return given;
}
