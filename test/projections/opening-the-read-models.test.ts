/** The read models in one layout: opened when the store can be reached, queried once they are filled, waited for. No store. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { emptyFleet } from '../../src/domain/fleet/fleet.js';
import { ServiceError } from '../../src/kernel/errors.js';
import { streams } from '../../src/kernel/event.js';
import { uuidFromName } from '../../src/kernel/ids.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { startGroup, type Group, type GroupOptions } from '../../src/projections/engine/group.js';
import { placeOf } from '../../src/projections/engine/layout.js';
import { groupName, groupVersion, openCollections, readModels } from '../../src/projections/read-models.js';
import type { EventStore, LogItem } from '../../src/storage/event-store.js';
import type { ReadStore } from '../../src/storage/read-store.js';
import { createChain, createNode, createUpstream, deployChain, hop, perform } from '../support/fleet.js';
import { createManualClock } from '../support/manual-clock.js';
import {
  append,
  nodeCreated,
  nodeRenamed,
  planned,
  sessionOpened,
  signedIn,
  type Planned,
} from '../support/read-side.js';
import { storesInMemory } from '../support/stores-in-memory.js';
import { eventually } from '../support/eventually.js';

const release = groupVersion;
const node = uuidFromName('a node');
const created = (name = 'one'): Planned => nodeCreated(node, name);
const renamed = (to: string): Planned => nodeRenamed(node, to);

let stores: ReturnType<typeof storesInMemory>;
let clock: ReturnType<typeof createManualClock>;
let lines: string[];
let groups: Group[];

beforeEach(() => {
  [stores, clock, lines, groups] = [storesInMemory(), createManualClock(), [], []];
  clock.advance(100_000);
});
afterEach(() => Promise.all(groups.map((group) => group.close())));

async function open(over: Partial<GroupOptions> = {}): Promise<Group> {
  const note =
    (level: string) =>
    (fields: object, message: string): void =>
      void lines.push(`${level} ${message} ${JSON.stringify(fields)}`);
  const group = await startGroup({
    eventStore: stores.eventStore,
    readStore: stores.readStore,
    logger: { ...silentLogger, info: note('info'), warn: note('warn') },
    release,
    models: readModels,
    deletionTime: (newest) => newest,
    ...over,
  });
  groups.push(group);
  return group;
}
const caughtUp = (group: Group) => eventually(() => group.status().caughtUp).toBe(true);
const refusalOf = (group: Group): string => {
  try {
    group.queries();
    return 'none';
  } catch (error) {
    return error instanceof ServiceError ? error.code : String(error);
  }
};

/** The store, with its answers held back or refused for as long as the test wants. */
function troubled(inner: ReadStore) {
  const trouble = { away: true };
  const store: ReadStore = {
    ...inner,
    async collection(spec) {
      if (trouble.away) throw new ServiceError('unavailable', 'the read store is away');
      return inner.collection(spec);
    },
  };
  return { trouble, store };
}
/** The log, whose subscriptions wait until the test lets them deliver. */
function held(inner: EventStore) {
  let release = (): void => undefined;
  const released = new Promise<void>((resolve) => (release = resolve));
  const store: EventStore = {
    ...inner,
    async *subscribe(options): AsyncGenerator<LogItem> {
      await released;
      yield* inner.subscribe(options) as AsyncGenerator<LogItem>;
    },
  };
  return { store, release: () => release() };
}

describe('a read store that is away at the start', () => {
  it('does not hold the start up: queries are refused, its error is told, and it is tried again', async () => {
    await append(stores.eventStore, created());
    const { trouble, store } = troubled(stores.readStore);
    const subscriptions = held(stores.eventStore);
    const group = await open({ readStore: store, eventStore: subscriptions.store });
    expect(group.status().parked).toEqual([]);
    expect([refusalOf(group), group.number(), group.status().caughtUp]).toEqual(['unavailable', undefined, false]);
    expect(group.status().lastError).toContain('the read store is away');
    expect(lines).toEqual([expect.stringMatching(/^warn the read models cannot be opened yet .*"tries":0/)]);
    await eventually(() => lines[1]).toMatch(/"tries":1}/);
    trouble.away = false;
    await eventually(() => group.status().lastError).toBeNull();
    expect(group.status().caughtUp).toBe(false);
    subscriptions.release();
    await caughtUp(group);
    expect(await group.queries().names.get(`node/${node}`)).toBeDefined();
    expect(group.number()).toBe(0);
  });

  it('is not tried again after the end', async () => {
    const { store } = troubled(stores.readStore);
    const group = await open({ readStore: store });
    await group.close();
    const tried = lines.length;
    await new Promise((resolve) => setTimeout(resolve, 250));
    expect(lines.length).toBe(tried);
  });
});

