/** Every answer, and every silence, of an append means what the port says. Over the wire, with the faults of real servers. */
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { silentLogger } from '../../../src/kernel/logger.js';
import { openEventStoreDb } from '../../../src/storage/eventstoredb/open.js';
import { startEventStoreDb } from '../../servers/eventstoredb/server.js';
import { appendAtEnd, appendSurely, commandOf, readAll } from '../contract/appending.js';
import { openHouse, type House } from './house.js';
import { bounds } from '../../../src/storage/bounds.js';

const ids = (events: readonly { id: string }[]): string[] => events.map(({ id }) => id);

describe('appends to EventStoreDB', () => {
  let house: House;
  afterEach(async () => {
    await house.close();
  });

  it('that are never answered are unknown in time, and the next one goes through', async () => {
    house = await openHouse();
    house.server.faults.appends = [{ kind: 'silent' }];
    const started = performance.now();
    const events = commandOf(2);
    expect((await house.store.append('svc-a', 'no_stream', events)).kind).toBe('unknown');
    expect(performance.now() - started).toBeLessThan(bounds.appendTimeoutMs);
    expect(house.server.appends()).toBe(1);
    expect(await house.store.append('svc-a', 'no_stream', events)).toMatchObject({ kind: 'appended', revision: 1 });
    expect(ids(await readAll(house.store, 'svc-a'))).toEqual(ids(events));
  });

  it('whose answer is lost are unknown, and a repeat is answered like the first try', async () => {
    house = await openHouse();
    house.server.faults.appends = [{ kind: 'answer_lost' }];
    const events = commandOf(2);
    expect((await house.store.append('svc-a', 'no_stream', events)).kind).toBe('unknown');
    expect(ids(await readAll(house.store, 'svc-a'))).toEqual(ids(events));
    expect(await house.store.append('svc-a', 'no_stream', events)).toMatchObject({ kind: 'appended', revision: 1 });
    expect(await readAll(house.store, 'svc-a')).toHaveLength(2);
  });

  it('that time out in the commit phase are unknown, for the events may appear later', async () => {
    house = await openHouse();
    house.server.faults.appends = [{ kind: 'commit_timeout', laterMs: 150 }];
    const events = commandOf(1);
    expect((await house.store.append('svc-a', 'no_stream', events)).kind).toBe('unknown');
    while ((await readAll(house.store, 'svc-a')).length === 0) await delay(10);
    expect(await house.store.append('svc-a', 'no_stream', events)).toMatchObject({ kind: 'appended', revision: 0 });
  });

  it('are unknown when the connection is cut, whether they were written or not', async () => {
    house = await openHouse();
    for (const written of [true, false]) {
      const stream = `svc-${written}`;
      house.server.faults.appends = [{ kind: 'cut', written }];
      const events = commandOf(3);
      expect((await house.store.append(stream, 'no_stream', events)).kind).toBe('unknown');
      expect(await readAll(house.store, stream)).toHaveLength(written ? 3 : 0);
      expect(await house.store.append(stream, 'no_stream', events)).toMatchObject({ kind: 'appended', revision: 2 });
    }
  });

  it('whose call the server ends without an answer are unknown in time', async () => {
    house = await openHouse();
    await house.store.append('svc-a', 'no_stream', commandOf(1));
    house.server.faults.appends = [{ kind: 'end_call' }];
    const events = commandOf(1);
    expect((await house.store.append('svc-a', 0, events)).kind).toBe('unknown');
    expect(await house.store.append('svc-a', 0, events)).toMatchObject({ kind: 'appended', revision: 1 });
  });

  it('whose call is reset without a status are unknown, whether they were written or not', async () => {
    house = await openHouse();
    for (const written of [true, false]) {
      const stream = `svc-${written}`;
      house.server.faults.appends = [{ kind: 'reset_call', written }];
      const events = commandOf(2);
      expect(await house.store.append(stream, 'no_stream', events)).toMatchObject({
        kind: 'unknown',
        cause: expect.stringContaining('RST_STREAM'),
      });
      expect(await house.store.append(stream, 'no_stream', events)).toMatchObject({ kind: 'appended', revision: 1 });
    }
  });

  it('repeated while the first try is still on its way are unknown again, and in the end stand once', async () => {
    house = await openHouse();
    // The server drops a repeat that comes too early, and answers it like one that took too long.
    house.server.faults.appends = [
      { kind: 'commit_timeout', laterMs: 400 },
      { kind: 'deadline' },
      { kind: 'deadline' },
    ];
    const events = commandOf(3);
    for (let repeat = 0; repeat < 3; repeat += 1) {
      expect((await house.store.append('svc-a', 'no_stream', events)).kind).toBe('unknown');
    }
    expect(await appendSurely(house.store, 'svc-a', 'no_stream', events)).toEqual({ kind: 'appended', revision: 2 });
    await delay(500);
    expect(ids(await readAll(house.store, 'svc-a'))).toEqual(ids(events));
  });

  it('are answered in time when the server does not tell what it can, and then go through', async () => {
    house = await openHouse();
    house.server.faults.silentFeatures = true;
    const events = commandOf(1);
    expect((await house.store.append('svc-a', 'no_stream', events)).kind).toBe('unknown');
    house.server.faults.silentFeatures = false;
    expect(await house.store.append('svc-a', 'no_stream', events)).toMatchObject({ kind: 'appended', revision: 0 });
  });

  it('go through after the question of what the server can has failed, which a client never asks again', async () => {
    house = await openHouse();
    house.server.faults.featuresFail = { code: 13, details: 'Received RST_STREAM with code 0' };
    const outcome = await house.store.append('svc-a', 'no_stream', commandOf(1));
    expect(outcome).toMatchObject({ kind: 'unavailable', cause: expect.stringContaining('RST_STREAM') });
    house.server.faults.featuresFail = undefined;
    expect(await house.store.append('svc-a', 'no_stream', commandOf(1))).toMatchObject({ kind: 'appended' });
  });

  it('go through on a server that knows the classic call only', async () => {
    house = await openHouse();
    house.server.faults.featuresFail = { code: 12, details: 'no such service' };
    expect(await house.store.append('svc-a', 'no_stream', commandOf(2))).toMatchObject({
      kind: 'appended',
      revision: 1,
    });
  });

  it('are taken by a server whose clock is ahead', async () => {
    house = await openHouse();
    house.server.faults.clockAheadMs = 20_000;
    expect(await house.store.append('svc-a', 'no_stream', commandOf(1))).toMatchObject({ kind: 'appended' });
  });

  it('to hundreds of streams at once, by a fresh client, all go through', async () => {
    house = await openHouse();
    const outcomes = await Promise.all(
      Array.from({ length: 300 }, (_, index) => house.store.append(`svc-${index}`, 'no_stream', commandOf(1))),
    );
    expect(new Set(outcomes.map(({ kind }) => kind))).toEqual(new Set(['appended']));
  });

  it('are answered while a server that was told to stop finishes, and when it is back', async () => {
    house = await openHouse();
    await house.store.append('svc-a', 'no_stream', commandOf(1));
    await house.server.drain();
    expect(await house.store.append('svc-a', 0, commandOf(1))).toMatchObject({ kind: 'appended', revision: 1 });
    await expect(readAll(house.store, 'svc-a')).rejects.toMatchObject({ code: 'unavailable' });
    await house.server.listen();
    expect(await appendAtEnd(house.store, 'svc-a', commandOf(1))).toBe(2);
    expect(await readAll(house.store, 'svc-a')).toHaveLength(3);
  });

  it('are tried again while the server is not ready, and then stand once', async () => {
    house = await openHouse();
    house.server.faults.appends = [{ kind: 'not_ready' }, { kind: 'not_ready' }];
    expect(await house.store.append('svc-a', 'no_stream', commandOf(1))).toMatchObject({ kind: 'appended' });
    expect(house.server.appends()).toBe(3);
    expect(await readAll(house.store, 'svc-a')).toHaveLength(1);
  });

  it('are unavailable, and certainly not written, when the server is not ready for long', async () => {
    house = await openHouse();
    house.server.faults.choose = () => ({ kind: 'not_ready' });
    const outcome = await house.store.append('svc-a', 'no_stream', commandOf(1));
    expect(outcome).toMatchObject({ kind: 'unavailable', cause: expect.stringContaining('Not Ready') });
    expect(await readAll(house.store, 'svc-a')).toEqual([]);
  });

  it('are unavailable while connections are refused, and go on by themselves afterwards', async () => {
    house = await openHouse();
    await house.store.append('svc-a', 'no_stream', commandOf(1));
    await house.server.refuse();
    // The first may still be on its way when the connection goes; those after it never leave.
    await house.store.append('svc-a', 0, commandOf(1));
    const outcome = await house.store.append('svc-a', 0, commandOf(1));
    expect(outcome).toMatchObject({ kind: 'unavailable', cause: expect.stringContaining('ECONNREFUSED') });
    await house.server.listen();
    expect(await house.store.append('svc-a', 0, commandOf(1))).toMatchObject({ kind: 'appended', revision: 1 });
  });

  it('go to the leader only: a follower is left at once, and nothing is written there', async () => {
    const leader = await startEventStoreDb();
    try {
      house = await openHouse((follower) => {
        follower.faults.leader = { host: '127.0.0.1', port: leader.port };
        return follower.url;
      });
      const events = commandOf(2);
      expect(await house.store.append('svc-a', 'no_stream', events)).toMatchObject({ kind: 'appended', revision: 1 });
      expect(ids(await readAll(house.store, 'svc-a'))).toEqual(ids(events));
      expect(house.server.log.all).toHaveLength(0);
      expect(leader.log.all).toHaveLength(2);
    } finally {
      await leader.close();
    }
  });

  it('go on after a failed discovery, which a client never recovers from', async () => {
    const down = await startEventStoreDb();
    await down.close();
    house = await openHouse(
      ({ port }) =>
        `esdb://127.0.0.1:${port},127.0.0.1:${down.port}?tls=false&discoveryInterval=5&maxDiscoverAttempts=2&gossipTimeout=1`,
    );
    await house.store.append('svc-a', 'no_stream', commandOf(1));
    await house.server.refuse();
    await house.store.append('svc-a', 0, commandOf(1));
    const outcome = await house.store.append('svc-a', 0, commandOf(1));
    expect(outcome).toMatchObject({ kind: 'unavailable', cause: expect.stringContaining('Failed to discover') });
    await house.server.listen();
    expect(await house.store.append('svc-a', 0, commandOf(1))).toMatchObject({ kind: 'appended', revision: 1 });
    expect(house.lines.some(({ message }) => message.includes('thrown away'))).toBe(true);
  });

  it('are answered without a position when the server tells none', async () => {
    house = await openHouse();
    house.server.faults.appends = [{ kind: 'no_position' }];
    const outcome = await house.store.append('svc-a', 'no_stream', commandOf(1));
    expect(outcome).toEqual({ kind: 'appended', revision: 0, position: undefined });
  });

  it('of a fresh client keep their order when they are sent at once', async () => {
    house = await openHouse();
    const groups = Array.from({ length: 30 }, (_, index) => commandOf(1, { index }));
    const outcomes = await Promise.all(
      groups.map((events, index) => house.store.append('svc-a', index === 0 ? 'no_stream' : index - 1, events)),
    );
    expect(outcomes.map(({ kind }) => kind)).toEqual(groups.map(() => 'appended'));
    expect(ids(await readAll(house.store, 'svc-a'))).toEqual(ids(groups.flat()));
  });

  it('to a tombstoned stream are unavailable, not a conflict', async () => {
    house = await openHouse();
    await house.store.append('svc-a', 'no_stream', commandOf(1));
    house.server.log.tombstone('svc-a', { kind: 'any' });
    expect((await house.store.append('svc-a', 0, commandOf(1))).kind).toBe('unavailable');
  });

  it('of two stores in one process do not fail with each other', async () => {
    house = await openHouse();
    const other = await startEventStoreDb();
    const store = openEventStoreDb({ url: other.url, logger: silentLogger });
    try {
      await house.store.append('svc-a', 'no_stream', commandOf(1));
      await store.append('svc-a', 'no_stream', commandOf(1));
      for (let round = 0; round < 10; round += 1) {
        house.server.faults.appends = [{ kind: 'late', ms: 30 }];
        other.faults.appends = [{ kind: 'cut', written: round % 2 === 0 }];
        const slow = house.store.append('svc-b', round === 0 ? 'no_stream' : round - 1, commandOf(1));
        expect((await store.append(`svc-${round}`, 'no_stream', commandOf(1))).kind).toBe('unknown');
        expect(await slow).toMatchObject({ kind: 'appended', revision: round });
      }
    } finally {
      await store.close();
      await other.close();
    }
  });
});
