/** Subscriptions survive every way in which real servers end, repeat, hold back or add something. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { yieldToEventLoop } from '../../../src/kernel/background.js';
import type { RecordedEvent } from '../../../src/kernel/event.js';
import type { LogItem, ResumePoint } from '../../../src/storage/event-store.js';
import { ownEvent } from '../../../src/storage/broken-log.js';
import { subscriptionPlaces } from '../../../src/storage/eventstoredb/connection.js';
import { eventually } from '../../support/eventually.js';
import { appendAtEnd, commandOf } from '../contract/appending.js';
import { following, impatient, openFixture, takeUntil, writeForeign, type Fixture } from './fixture.js';
import { tuning } from '../../../src/storage/eventstoredb/tuning.js';

const eventsOf = (items: readonly LogItem[]): RecordedEvent[] =>
  items.flatMap((item) => (item.kind === 'events' ? item.events.map(ownEvent) : []));
const isCaughtUp = (item: LogItem): boolean => item.kind === 'caught_up';

describe('subscriptions to EventStoreDB', { timeout: 60_000 }, () => {
  let fixture: Fixture;
  const stop = new AbortController();
  const subscribe = (after: ResumePoint | 'start' = 'start'): AsyncIterable<LogItem> =>
    fixture.store.subscribe({ streams: ['svc-a', 'svc-b', 'svc-c'], after, signal: stop.signal });
  const writeCommands = async (count: number, events: number): Promise<void> => {
    for (let round = 0; round < count; round += 1) await appendAtEnd(fixture.store, 'svc-a', commandOf(events));
  };
  beforeEach(async () => {
    fixture = await openFixture();
  });
  afterEach(() => fixture.close());

  it('throw when the server ends them, so that the consumer subscribes again', async () => {
    await fixture.store.append('svc-a', 'no_stream', commandOf(3));
    const seen: LogItem[] = [];
    const running = (async () => {
      for await (const item of subscribe()) {
        seen.push(item);
        if (isCaughtUp(item)) fixture.server.dropSubscriptions('end');
      }
    })();
    await expect(running).rejects.toMatchObject({ code: 'unavailable' });
    expect(eventsOf(seen)).toHaveLength(3);
    await eventually(() => subscriptionPlaces.taken()).toBe(0);
    expect(fixture.lines.some(({ level }) => level === 'warn')).toBe(true);
  });

  it('resume at once after the last event when dropped as too slow: the consumer sees neither an error nor a repeat', async () => {
    // In the middle of every other command.
    fixture.server.faults.dropAfter = 7;
    const revisions: number[] = [];
    for await (const item of subscribe()) {
      if (isCaughtUp(item) && revisions.length === 0) void writeCommands(40, 5);
      if (item.kind !== 'events') continue;
      revisions.push(...item.events.map(({ revision }) => revision));
      if (revisions.length >= 200) break;
    }
    expect(revisions).toEqual(Array.from({ length: 200 }, (_, revision) => revision));
    expect(fixture.lines.filter(({ level }) => level === 'debug').length).toBeGreaterThan(3);
    expect(fixture.lines.filter(({ level }) => level !== 'debug')).toEqual([]);
  });

  it('finally throw when dropped as too slow before every event', async () => {
    const running = (async () => {
      for await (const item of subscribe()) if (isCaughtUp(item)) fixture.server.dropSubscriptions('too_slow');
    })();
    await expect(running).rejects.toMatchObject({ code: 'unavailable' });
    expect(fixture.lines.filter(({ level }) => level === 'warn')).toHaveLength(1);
  });

  it('resume where the server ended them, with every command once and in order', async () => {
    fixture.server.faults.endAfter = 7;
    const { revisions, stop: end } = following(fixture.store);
    for (let round = 0; round < 60; round += 1) await appendAtEnd(fixture.store, 'svc-a', commandOf(1 + (round % 4)));
    await eventually(() => revisions.length).toBe(150);
    await end();
    expect(revisions).toEqual(revisions.map((_, revision) => revision));
  });

  it('survive a server that goes away and comes back, as the consumer subscribes again', async () => {
    await appendAtEnd(fixture.store, 'svc-a', commandOf(2));
    const { kinds, revisions, stop: end } = following(fixture.store);
    await eventually(() => kinds).toContain('caught_up');
    await fixture.server.refuse();
    await fixture.server.listen();
    await appendAtEnd(fixture.store, 'svc-a', commandOf(2));
    await eventually(() => revisions).toEqual([0, 1, 2, 3]);
    await end();
    expect(kinds).toContain('dropped');
  });

  it('pass on a repeated caught_up, and repeat nothing else', async () => {
    fixture.server.faults.caughtUpRepeats = true;
    let caughtUps = 0;
    const items = await takeUntil(subscribe(), (item) => {
      if (item.kind !== 'caught_up') return false;
      caughtUps += 1;
      if (caughtUps < 3) void appendAtEnd(fixture.store, 'svc-a', commandOf(1));
      return caughtUps === 3;
    });
    expect(eventsOf(items).map(({ revision }) => revision)).toEqual([0, 1]);
  });

  it('deliver nothing that the server wrote: no metadata, no tombstones', async () => {
    await fixture.store.append('svc-a', 'no_stream', commandOf(1));
    await fixture.store.append('svc-b', 'no_stream', commandOf(1));
    await fixture.store.setRetention('svc-a', { maxCount: 5 });
    fixture.server.log.softDelete('svc-a', { kind: 'any' });
    fixture.server.log.tombstone('svc-b', { kind: 'any' });
    const items = await takeUntil(subscribe(), isCaughtUp);
    expect(eventsOf(items).map(({ stream }) => stream)).toEqual(['svc-a', 'svc-b']);
  });

  it('report checkpoints with both halves among foreign events, and resume from each without a gap', async () => {
    await fixture.store.append('svc-a', 'no_stream', commandOf(2));
    writeForeign(fixture.server, tuning.searchWindow * 3);
    await fixture.store.append('svc-a', 1, commandOf(2));
    const items = await takeUntil(subscribe(), isCaughtUp);
    const points = items.flatMap((item) => (item.kind === 'checkpoint' ? [item.point] : []));
    expect(points.some(({ prepare }) => prepare === 0)).toBe(true);
    expect(eventsOf(items).map(({ revision }) => revision)).toEqual([0, 1, 2, 3]);
    for (const point of points) {
      const rest = eventsOf(await takeUntil(subscribe(point), isCaughtUp)).map(({ revision }) => revision);
      expect(rest).toEqual([2, 3]);
    }
  });

  it('queue a bounded number of events for a slow consumer and lose none', async () => {
    const total = 1_200;
    await fixture.close();
    fixture = await openFixture(undefined, { queueHigh: 300, queueLow: 50 });
    for (let written = 0; written < total; written += 300) {
      await appendAtEnd(fixture.store, 'svc-a', commandOf(300));
    }
    let next = 0;
    for await (const item of subscribe()) {
      if (item.kind !== 'events') continue;
      // One more may arrive while the flow is being paused.
      expect(item.events.length).toBeLessThanOrEqual(301);
      for (const { revision } of item.events) expect(revision).toBe(next++);
      if (next >= total) break;
      for (let turn = 0; turn < 20; turn += 1) await yieldToEventLoop();
    }
    expect(next).toBe(total);
  });

  it.each([
    ['beyond the end of a log restored from a backup', 4_000_000_000, 'restored from an older backup'],
    ['that is not in this log', 1, 'not the one'],
  ])('refuse a position %s, and log an error', async (_, after, message) => {
    await fixture.store.append('svc-a', 'no_stream', commandOf(3));
    const position = fixture.server.log.all[0]!.position + after;
    await expect(takeUntil(subscribe({ commit: position, prepare: position }), isCaughtUp)).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining(message),
    });
    expect(fixture.lines.filter(({ level }) => level === 'error')).toHaveLength(1);
  });

  it('throw instead of stopping silently when a position is beyond the safe integers', async () => {
    fixture.server.faults.wildCheckpoints = true;
    await expect(takeUntil(subscribe(), isCaughtUp)).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining('2^53'),
    });
  });

  it('may deliver an event before its append is answered', async () => {
    fixture.server.faults.appends = [{ kind: 'answer_late', ms: 600 }];
    let answered = false;
    const appending = fixture.store.append('svc-a', 'no_stream', commandOf(1)).then((outcome) => {
      answered = true;
      return outcome;
    });
    await takeUntil(subscribe(), ({ kind }) => kind === 'events');
    expect(answered).toBe(false);
    expect(await appending).toMatchObject({ kind: 'appended', revision: 0 });
  });

  it('throw in time when never confirmed', async () => {
    await fixture.close();
    fixture = await openFixture(undefined, impatient);
    fixture.server.faults.silentReads = true;
    await expect(takeUntil(subscribe(), isCaughtUp)).rejects.toMatchObject({ code: 'unavailable' });
  });

  it('leave nothing open at the server when abandoned or when the store is closed', async () => {
    await fixture.store.append('svc-a', 'no_stream', commandOf(1));
    for (let round = 0; round < 3; round += 1) await takeUntil(subscribe(), isCaughtUp);
    await eventually(() => fixture.server.subscriptions()).toBe(0);
    const open = subscribe()[Symbol.asyncIterator]();
    await open.next();
    expect(fixture.server.subscriptions()).toBe(1);
    await fixture.store.close();
    await eventually(() => fixture.server.subscriptions()).toBe(0);
    await expect(
      (async () => {
        while ((await open.next()).done !== true);
      })(),
    ).rejects.toMatchObject({ code: 'unavailable' });
  });
});
