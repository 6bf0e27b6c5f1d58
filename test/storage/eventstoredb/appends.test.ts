/**
 * Every answer of an append, and every missing answer, means what the port says: over the wire, with faults of real
 * servers.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it, type TestContext } from 'vitest';
import { silentLogger } from '../../../src/kernel/logger.js';
import { openEventStoreDb } from '../../../src/storage/eventstoredb/open.js';
import { startEventStoreDb } from '../../servers/eventstoredb/server.js';
import { eventually } from '../../support/eventually.js';
import { appendAtEnd, appendSurely, commandOf, readAll } from '../contract/appending.js';
import { impatient, openFixture, type Fixture } from './fixture.js';

const ids = (events: readonly { id: string }[]): string[] => events.map(({ id }) => id);

/** A server and a store of one test's own. */
async function opened(test: TestContext, ...of: Parameters<typeof openFixture>): Promise<Fixture> {
  const fixture = await openFixture(...of);
  test.onTestFinished(() => fixture.close());
  return fixture;
}

describe('appends to EventStoreDB', () => {
  it('are unknown in time when never answered, and the next append succeeds', async (test) => {
    const fixture = await opened(test, undefined, impatient);
    fixture.server.faults.appends = [{ kind: 'silent' }];
    const started = performance.now();
    const events = commandOf(2);
    expect((await fixture.store.append('svc-a', 'no_stream', events)).kind).toBe('unknown');
    expect(performance.now() - started).toBeLessThan(impatient.appendMs);
    expect(fixture.server.appends()).toBe(1);
    expect(await fixture.store.append('svc-a', 'no_stream', events)).toMatchObject({ kind: 'appended', revision: 1 });
    expect(ids(await readAll(fixture.store, 'svc-a'))).toEqual(ids(events));
  });

  it.for([
    ['the answer is lost', { kind: 'answer_lost' }, true, ''],
    ['the connection is cut behind the write', { kind: 'cut', written: true }, true, ''],
    ['the connection is cut before it', { kind: 'cut', written: false }, false, ''],
    ['the server ends the call without an answer', { kind: 'end_call' }, false, ''],
    ['the call is reset without a status, behind the write', { kind: 'reset_call', written: true }, true, 'RST_STREAM'],
    ['the call is reset without a status, before it', { kind: 'reset_call', written: false }, false, 'RST_STREAM'],
  ] as const)('are unknown when %s, and a repeat is written once', async ([, fault, written, cause], test) => {
    const fixture = await opened(test, undefined, impatient);
    fixture.server.faults.appends = [fault];
    const events = commandOf(2);
    const unknown = { kind: 'unknown', cause: expect.stringContaining(cause) };
    expect(await fixture.store.append('svc-a', 'no_stream', events)).toMatchObject(unknown);
    expect(await readAll(fixture.store, 'svc-a')).toHaveLength(written ? 2 : 0);
    expect(await fixture.store.append('svc-a', 'no_stream', events)).toMatchObject({ kind: 'appended', revision: 1 });
    expect(ids(await readAll(fixture.store, 'svc-a'))).toEqual(ids(events));
  });

  it('are unknown after a timeout in the commit phase, as the events may appear later', async (test) => {
    const fixture = await opened(test);
    fixture.server.faults.appends = [{ kind: 'commit_timeout', laterMs: 150 }];
    const events = commandOf(1);
    expect((await fixture.store.append('svc-a', 'no_stream', events)).kind).toBe('unknown');
    await eventually(async () => (await readAll(fixture.store, 'svc-a')).length).toBe(1);
    expect(await fixture.store.append('svc-a', 'no_stream', events)).toMatchObject({ kind: 'appended', revision: 0 });
  });

  it('are unknown again when repeated while the first try is in flight, and are finally written once', async (test) => {
    const fixture = await opened(test);
    // The server drops a repeat that comes too early and answers it with a timeout.
    fixture.server.faults.appends = [
      { kind: 'commit_timeout', laterMs: 400 },
      { kind: 'deadline' },
      { kind: 'deadline' },
    ];
    const events = commandOf(3);
    for (let repeat = 0; repeat < 3; repeat += 1) {
      expect((await fixture.store.append('svc-a', 'no_stream', events)).kind).toBe('unknown');
    }
    expect(await appendSurely(fixture.store, 'svc-a', 'no_stream', events)).toEqual({ kind: 'appended', revision: 2 });
    await delay(500);
    expect(ids(await readAll(fixture.store, 'svc-a'))).toEqual(ids(events));
  });

  it('use the classic call alone, although the server reports the other one', async (test) => {
    const fixture = await opened(test);
    fixture.server.faults.featuresFail = { code: 13, details: 'nobody asks for features' };
    expect(await fixture.store.append('svc-a', 'no_stream', commandOf(2))).toMatchObject({ revision: 1 });
  });

  it('succeed on a server whose clock is ahead', async (test) => {
    const fixture = await opened(test);
    fixture.server.faults.clockAheadMs = 20_000;
    expect(await fixture.store.append('svc-a', 'no_stream', commandOf(1))).toMatchObject({ kind: 'appended' });
  });

  it('all succeed when a fresh client appends to hundreds of streams at once', async (test) => {
    const fixture = await opened(test);
    const append = async (index: number): Promise<string> => {
      const { kind } = await fixture.store.append(`svc-${index}`, 'no_stream', commandOf(1));
      // On a busy machine, the last ones wait too long for a place.
      return kind === 'unavailable' && !test.signal.aborted ? append(index) : kind;
    };
    const outcomes = await Promise.all(Array.from({ length: 300 }, (_, index) => append(index)));
    expect(new Set(outcomes)).toEqual(new Set(['appended']));
  });

  it('are unavailable while a stopping server finishes, and succeed when it is back', async (test) => {
    const fixture = await opened(test, undefined, impatient);
    await fixture.store.append('svc-a', 'no_stream', commandOf(1));
    await fixture.server.drain();
    expect((await fixture.store.append('svc-a', 0, commandOf(1))).kind).toBe('unavailable');
    await expect(readAll(fixture.store, 'svc-a')).rejects.toMatchObject({ code: 'unavailable' });
    await fixture.server.listen();
    expect(await appendAtEnd(fixture.store, 'svc-a', commandOf(1))).toBe(1);
    expect(await readAll(fixture.store, 'svc-a')).toHaveLength(2);
  });

  it('are tried again while the server is not ready, and are written once', async (test) => {
    const fixture = await opened(test);
    fixture.server.faults.appends = [{ kind: 'not_ready' }, { kind: 'not_ready' }];
    expect(await fixture.store.append('svc-a', 'no_stream', commandOf(1))).toMatchObject({ kind: 'appended' });
    expect(fixture.server.appends()).toBe(3);
    expect(await readAll(fixture.store, 'svc-a')).toHaveLength(1);
  });

  it('are unavailable and not written when the server is not ready for too long', async (test) => {
    const fixture = await opened(test, undefined, impatient);
    fixture.server.faults.choose = () => ({ kind: 'not_ready' });
    const outcome = await fixture.store.append('svc-a', 'no_stream', commandOf(1));
    expect(outcome).toMatchObject({ kind: 'unavailable', cause: expect.stringContaining('Not Ready') });
    expect(await readAll(fixture.store, 'svc-a')).toEqual([]);
  });

  it('are unavailable while connections are refused, and succeed again afterwards', async (test) => {
    const fixture = await opened(test, undefined, impatient);
    await fixture.store.append('svc-a', 'no_stream', commandOf(1));
    await fixture.server.refuse();
    // The first may still be in flight when the connection ends; the later ones are never sent.
    await fixture.store.append('svc-a', 0, commandOf(1));
    const outcome = await fixture.store.append('svc-a', 0, commandOf(1));
    expect(outcome).toMatchObject({ kind: 'unavailable', cause: expect.stringContaining('ECONNREFUSED') });
    await fixture.server.listen();
    expect(await fixture.store.append('svc-a', 0, commandOf(1))).toMatchObject({ kind: 'appended', revision: 1 });
  });

  it('go to the leader only: the client leaves a follower at once, and nothing is written there', async (test) => {
    const leader = await startEventStoreDb();
    try {
      const fixture = await opened(test, (follower) => {
        follower.faults.leader = { host: '127.0.0.1', port: leader.port };
        return follower.url;
      });
      const events = commandOf(2);
      expect(await fixture.store.append('svc-a', 'no_stream', events)).toMatchObject({ kind: 'appended', revision: 1 });
      expect(ids(await readAll(fixture.store, 'svc-a'))).toEqual(ids(events));
      expect(fixture.server.log.all).toHaveLength(0);
      expect(leader.log.all).toHaveLength(2);
    } finally {
      await leader.close();
    }
  });

  it('succeed after a failed discovery', async (test) => {
    const fixture = await opened(
      test,
      ({ port }) =>
        `esdb+discover://127.0.0.1:${port}?tls=false&discoveryInterval=5&maxDiscoverAttempts=2&gossipTimeout=1`,
      impatient,
    );
    await fixture.store.append('svc-a', 'no_stream', commandOf(1));
    await fixture.server.refuse();
    await fixture.store.append('svc-a', 0, commandOf(1));
    const outcome = await fixture.store.append('svc-a', 0, commandOf(1));
    expect(outcome).toMatchObject({ kind: 'unavailable', cause: expect.stringContaining('Failed to discover') });
    await fixture.server.listen();
    // The gRPC library waits a moment before it tries an address again that refused it.
    const again = (): Promise<string> => fixture.store.append('svc-a', 0, commandOf(1)).then(({ kind }) => kind);
    await test.expect.poll(again, { timeout: 20_000 }).toBe('appended');
    expect(await readAll(fixture.store, 'svc-a')).toHaveLength(2);
    expect(await fixture.store.append('svc-a', 1, commandOf(1))).toMatchObject({ kind: 'appended', revision: 2 });
  });

  it('are answered without a position when the server reports none', async (test) => {
    const fixture = await opened(test);
    fixture.server.faults.appends = [{ kind: 'no_position' }];
    const outcome = await fixture.store.append('svc-a', 'no_stream', commandOf(1));
    expect(outcome).toEqual({ kind: 'appended', revision: 0, position: undefined });
  });

  it('to a tombstoned stream are refused for the whole stream, not a conflict', async (test) => {
    const fixture = await opened(test);
    await fixture.store.append('svc-a', 'no_stream', commandOf(1));
    fixture.server.log.tombstone('svc-a', { kind: 'any' });
    expect(await fixture.store.append('svc-a', 0, commandOf(1))).toMatchObject({ kind: 'refused', what: 'stream' });
  });

  it('of one store do not fail with those of another store in the same process', async (test) => {
    const fixture = await opened(test);
    const other = await startEventStoreDb();
    const store = openEventStoreDb({ url: other.url, logger: silentLogger });
    try {
      await fixture.store.append('svc-a', 'no_stream', commandOf(1));
      await store.append('svc-a', 'no_stream', commandOf(1));
      for (let round = 0; round < 10; round += 1) {
        fixture.server.faults.appends = [{ kind: 'late', ms: 30 }];
        other.faults.appends = [{ kind: 'cut', written: round % 2 === 0 }];
        const slow = fixture.store.append('svc-b', round === 0 ? 'no_stream' : round - 1, commandOf(1));
        expect((await store.append(`svc-${round}`, 'no_stream', commandOf(1))).kind).toBe('unknown');
        expect(await slow).toMatchObject({ kind: 'appended', revision: round });
      }
    } finally {
      await store.close();
      await other.close();
    }
  });
});