describe('queries', () => {
  it.each([undefined, release - 1])(
    'are refused until a new version has caught up, which then gets the pointer (%s)',
    async (before) => {
      if (before !== undefined) await stores.readStore.activate(groupName, before);
      await append(stores.eventStore, created());
      const { store, release: go } = held(stores.eventStore);
      const group = await open({ eventStore: store });
      expect([refusalOf(group), await stores.readStore.activeVersion(groupName)]).toEqual(['unavailable', before]);
      go();
      await caughtUp(group);
      expect([refusalOf(group), await stores.readStore.activeVersion(groupName)]).toEqual(['none', release]);
      expect(lines).toEqual([expect.stringMatching(`^info queries read .*"before":${before ?? null}`)]);
    },
  );

  it('are answered at once when the version is in use, from the position of its checkpoint', async () => {
    const { position } = await append(stores.eventStore, created());
    const first = await open();
    await caughtUp(first);
    await first.close();
    const { store, release: go } = held(stores.eventStore);
    const group = await open({ eventStore: store });
    expect([refusalOf(group), group.status().position]).toEqual(['none', position]);
    go();
    await caughtUp(group);
    // The pointer stands already.
    expect(lines.length).toBe(1);
  });

  it('read each kind of documents from its own collection', async () => {
    const chain = createChain('c', [hop('a', 8000)]);
    const log = emptyFleet();
    for (const command of [createNode('a'), createUpstream('up'), chain, deployChain('c')]) {
      const performed = perform(log, command);
      if (performed.kind !== 'written') throw new Error(performed.kind);
      await stores.eventStore.append(streams.fleet, 'any', performed.command.events);
    }
    const group = await open();
    await caughtUp(group);
    const { deployments, names, audit } = group.queries();
    const held = await Promise.all([deployments, audit, names].map((one) => one.list(undefined, 10)));
    expect(held.slice(0, 2).map((documents) => documents.length)).toEqual([1, 4]);
    expect(held[2]).not.toEqual([]);
  });

  it('of an older release are answered, and the pointer of the newer one stays', async () => {
    await stores.readStore.activate(groupName, release + 1);
    const group = await open();
    await caughtUp(group);
    expect([refusalOf(group), await stores.readStore.activeVersion(groupName)]).toEqual(['none', release + 1]);
    expect(lines).toEqual([]);
  });

  it('never show what had expired before the version was filled', async () => {
    await append(stores.eventStore, signedIn({ id: uuidFromName('ada'), name: 'ada' }));
    clock.advance(2_000 * 24 * 3_600_000);
    await append(stores.eventStore, { ...created(), at: new Date(clock.now()).toISOString() });
    const group = await open();
    await caughtUp(group);
    const shown = await group.queries().audit.list(undefined, 10);
    expect(shown.map(({ fields }) => fields.action)).toEqual(['node.create']);
  });
});

describe('an entity that an event cannot be applied to', () => {
  const fussy = readModels.map((model) =>
    model.name === 'resource_names'
      ? {
          ...model,
          evolve(...args: Parameters<typeof model.evolve>) {
            if (JSON.stringify(args[1].data).includes('poison')) throw new Error('cannot be applied');
            return model.evolve(...args);
          },
        }
      : model,
  );

  it('stops a version that is filled for the first time, and is parked in one that is in use', async () => {
    await append(stores.eventStore, created());
    await append(stores.eventStore, renamed('poison'));
    const filling = await open({ models: fussy });
    await eventually(() => filling.status().lastError).toContain('the rebuild of resource_names stopped');
    await filling.close();
    await stores.readStore.activate(groupName, release);
    const group = await open({ models: fussy });
    await caughtUp(group);
    expect(group.status().parked).toMatchObject([{ projection: 'resource_names', id: `node/${node}` }]);
  });

  it('stops a version above the one in use, and is parked in one below it', async () => {
    await append(stores.eventStore, created());
    await append(stores.eventStore, renamed('poison'));
    await stores.readStore.activate(groupName, release - 1);
    const filling = await open({ models: fussy });
    await eventually(() => filling.status().lastError).toContain('the rebuild of resource_names stopped');
    await filling.close();
    await stores.readStore.activate(groupName, release + 1);
    const older = await open({ models: fussy });
    await caughtUp(older);
    expect(older.status().parked).toHaveLength(1);
  });

  it('is parked when it comes after the version has caught up, and after a restart', async () => {
    await append(stores.eventStore, created());
    const group = await open({ models: fussy });
    await caughtUp(group);
    const { position } = await append(stores.eventStore, renamed('poison'));
    await eventually(() => group.status().parked.length).toBe(1);
    await group.close();
    const again = await open({ models: fussy });
    await append(stores.eventStore, renamed('later'));
    await caughtUp(again);
    const parked = { projection: 'resource_names', id: `node/${node}`, position, error: 'Error: cannot be applied' };
    expect(again.status().parked).toEqual([parked]);
    const { names } = again.queries();
    expect((await names.get(`node/${node}`))?.fields.names.map(({ name }) => name)).toEqual(['one']);
  });
});

