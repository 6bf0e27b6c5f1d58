/** Reads end, whatever the server or the consumer does, and leave nothing open on the connection. */
import { afterEach, describe, expect, it } from 'vitest';
import { silentLogger } from '../../../src/kernel/logger.js';
import { openEventStoreDb } from '../../../src/storage/eventstoredb/open.js';
import { createPlaces, readPlaces, subscriptionPlaces } from '../../../src/storage/eventstoredb/places.js';
import { startEventStoreDb } from '../../servers/eventstoredb/server.js';
import { collectRead, commandOf, readAll } from '../contract/appending.js';
import { openHouse, type House } from './house.js';
import { tuning } from '../../../src/storage/eventstoredb/tuning.js';

describe('reads from EventStoreDB', { timeout: 60_000 }, () => {
  let house: House;
  afterEach(async () => {
    await house.close();
  });

  it('that are left early leave no stream open, beyond the hundred of a connection', async () => {
    house = await openHouse();
    await house.store.append('svc-a', 'no_stream', commandOf(20));
    for (let round = 0; round < 130; round += 1) {
      for await (const event of house.store.read('svc-a', { direction: 'forward', from: 'start', maxCount: 20 })) {
        expect(event.revision).toBe(0);
        break;
      }
    }
    expect(await house.store.append('svc-a', 19, commandOf(1))).toMatchObject({ kind: 'appended' });
    await expect.poll(() => readPlaces.taken()).toBe(0);
  });

  it('wait for a place when there are more than the connection carries', async () => {
    house = await openHouse();
    await house.store.append('svc-a', 'no_stream', commandOf(5));
    const all = await Promise.all(Array.from({ length: 250 }, () => readAll(house.store, 'svc-a')));
    expect(all.every((events) => events.length === 5)).toBe(true);
  });

  it('and subscriptions and appends of the whole process never need more streams than a connection carries', async () => {
    house = await openHouse();
    await house.store.append('svc-a', 'no_stream', commandOf(5));
    const stop = new AbortController();
    let caughtUp = 0;
    const following = Array.from({ length: tuning.subscriptions + 5 }, async () => {
      const items = house.store.subscribe({ prefix: 'svc-a', after: 'start', signal: stop.signal });
      for await (const { kind } of items) if (kind === 'caught_up') caughtUp += 1;
    });
    const refused = Promise.allSettled(following);
    await expect.poll(() => caughtUp, { timeout: 20_000 }).toBe(tuning.subscriptions);
    await Promise.all([
      ...Array.from({ length: 200 }, () => readAll(house.store, 'svc-a')),
      ...Array.from({ length: 200 }, (_, at) => house.store.append(`svc-b${at}`, 'no_stream', commandOf(1))),
    ]);
    expect(house.server.mostCalls()).toBeGreaterThan(tuning.subscriptions);
    expect(house.server.mostCalls()).toBeLessThan(100);
    await expect.poll(async () => subscriptionPlaces.taken()).toBe(tuning.subscriptions);
    stop.abort();
    // Those that found no place were told so, unless they were aborted first.
    expect((await refused).length).toBe(tuning.subscriptions + 5);
    await expect.poll(() => house.server.subscriptions()).toBe(0);
  });

  it('are answered by the leader, also after it has changed: the node that was asked before may be behind', async () => {
    const next = await startEventStoreDb();
    try {
      house = await openHouse();
      await house.store.append('svc-a', 'no_stream', commandOf(1));
      expect(await readAll(house.store, 'svc-a')).toHaveLength(1);
      const writer = openEventStoreDb({ url: next.url, logger: silentLogger });
      await writer.append('svc-a', 'no_stream', commandOf(3));
      house.server.faults.leader = { host: '127.0.0.1', port: next.port };
      expect(await readAll(house.store, 'svc-a')).toHaveLength(3);
      expect(await house.store.headPosition()).toBe(await writer.headPosition());
      await writer.close();
    } finally {
      await next.close();
    }
  });

  it('are a fault of the caller where the store would not understand them', async () => {
    house = await openHouse();
    for (const options of [
      { direction: 'forward', from: 'end', maxCount: 1 },
      { direction: 'backward', from: 'start', maxCount: 1 },
      { direction: 'forward', from: 'start', maxCount: 0 },
    ] as const) {
      await expect(collectRead(house.store.read('svc-a', options))).rejects.toThrow(RangeError);
    }
  });

  it('are unavailable when no place gets free in time', async () => {
    house = await openHouse();
    const places = createPlaces(1, 20, 'reads');
    const giveBack = await places.take();
    await expect(places.take()).rejects.toMatchObject({ code: 'unavailable' });
    giveBack();
    giveBack();
    expect(places.taken()).toBe(0);
    await places.take();
  });

  it('that are never answered are unavailable in their time, and the next one works', async () => {
    house = await openHouse();
    await house.store.append('svc-a', 'no_stream', commandOf(1));
    house.server.faults.silentReads = true;
    await expect(readAll(house.store, 'svc-a')).rejects.toMatchObject({ code: 'unavailable' });
    house.server.faults.silentReads = false;
    expect(await readAll(house.store, 'svc-a')).toHaveLength(1);
    await expect.poll(() => readPlaces.taken()).toBe(0);
  });

  it('of a tombstoned stream are an error, not an empty stream', async () => {
    house = await openHouse();
    await house.store.append('svc-a', 'no_stream', commandOf(1));
    house.server.log.tombstone('svc-a', { kind: 'any' });
    await expect(readAll(house.store, 'svc-a')).rejects.toMatchObject({ code: 'unavailable' });
  });

  it('of more events than a page holds are whole, in both directions', async () => {
    house = await openHouse();
    const count = tuning.readPageEvents * 2 + 7;
    for (let revision = 0; revision < count; revision += 169) {
      const events = commandOf(Math.min(169, count - revision));
      await house.store.append('svc-a', revision === 0 ? 'no_stream' : revision - 1, events);
    }
    const forward = await readAll(house.store, 'svc-a');
    expect(forward.map(({ revision }) => revision)).toEqual(Array.from({ length: count }, (_, index) => index));
    const backward = [];
    for await (const event of house.store.read('svc-a', { direction: 'backward', from: 'end', maxCount: 100_000 })) {
      backward.push(event);
    }
    expect(backward).toEqual(forward.toReversed());
  });

  it('say that an empty log has its head at 0, and then where it is', async () => {
    house = await openHouse();
    expect(await house.store.headPosition()).toBe(0);
    const outcome = await house.store.append('svc-a', 'no_stream', commandOf(2));
    expect(await house.store.headPosition()).toBe(outcome.kind === 'appended' ? outcome.position : -1);
  });
});
