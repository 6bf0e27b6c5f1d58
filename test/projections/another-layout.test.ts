/** The change to another layout while the service runs: announced, followed beside the old one, queried once it has caught up with that. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ServiceError } from '../../src/kernel/errors.js';
import { streams } from '../../src/kernel/event.js';
import type { EventStore } from '../../src/storage/event-store.js';
import { uuidFromName } from '../../src/kernel/ids.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { placeOf, writeLayoutRecord } from '../../src/projections/engine/layout.js';
import { groupVersion, readModels } from '../../src/projections/read-models.js';
import type { ReadStore } from '../../src/storage/read-store.js';
import {
  nameOf,
  nodeCreated,
  nodeRenamed,
  openReadSide,
  planned,
  type Planned,
  type ReadSide,
} from '../support/read-side.js';
import { shortSleeps } from '../support/short-sleeps.js';
import { tuning } from '../../src/projections/tuning.js';
import { eventually } from '../support/eventually.js';

const release = groupVersion;
const node = uuidFromName('a node');
const created = (): Planned => nodeCreated(node, 'one');

let side: ReadSide;
let lines: string[];
beforeEach(async () => {
  lines = [];
  side = await openReadSide(silentLogger, { inMemory: true });
});
afterEach(() => side.close());

const note =
  (level: string) =>
  (fields: object, message: string): void =>
    void lines.push(`${level} ${message} ${JSON.stringify(fields)}`);
const logger = { ...silentLogger, info: note('info'), warn: note('warn'), error: note('error') };
const polling = { layoutPollMs: 5, logger };
const told = (what: string): readonly string[] => lines.filter((line) => line.includes(what));

/** Points all read models to the collections of a layout; they are empty. */
const moveTo = (number: number): Promise<void> =>
  writeLayoutRecord(side.stores.readStore, release, {
    layout: { number, places: new Map(readModels.map(({ name }) => [name, placeOf(release, number)])) },
    filling: undefined,
    leftovers: [],
  });
/** What each instance announces. */
const readers = async (): Promise<unknown[]> =>
  (await side.stores.readStore.leases.list('read_model_readers')).map(({ data }) => data);
const collectionOf = (number: number) =>
  side.stores.readStore.collection({ name: 'resource_names', version: placeOf(release, number) });

/** The read store, with some of its calls refused while the test wants it. */
function troubled() {
  const inner = side.stores.readStore;
  const trouble = { leases: false };
  const refuse = (): never => {
    throw new ServiceError('unavailable', 'the store is away');
  };
  const readStore: ReadStore = {
    ...inner,
    leases: {
      ...inner.leases,
      take: async (...claim) => (trouble.leases ? refuse() : inner.leases.take(...claim)),
      release: async (...claim) => (trouble.leases ? refuse() : inner.leases.release(...claim)),
    },
  };
  return { trouble, readStore };
}

it('a start forgets the instances that were killed while they read', async () => {
  const killed = { name: 'killed', holder: 'killed', ttlMs: -1, data: null };
  const { leases } = side.stores.readStore;
  await leases.take('read_model_readers', killed);
  await side.start();
  expect(await leases.renew('read_model_readers', [killed])).toEqual(['killed']);
});