describe('a layout', () => {
  it('is the one in use unless another is given, with its own checkpoint', async () => {
    await append(stores.eventStore, created());
    const layout = { number: 3, places: new Map([['resource_names', placeOf(release, 3)]]) };
    const group = await open({ layout });
    expect(group.number()).toBe(3);
    await caughtUp(group);
    await group.close();
    const at = await stores.readStore.loadCheckpoint(groupName, placeOf(release, 3));
    expect(at?.commit).toBe(await stores.eventStore.headPosition());
    expect(await stores.readStore.loadCheckpoint(groupName, release)).toBeUndefined();
    // Only this read model has moved.
    const collections = await openCollections(stores.readStore, readModels, release);
    expect(await collections.get('resource_names')?.list(undefined, 10)).toEqual([]);
    expect(await collections.get('audit')?.list(undefined, 10)).toHaveLength(1);
  });
});

describe('a caller that waits', () => {
  it('is answered when the event is applied, and false when its time is over', async () => {
    const group = await open();
    await caughtUp(group);
    const waiting = group.reached((await stores.eventStore.headPosition()) + 1, 10_000);
    const { position = 0 } = await append(stores.eventStore, created());
    expect(await waiting).toBe(true);
    expect(await group.reached(position, 0)).toBe(true);
    expect(await group.reached(position + 1, 5)).toBe(false);
  });

  it('for an event before the checkpoint is answered at once', async () => {
    await append(stores.eventStore, created());
    const first = await open();
    await caughtUp(first);
    await first.close();
    const group = await open();
    await caughtUp(group);
    expect(await group.reached(await stores.eventStore.headPosition(), 0)).toBe(true);
  });

  it('for an event that is in the log and not applied yet is answered when it is, or when the time is over', async () => {
    const { position = 0 } = await append(stores.eventStore, created());
    const { store, release: go } = held(stores.eventStore);
    const group = await open({ eventStore: store });
    expect(await group.reached(position, 30)).toBe(false);
    const waiting = group.reached(position, 5_000);
    await new Promise((resolve) => setTimeout(resolve, 20));
    go();
    expect(await waiting).toBe(true);
  });

  it('for a place that no read model uses is answered once the log is known to have nothing else', async () => {
    await append(stores.eventStore, created());
    const group = await open();
    await caughtUp(group);
    const { position = 0 } = await append(stores.eventStore, planned('elsewhere', [{ type: 'Whatever', data: {} }]));
    expect(await group.reached(position, 5_000)).toBe(true);
  });

  it('hears no more after the end', async () => {
    const group = await open();
    await caughtUp(group);
    const waiting = group.reached(1e9, 600_000);
    await group.close();
    expect(await waiting).toBe(false);
  });
});

it('the end of another log stops the group with a sentence', async () => {
  const sentences: string[] = [];
  await append(stores.eventStore, created());
  await append(stores.eventStore, sessionOpened(node));
  const group = await open();
  await caughtUp(group);
  await group.close();
  const other = storesInMemory().eventStore;
  await append(other, created('two'));
  await append(other, sessionOpened(node));
  const beside = await open({ eventStore: other, onAnotherLog: (sentence) => void sentences.push(sentence) });
  await eventually(() => sentences).toEqual([expect.stringContaining('as event')]);
  expect(beside.status().caughtUp).toBe(false);
});
