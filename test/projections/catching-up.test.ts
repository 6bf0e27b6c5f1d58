/**
 * Read models that catch up with a long log apply it in large batches. They end with the documents that folding event
 * by event gives: over outages, hostile stores, entities that cannot be folded, and restarts.
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { streams } from '../../src/kernel/event.js';
import { uuidFromName } from '../../src/kernel/ids.js';
import { names } from '../../src/projections/models/names.js';
import type { ReadModel } from '../../src/projections/read-model.js';
import { groupName, groupVersion, readModels } from '../../src/projections/read-models.js';
import { eventually } from '../support/eventually.js';
import { hostile, hostileEventStore, hostileReadStore } from '../support/hostile.js';
import {
  append,
  configApplied,
  dump,
  nameOf,
  nodeCreated,
  nodeRenamed,
  openReadSide,
  proposedEvents,
  randomLog,
  sessionOpened,
  type Planned,
  type ReadSide,
} from '../support/read-side.js';
import { switchedReadStore } from '../support/switched-read-store.js';

let side: ReadSide;
beforeEach(async () => {
  side = await openReadSide(undefined, { inMemory: true });
});
afterEach(() => side.close());

const [first, second] = ['first', 'second'].map((name) => uuidFromName(`a node called ${name}`)) as [string, string];

/** More events than the runner holds in memory, about few entities: each of them changes in every written segment. */
function longLog(seed: number): readonly Planned[] {
  const log: Planned[] = [...randomLog(seed, 60), nodeCreated(first), nodeCreated(second)];
  for (let index = 0; index < 2600; index += 1) {
    const node = Math.floor(index / 40) % 3 === 0 ? second : first;
    if (index % 40 === 0) log.push(nodeRenamed(node, `name ${index}`));
    else if (index % 7 === 0) log.push(sessionOpened(node, `1.0.${index}`));
    else log.push(configApplied(node, index));
  }
  return [...log, ...randomLog(seed + 100, 10).filter(({ stream }) => stream !== streams.fleet)];
}

/** Appends a log; neighbours of one stream go into one append. */
async function appendAll(to: ReadSide, log: readonly Planned[]): Promise<void> {
  let group: Planned[] = [];
  for (const one of [...log, undefined]) {
    const [head] = group;
    if (head !== undefined && (one?.stream !== head.stream || group.length >= 100)) {
      const outcome = await to.stores.eventStore.append(head.stream, 'any', group.flatMap(proposedEvents));
      expect(outcome.kind).toBe('appended');
      group = [];
    }
    if (one !== undefined) group.push(one);
  }
}

/** The documents of the same log, appended in parts while the read models follow it live. */
async function followedLive(log: readonly Planned[]) {
  const other = await openReadSide(undefined, { inMemory: true });
  try {
    const projections = await other.started();
    for (let from = 0; from < log.length; from += 60) {
      await appendAll(other, log.slice(from, from + 60));
      expect(await projections.reached(await other.stores.eventStore.headPosition(), 20_000)).toBe(true);
    }
    await projections.close();
    return await dump(other.stores.readStore);
  } finally {
    await other.close();
  }
}

describe('catching up with a long log', () => {
  it('makes the documents that following it live makes', async () => {
    const log = longLog(21);
    await appendAll(side, log);
    await (await side.started()).close();
    expect(await dump(side.stores.readStore)).toEqual(await followedLive(log));
    expect((await side.stores.readStore.loadCheckpoint(groupName, groupVersion))?.commit).toBe(
      await side.stores.eventStore.headPosition(),
    );
  }, 120_000);

  it.each([31, 32])(
    'makes the same documents when two instances catch up at once over hostile stores (seed %i)',
    async (seed) => {
      const log = longLog(seed);
      await appendAll(side, log);
      const { eventStore, readStore } = side.stores;
      const calm = await side.started({ version: groupVersion + 1 });
      await calm.close();
      const how = { ...hostile, split: 0.1, dropped: 0.1 };
      const both = await Promise.all(
        [seed * 10, seed * 10 + 1].map((dice) =>
          side.start({
            eventStore: hostileEventStore(eventStore, dice, how),
            readStore: hostileReadStore(readStore, dice, how),
          }),
        ),
      );
      const head = await eventStore.headPosition();
      for (const projections of both) expect(await projections.reached(head, 60_000)).toBe(true);
      await Promise.all(both.map((projections) => projections.close()));
      expect(await dump(readStore)).toEqual(await dump(readStore, groupVersion + 1));
    },
    120_000,
  );

  it.each(['out', 'half'] as const)(
    'continues after an outage (%s) in the middle, and skips nothing',
    async (mode) => {
      await appendAll(side, longLog(41));
      const { eventStore } = side.stores;
      const readStore = switchedReadStore(side.stores.readStore);
      let items = 0;
      const projections = await side.start({
        readStore,
        eventStore: {
          ...eventStore,
          async *subscribe(options) {
            for await (const item of eventStore.subscribe(options)) {
              items += 1;
              if (items === 2) readStore.mode = mode;
              yield item;
            }
          },
        },
      });
      // Checkpoints may be refused first, which is not told.
      await eventually(() => projections.status()).toMatchObject({
        caughtUp: false,
        lastError: expect.stringContaining('switched off'),
      });
      readStore.mode = 'works';
      expect(await projections.reached(await side.stores.eventStore.headPosition(), 25_000)).toBe(true);
      await eventually(() => projections.status()).toMatchObject({ caughtUp: true, lastError: null });
      await projections.close();
      await (await side.started({ version: groupVersion + 1 })).close();
      expect(await dump(side.stores.readStore)).toEqual(await dump(side.stores.readStore, groupVersion + 1));
    },
    60_000,
  );

  it('continues from its checkpoint when it is interrupted in the middle', async () => {
    const log = longLog(51);
    await appendAll(side, log);
    const interrupted = await side.start();
    await eventually(() => interrupted.status().position).toBeGreaterThan(0);
    await interrupted.close();
    const point = await side.stores.readStore.loadCheckpoint(groupName, groupVersion);
    expect(point?.commit).toBeGreaterThan(0);
    await (await side.started()).close();
    await (await side.started({ version: groupVersion + 1 })).close();
    expect(await dump(side.stores.readStore)).toEqual(await dump(side.stores.readStore, groupVersion + 1));
  });
});