describe('an instance', () => {
  it('announces the layout that it reads, and ends that when it closes', async () => {
    const projections = await side.started(polling);
    expect(await readers()).toEqual([{ release, numbers: [0] }]);
    await projections.close();
    expect(await readers()).toEqual([]);
  });

  it('announces that it is about to read a layout before it reads which one', async () => {
    const inner = side.stores.readStore;
    const seen: unknown[] = [];
    const readStore: ReadStore = {
      ...inner,
      async collection(spec) {
        if (spec.name === 'read_model_layouts') seen.push(await readers());
        return inner.collection(spec);
      },
    };
    await side.started({ ...polling, readStore });
    expect(seen[0]).toEqual([{ release, numbers: [] }]);
  });

  it('starts although it cannot announce anything, and says so once for as long as it cannot', async () => {
    const { trouble, readStore } = troubled();
    trouble.leases = true;
    const projections = await side.started({ ...polling, readStore });
    await eventually(() => told('could not be read').length).toBe(3);
    await new Promise((resolve) => setTimeout(resolve, 50));
    // Twice at the start, then once by the loop.
    expect(told('could not be read')).toHaveLength(3);
    expect(told('could not be read')[0]).toContain('the store is away');
    trouble.leases = false;
    await eventually(readers).toEqual([{ release, numbers: [0] }]);
    trouble.leases = true;
    await projections.close();
    expect(told('could not be read').length).toBeGreaterThan(3);
  });
});

/** A log that notes its subscriptions, and gives those behind the first only as much as the test lets through. */
function watchedLog() {
  const inner = side.stores.eventStore;
  const signals: AbortSignal[] = [];
  let release = (): void => undefined;
  const released = new Promise<void>((resolve) => (release = resolve));
  const held = { all: false, upTo: Number.POSITIVE_INFINITY };
  const eventStore: EventStore = {
    ...inner,
    async *subscribe(options) {
      signals.push(options.signal);
      const first = signals.length === 1;
      for await (const item of inner.subscribe(options)) {
        if (!first && held.all) await released;
        if (!first && item.kind === 'events') {
          const early = item.events.filter(({ position }) => position <= held.upTo);
          if (early.length > 0) yield { kind: 'events', events: early };
          if (early.length === item.events.length) continue;
          yield { kind: 'caught_up' };
          await released;
          yield { kind: 'events', events: item.events.slice(early.length) };
        } else yield item;
      }
    },
  };
  return { eventStore, signals, held, letThrough: () => release() };
}

