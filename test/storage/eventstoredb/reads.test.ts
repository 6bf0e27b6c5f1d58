/** Reads always end, whatever the server or the consumer does, and leave nothing open on the connection. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { silentLogger } from '../../../src/kernel/logger.js';
import { openEventStoreDb } from '../../../src/storage/eventstoredb/open.js';
import { createPlaces, readPlaces, subscriptionPlaces } from '../../../src/storage/eventstoredb/connection.js';
import { startEventStoreDb } from '../../servers/eventstoredb/server.js';
import { eventually } from '../../support/eventually.js';
import { collectRead, commandOf, readAll } from '../contract/appending.js';
import { impatient, openFixture, type Fixture } from './fixture.js';
import { tuning } from '../../../src/storage/eventstoredb/tuning.js';

describe('reads from EventStoreDB', { timeout: 60_000 }, () => {
  let fixture: Fixture;
  beforeEach(async () => {
    fixture = await openFixture();
  });
  afterEach(() => fixture.close());

  it('leave no stream open when abandoned early, even after more than the hundred of a connection', async () => {
    await fixture.store.append('svc-a', 'no_stream', commandOf(20));
    for (let round = 0; round < 130; round += 1) {
      for await (const event of fixture.store.read('svc-a', { direction: 'forward', from: 'start', maxCount: 20 })) {
        expect(event.revision).toBe(0);
        break;
      }
    }
    expect(await fixture.store.append('svc-a', 19, commandOf(1))).toMatchObject({ kind: 'appended' });
    await eventually(() => readPlaces.taken()).toBe(0);
  });

  it('wait for a place when there are more than a connection carries', async () => {
    await fixture.store.append('svc-a', 'no_stream', commandOf(5));
    const all = await Promise.all(Array.from({ length: 250 }, () => readAll(fixture.store, 'svc-a')));
    expect(all.every((events) => events.length === 5)).toBe(true);
  });

  it('never need more streams than a connection carries, together with subscriptions and appends of the process', async () => {
    await fixture.store.append('svc-a', 'no_stream', commandOf(5));
    const stop = new AbortController();
    let caughtUp = 0;
    const following = Array.from({ length: tuning.subscriptions + 5 }, async () => {
      const items = fixture.store.subscribe({ streams: ['svc-a'], after: 'start', signal: stop.signal });
      for await (const { kind } of items) if (kind === 'caught_up') caughtUp += 1;
    });
    const refused = Promise.allSettled(following);
    await eventually(() => caughtUp).toBe(tuning.subscriptions);
    await Promise.all([
      ...Array.from({ length: 200 }, () => readAll(fixture.store, 'svc-a')),
      ...Array.from({ length: 200 }, (_, at) => fixture.store.append(`svc-b${at}`, 'no_stream', commandOf(1))),
    ]);
    expect(fixture.server.mostCalls()).toBeGreaterThan(tuning.subscriptions);
    expect(fixture.server.mostCalls()).toBeLessThan(100);
    await eventually(async () => subscriptionPlaces.taken()).toBe(tuning.subscriptions);
    stop.abort();
    // Those without a place got an error, unless they were aborted first.
    expect((await refused).length).toBe(tuning.subscriptions + 5);
    await eventually(() => fixture.server.subscriptions()).toBe(0);
  });

  it('are answered by the leader, also after a change, as the previous node may be behind', async () => {
    const next = await startEventStoreDb();
    try {
      await fixture.store.append('svc-a', 'no_stream', commandOf(1));
      expect(await readAll(fixture.store, 'svc-a')).toHaveLength(1);
      const writer = openEventStoreDb({ url: next.url, logger: silentLogger });
      await writer.append('svc-a', 'no_stream', commandOf(3));
      fixture.server.faults.leader = { host: '127.0.0.1', port: next.port };
      expect(await readAll(fixture.store, 'svc-a')).toHaveLength(3);
      expect(await fixture.store.headPosition()).toBe(await writer.headPosition());
      await writer.close();
    } finally {
      await next.close();
    }
  });

  it("are refused as the caller's fault where the store would misunderstand them", async () => {
    for (const options of [
      { direction: 'forward', from: 'end', maxCount: 1 },
      { direction: 'backward', from: 'start', maxCount: 1 },
      { direction: 'forward', from: 'start', maxCount: 0 },
    ] as const) {
      await expect(collectRead(fixture.store.read('svc-a', options))).rejects.toThrow(RangeError);
    }
  });

  it('are unavailable when no place becomes free in time', async () => {
    const places = createPlaces(1, 20, 'reads');
    const giveBack = await places.take();
    await expect(places.take()).rejects.toMatchObject({ code: 'unavailable' });
    giveBack();
    giveBack();
    expect(places.taken()).toBe(0);
    await places.take();
  });

  it('are unavailable in time when never answered, and the next read works', async () => {
    await fixture.close();
    fixture = await openFixture(undefined, impatient);
    await fixture.store.append('svc-a', 'no_stream', commandOf(1));
    fixture.server.faults.silentReads = true;
    await expect(readAll(fixture.store, 'svc-a')).rejects.toMatchObject({ code: 'unavailable' });
    fixture.server.faults.silentReads = false;
    expect(await readAll(fixture.store, 'svc-a')).toHaveLength(1);
    await eventually(() => readPlaces.taken()).toBe(0);
  });

  it('fail for a tombstoned stream instead of finding it empty', async () => {
    await fixture.store.append('svc-a', 'no_stream', commandOf(1));
    fixture.server.log.tombstone('svc-a', { kind: 'any' });
    await expect(readAll(fixture.store, 'svc-a')).rejects.toMatchObject({ code: 'unavailable' });
  });

  it('of more events than one page are complete, in both directions', async () => {
    const count = tuning.readPageEvents * 2 + 7;
    for (let revision = 0; revision < count; revision += 169) {
      const events = commandOf(Math.min(169, count - revision));
      await fixture.store.append('svc-a', revision === 0 ? 'no_stream' : revision - 1, events);
    }
    const forward = await readAll(fixture.store, 'svc-a');
    expect(forward.map(({ revision }) => revision)).toEqual(Array.from({ length: count }, (_, index) => index));
    const backward = [];
    for await (const event of fixture.store.read('svc-a', { direction: 'backward', from: 'end', maxCount: 100_000 })) {
      backward.push(event);
    }
    expect(backward).toEqual(forward.toReversed());
  });

  it('find the head of an empty log at 0, and later where it is', async () => {
    expect(await fixture.store.headPosition()).toBe(0);
    const outcome = await fixture.store.append('svc-a', 'no_stream', commandOf(2));
    expect(await fixture.store.headPosition()).toBe(outcome.kind === 'appended' ? outcome.position : -1);
  });
});