describe('an instance that followed live and has to catch up again after a drop', () => {
  it('folds on top of what it applied live', async () => {
    const { eventStore, readStore } = side.stores;
    await appendAll(side, longLog(61));
    let drops: AbortController[] = [];
    let open: Promise<void> | undefined;
    const dropping = {
      ...eventStore,
      async *subscribe(options: Parameters<typeof eventStore.subscribe>[0]) {
        const drop = new AbortController();
        drops.push(drop);
        await open;
        yield* eventStore.subscribe({ ...options, signal: AbortSignal.any([options.signal, drop.signal]) });
      },
    };
    const projections = await side.start({ eventStore: dropping });
    const reached = async (): Promise<void> =>
      expect(await projections.reached(await eventStore.headPosition(), 25_000)).toBe(true);
    await reached();
    for (let round = 0; round < 3; round += 1) {
      await eventually(() => projections.status().caughtUp).toBe(true);
      await side.append([nodeRenamed(first, `live ${round}`), configApplied(second, 5000 + round)]);
      await reached();
      let letIn = (): void => undefined;
      open = new Promise((resolve) => {
        letIn = resolve;
      });
      // All of them: a caller that waits for a position subscribes to the log too.
      for (const drop of drops) drop.abort();
      drops = [];
      await eventually(() => drops.length).toBeGreaterThan(0);
      await side.append([configApplied(first, 6000 + round), sessionOpened(second, `3.0.${round}`)]);
      letIn();
      await reached();
    }
    await projections.close();
    await (await side.started({ version: groupVersion + 1 })).close();
    expect(await dump(readStore)).toEqual(await dump(readStore, groupVersion + 1));
  });
});

describe('an entity that cannot be folded', () => {
  it('is parked in the middle of a long log as it would be live, and all others are projected', async () => {
    const models = readModels.map((model): ReadModel =>
      model.name !== names.name
        ? model
        : {
            ...model,
            evolve(fields, event, command, id) {
              if (JSON.stringify(event.data).includes('poison')) throw new TypeError('no fold for this');
              return model.evolve(fields, event, command, id);
            },
          },
    );
    await (await side.started({ models })).close();
    const log = longLog(71);
    await appendAll(side, log.slice(0, 900));
    const { position } = await append(side.stores.eventStore, nodeRenamed(second, 'poison'));
    await appendAll(side, log.slice(900));
    const projections = await side.started({ models });
    const parked = { projection: names.name, id: `node/${second}`, position, error: 'TypeError: no fold for this' };
    expect(projections.status()).toMatchObject({ caughtUp: true, parked: [parked] });
    // The last of them in the log, and the last of them before the poison.
    expect(await nameOf(projections, first)).toBe('name 2560');
    expect(Number((await nameOf(projections, second))?.slice('name '.length))).toBeLessThan(900);
    // The other read models have all of it.
    const audit = await projections.audit.list({ page: 1, pageSize: 1, resourceId: second, includeAccounts: true });
    const aboutSecond = log.filter(({ events }) => (events[0]!.data as { node_id?: string }).node_id === second);
    expect(audit.total).toBe(aboutSecond.filter(({ stream }) => stream === streams.fleet).length + 1);
  });
});