describe('a layout that changes', () => {
  it('is not queried while it is behind the one that is, also when it has once been at the end of the log', async () => {
    await side.append([created()]);
    const { eventStore, held, letThrough } = watchedLog();
    const projections = await side.started({ ...polling, eventStore });
    held.upTo = await side.stores.eventStore.headPosition();
    await side.append([nodeRenamed(node, 'two')]);
    expect(await projections.reached(await side.stores.eventStore.headPosition(), 2_000)).toBe(true);
    await moveTo(1);
    await eventually(async () => (await (await collectionOf(1)).get(`node/${node}`)) !== undefined).toBe(true);
    await new Promise((resolve) => setTimeout(resolve, 30));
    expect([told('following the new').length, told('queries now read').length]).toEqual([1, 0]);
    letThrough();
    await eventually(() => told('queries now read').length).toBe(1);
    expect(await nameOf(projections, node)).toBe('two');
  });

  it('that is still being filled is closed with the rest, and so is one that is read no more', async () => {
    const { eventStore, signals, held, letThrough } = watchedLog();
    const projections = await side.started({ ...polling, eventStore });
    await moveTo(1);
    await eventually(() => told('queries now read').length).toBe(1);
    held.all = true;
    await moveTo(2);
    await eventually(() => signals.length).toBe(3);
    expect(signals.map(({ aborted }) => aborted)).toEqual([false, false, false]);
    setImmediate(letThrough);
    await projections.close();
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true, true]);
    expect(await readers()).toEqual([]);
  });

  it('is given up for the one after it', async () => {
    const { eventStore, signals, held, letThrough } = watchedLog();
    await side.started({ ...polling, eventStore });
    held.all = true;
    await moveTo(1);
    await eventually(() => signals.length).toBe(2);
    await moveTo(2);
    setTimeout(letThrough, 20);
    await eventually(() => told('queries now read').length).toBe(1);
    await eventually(async () => JSON.stringify(await readers())).toBe(JSON.stringify([{ release, numbers: [2, 0] }]));
    expect(signals.map(({ aborted }) => aborted)).toEqual([false, true, false]);
  });

  it('ends the old one after a while', async () => {
    const sleeps = shortSleeps();
    try {
      const { eventStore, signals } = watchedLog();
      await side.started({ ...polling, eventStore });
      await moveTo(1);
      await eventually(async () => JSON.stringify(await readers())).toBe(JSON.stringify([{ release, numbers: [1] }]));
      expect(signals.map(({ aborted }) => aborted)).toEqual([true, false]);
      expect(sleeps.slept).toContain(tuning.layoutLingerMs);
      expect(told('could not be read')).toEqual([]);
    } finally {
      sleeps.restore();
    }
  });

  it('is followed beside the old one, and queried once it is as far', async () => {
    await side.append([created(), nodeRenamed(node, 'two')]);
    const projections = await side.started(polling);
    const states: boolean[] = [];
    projections.onStatusChange(({ caughtUp }) => void states.push(caughtUp));
    await moveTo(1);
    await eventually(() => told('queries now read the rebuilt').length).toBe(1);
    expect([...told('following the new collections'), ...told('queries now read')]).toEqual([
      expect.stringMatching(/^info .*{"layout":1}$/),
      expect.stringMatching(/^info .*{"layout":1}$/),
    ]);
    expect(await nameOf(projections, node)).toBe('two');
    // The new collections are filled, and the ones that are read: what is written there is shown.
    expect(await (await collectionOf(1)).get(`node/${node}`)).toBeDefined();
    await (await collectionOf(0)).remove([`node/${node}`]);
    expect(await nameOf(projections, node)).toBe('two');
    expect(projections.status()).toMatchObject({ caughtUp: true, lastError: null });
    expect(states).toEqual([true]);
    // Both are announced: callers may still wait for the old one.
    await eventually(async () => JSON.stringify(await readers())).toBe(JSON.stringify([{ release, numbers: [1, 0] }]));
    await side.append([nodeRenamed(node, 'three')]);
    expect(await projections.reached(await side.stores.eventStore.headPosition(), 2_000)).toBe(true);
  });

  it('is not followed by an instance that closes', async () => {
    const projections = await side.started(polling);
    await projections.close();
    await moveTo(1);
    await new Promise((resolve) => setTimeout(resolve, 30));
    expect(told('following')).toEqual([]);
    expect(await readers()).toEqual([]);
  });
});

it('a listener that fails does not keep the others from being told', async () => {
  const projections = await side.started(polling);
  const states: boolean[] = [];
  const fails = (): never => {
    throw new Error('a fault');
  };
  projections.onStatusChange(fails);
  const stop = projections.onStatusChange(({ caughtUp }) => void states.push(caughtUp));
  await side.append([created()]);
  await moveTo(1);
  await eventually(() => states).toEqual([true]);
  expect(told('error a listener for the status of the projections failed')).toEqual([
    expect.stringContaining('a fault'),
  ]);
  stop();
});

it('every query is of the layout that is read', async () => {
  const upstream = uuidFromName('an upstream');
  const fields = { endpoint: 'x.example:1', server_names: [], health_check_interval_ms: 10_000, enabled: true };
  const projections = await side.started(polling);
  await side.append([
    created(),
    planned(streams.fleet, [
      { type: 'UpstreamCreated', data: { upstream_id: upstream, name: 'u', tls: null, ...fields } },
    ]),
  ]);
  const head = await side.stores.eventStore.headPosition();
  expect(await projections.reached(head, 2_000)).toBe(true);
  expect(await projections.reached(head + 1, 1)).toBe(false);
  expect(await projections.deployments.ofChain('none')).toEqual([]);
  const { items } = await projections.audit.list({ page: 1, pageSize: 10, includeAccounts: true });
  expect(items).toHaveLength(2);
  expect((await projections.auditTrail.command(items[0]?.id ?? ''))?.events[0].type).toBe('UpstreamCreated');
});
