/**
 * What every event store must do, and no more than `src/storage/event-store.ts` promises. Runs against each adapter and
 * against the hostile wrapper. Streams are new in each test, so a shared server works.
 */
import { createHash, randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { eventBytesMax, type ProposedEvent, type RecordedEvent, type StoredEvent } from '../../../src/kernel/event.js';
import { eventBytes } from '../../../src/storage/event-json.js';
import {
  lastRevision,
  newestEvent,
  passedBy,
  type EventStore,
  type ExpectedRevision,
  type ResumePoint,
} from '../../../src/storage/event-store.js';
import {
  appendAtEnd,
  appendSurely,
  collectLog,
  collectRead,
  commandOf,
  findEvents,
  isDrop,
  readAll,
  type Settled,
} from './appending.js';
import { ownEvent } from '../../../src/storage/broken-log.js';
import { limits } from '../../../src/kernel/limits.js';
import { bounds } from '../../../src/storage/bounds.js';
import { eventually } from '../../support/eventually.js';

export interface EventStoreHarness {
  /** The currently open store. */
  store(): EventStore;
  /** Closes the store and opens it again on the same data. */
  reopen(): Promise<void>;
  /** Ends the store's process or server as a crash does, then makes `store()` usable again. */
  kill?(): Promise<void>;
  close(): Promise<void>;
}

const idsOf = (events: readonly { id: string }[]): string[] => events.map(({ id }) => id);

function expectOrdered(events: readonly RecordedEvent[]): void {
  const revisions = new Map<string, number>();
  let position = -1;
  for (const event of events) {
    expect(event.position).toBeGreaterThan(position);
    position = event.position;
    const before = revisions.get(event.stream);
    if (before !== undefined) expect(event.revision).toBe(before + 1);
    revisions.set(event.stream, event.revision);
  }
}

export function eventStoreContract(name: string, open: () => Promise<EventStoreHarness>): void {
  describe(`event store contract: ${name}`, () => {
    let harness: EventStoreHarness;
    let prefix: string;
    let stream: string;
    const store = (): EventStore => harness.store();
    const streams = (): readonly string[] => [stream, ...Array.from({ length: 4 }, (_, index) => `${prefix}${index}`)];

    beforeEach(async () => {
      harness = await open();
      prefix = `svc-${randomUUID()}-`;
      stream = `${prefix}a`;
    });
    afterEach(async () => {
      await harness.close();
    });

    describe('append and read', () => {
      it('counts revisions from 0 and returns what was appended', async () => {
        const first = commandOf(2, { text: 'ü ✓ \u{1f600}', nested: { list: [1, 2.5, null, true, { a: '' }] } });
        const second = commandOf(1);
        expect(await appendSurely(store(), stream, 'no_stream', first)).toEqual({ kind: 'appended', revision: 1 });
        expect(await appendSurely(store(), stream, 1, second)).toEqual({ kind: 'appended', revision: 2 });
        const read = await readAll(store(), stream);
        expect(read.map(({ revision }) => revision)).toEqual([0, 1, 2]);
        expectOrdered(read);
        const proposed = read.map(({ id, type, data, metadata }) => ({ id, type, data, metadata }));
        expect(proposed).toEqual([...first, ...second]);
        expect(read.every((event) => event.stream === stream)).toBe(true);
      });

      it('stores any JSON and all metadata unchanged', async () => {
        const value = fc.jsonValue({ depthSize: 'small' });
        const samples = fc.sample(value, { numRuns: 40, seed: 7 }).map((data) => JSON.parse(JSON.stringify(data)));
        const [event] = commandOf(1);
        const events: ProposedEvent[] = samples.map((data, index) => ({
          ...event!,
          id: randomUUID(),
          data: { data, __type: 'x', 'a key': 1 },
          metadata: {
            ...event!.metadata,
            command: { id: 'c', index, count: samples.length },
            ...(index % 2 === 0 ? { revert_of: 'r', idempotency: { key_hash: 'k', body_hash: 'b' } } : {}),
          },
        }));
        await appendSurely(store(), stream, 'no_stream', events);
        const read = await readAll(store(), stream);
        expect(read.map(({ data }) => data)).toEqual(events.map(({ data }) => data));
        expect(read.map(({ metadata }) => metadata)).toEqual(events.map(({ metadata }) => metadata));
      });

      it('reads in both directions, from any revision, up to the given count', async () => {
        for (let index = 0; index < 5; index += 1) await appendAtEnd(store(), stream, commandOf(2));
        const read = async (direction: 'forward' | 'backward', from: number | 'start' | 'end', maxCount: number) =>
          (await collectRead(store().read(stream, { direction, from, maxCount }))).map(({ revision }) => revision);
        expect(await read('forward', 'start', 100)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        expect(await read('forward', 7, 100)).toEqual([7, 8, 9]);
        expect(await read('forward', 2, 3)).toEqual([2, 3, 4]);
        expect(await read('forward', 10, 100)).toEqual([]);
        expect(await read('backward', 'end', 3)).toEqual([9, 8, 7]);
        expect(await read('backward', 4, 100)).toEqual([4, 3, 2, 1, 0]);
        expect(await read('backward', 400, 2)).toEqual([9, 8]);
        expect(await lastRevision(store(), stream)).toBe(9);
      });

      it('reads a missing stream as empty', async () => {
        expect(await readAll(store(), stream)).toEqual([]);
        expect(await collectRead(store().read(stream, { direction: 'backward', from: 'end', maxCount: 1 }))).toEqual(
          [],
        );
        expect(await lastRevision(store(), stream)).toBeUndefined();
      });

      it('allows a read to be abandoned', async () => {
        await appendAtEnd(store(), stream, commandOf(5));
        // More than the hundred streams of a connection.
        for (let round = 0; round < 110; round += 1) {
          for await (const event of store().read(stream, { direction: 'forward', from: 'start', maxCount: 5 })) {
            expect(event.revision).toBe(0);
            break;
          }
        }
        expect(await readAll(store(), stream)).toHaveLength(5);
      });

      it("tells its clock's time, or that it is not earlier than the newest event", async () => {
        await appendAtEnd(store(), stream, commandOf(1));
        const time = await store().time();
        expect(time?.kind).toMatch(/^(clock|not_before)$/);
        expect(Math.abs((time?.at ?? 0) - Date.now())).toBeLessThan(time?.kind === 'clock' ? 2_500 : 20_000);
      });

      it('takes the largest command, as one event and as many', async () => {
        const text = (count: number, bytes: number) => {
          const [probe] = commandOf(count, { text: '' });
          return 'x'.repeat(Math.floor(bytes / count) - (probe === undefined ? 0 : eventBytes(probe)) - 4);
        };
        for (const count of [1, 400]) {
          const events = commandOf(count, { text: text(count, limits.events.commandBytes) });
          const bytes = events.reduce((sum, event) => sum + eventBytes(event), 0);
          expect(bytes).toBeGreaterThan(limits.events.commandBytes - 10 * count);
          await appendAtEnd(store(), stream, events);
          const read = await collectRead(store().read(stream, { direction: 'backward', from: 'end', maxCount: count }));
          expect(read.map(({ id }) => id)).toEqual(events.map(({ id }) => id).reverse());
          expect(read.at(-1)?.data).toEqual(events[0]?.data);
        }
      });

      it("refuses an empty list and anything beyond the limits as the caller's fault", async () => {
        await expect(store().append(stream, 'any', [])).rejects.toThrow(RangeError);
        const large = commandOf(1, { text: 'x'.repeat(eventBytesMax) });
        await expect(store().append(stream, 'any', large)).rejects.toThrow(RangeError);
        const many = Array.from({ length: 9 }, () => commandOf(1, { text: 'x'.repeat(200_000) })).flat();
        await expect(store().append(stream, 'any', many)).rejects.toThrow(RangeError);
        expect(await readAll(store(), stream)).toEqual([]);
      });
    });

    describe('expected revision', () => {
      it('reports the actual revision of a conflict and writes nothing', async () => {
        expect(await appendSurely(store(), stream, 3, commandOf(1))).toEqual({ kind: 'conflict', actual: 'no_stream' });
        await appendSurely(store(), stream, 'no_stream', commandOf(3));
        expect(await appendSurely(store(), stream, 'no_stream', commandOf(1))).toEqual({ kind: 'conflict', actual: 2 });
        expect(await appendSurely(store(), stream, 1, commandOf(1))).toEqual({ kind: 'conflict', actual: 2 });
        expect(await appendSurely(store(), stream, 9, commandOf(1))).toEqual({ kind: 'conflict', actual: 2 });
        expect(await readAll(store(), stream)).toHaveLength(3);
      });

      it('lets exactly one of several racing appends win', async () => {
        let expected: ExpectedRevision = 'no_stream';
        for (let round = 0; round < 15; round += 1) {
          const racers = Array.from({ length: 6 }, (_, racer) => commandOf(1 + (racer % 3), { round, racer }));
          const before: ExpectedRevision = expected;
          const outcomes: Settled[] = await Promise.all(
            racers.map((events) => appendSurely(store(), stream, before, events)),
          );
          const winners: ProposedEvent[][] = racers.filter((_, racer) => outcomes[racer]?.kind === 'appended');
          expect(winners).toHaveLength(1);
          const start: number = typeof before === 'number' ? before + 1 : 0;
          const tail = await collectRead(store().read(stream, { direction: 'forward', from: start, maxCount: 100 }));
          expect(idsOf(tail)).toEqual(idsOf(winners[0]!));
          expected = start + winners[0]!.length - 1;
        }
      });

      it('`any` always appends at the end', async () => {
        for (let round = 0; round < 5; round += 1) {
          const events = commandOf(1, { round });
          let outcome = await store().append(stream, 'any', events);
          // The outcome is unknown and a repeat could write twice, so look first and wait for a late write.
          while (outcome.kind !== 'appended') {
            await delay(20);
            const revision = await findEvents(store(), stream, events);
            if (revision !== undefined) break;
            outcome = await store().append(stream, 'any', events);
          }
        }
        const read = await readAll(store(), stream);
        expectOrdered(read);
        // Each after those before it; a late write may repeat one.
        expect([...new Set(read.map(({ data }) => data['round']))]).toEqual([0, 1, 2, 3, 4]);
      });
    });

    describe('a repeated append', () => {
      it('gets the answer of the first try and writes nothing', async () => {
        const first = commandOf(3);
        const second = commandOf(2);
        await appendSurely(store(), stream, 'no_stream', first);
        await appendSurely(store(), stream, 2, second);
        const before = await readAll(store(), stream);
        for (let repeat = 0; repeat < 5; repeat += 1) {
          expect(await appendSurely(store(), stream, 'no_stream', first)).toEqual({ kind: 'appended', revision: 2 });
          expect(await appendSurely(store(), stream, 2, second)).toEqual({ kind: 'appended', revision: 4 });
        }
        expect(await readAll(store(), stream)).toEqual(before);
      });

      it('gets the original position, if any', async () => {
        const events = commandOf(2);
        await appendSurely(store(), stream, 'no_stream', events);
        const [, last] = await readAll(store(), stream);
        for (let repeat = 0; repeat < 20; repeat += 1) {
          const outcome = await store().append(stream, 'no_stream', events);
          if (outcome.kind !== 'appended') continue;
          expect([undefined, last!.position]).toContain(outcome.position);
        }
      });

      it('is a conflict when its list of events differs', async () => {
        const [a, b, c] = commandOf(3);
        await appendSurely(store(), stream, 'no_stream', [a!, b!]);
        expect(await appendSurely(store(), stream, 'no_stream', [a!, b!, c!])).toEqual({ kind: 'conflict', actual: 1 });
        expect(await appendSurely(store(), stream, 'no_stream', [b!, a!])).toEqual({ kind: 'conflict', actual: 1 });
        expect(await appendSurely(store(), stream, 'no_stream', [a!, c!])).toEqual({ kind: 'conflict', actual: 1 });
        expect(idsOf(await readAll(store(), stream))).toEqual([a!.id, b!.id]);
      });

      it('is recognised after the store was opened again', async () => {
        const events = commandOf(2);
        await appendSurely(store(), stream, 'no_stream', events);
        await appendSurely(store(), stream, 1, commandOf(1));
        await harness.reopen();
        expect(await appendSurely(store(), stream, 'no_stream', events)).toEqual({ kind: 'appended', revision: 1 });
        expect(await readAll(store(), stream)).toHaveLength(3);
      });
    });

    describe('the order of the whole log', () => {
      it('keeps appends together and agrees with the streams under concurrent appends', async () => {
        const targets = Array.from({ length: 4 }, (_, index) => `${prefix}${index}`);
        const groups: ProposedEvent[][] = [];
        await Promise.all(
          targets.map(async (target) => {
            for (let round = 0; round < 14; round += 1) {
              const group = commandOf(1 + ((round * 7) % 20), { round });
              groups.push(group);
              await appendAtEnd(store(), target, group);
            }
          }),
        );
        const total = groups.reduce((sum, group) => sum + group.length, 0);
        const { events } = await collectLog(store(), streams(), 'start', (all) => all.length >= total);
        expect(events).toHaveLength(total);
        expectOrdered(events);
        const place = new Map(events.map((event, index) => [event.id, index]));
        for (const group of groups) {
          const at = place.get(group[0]!.id)!;
          expect(idsOf(events.slice(at, at + group.length))).toEqual(idsOf(group));
        }
        for (const target of targets) {
          expect(await readAll(store(), target)).toEqual(events.filter((event) => event.stream === target));
        }
        expect(await store().headPosition()).toBeGreaterThanOrEqual(events.at(-1)!.position);
      });
    });

    describe('subscriptions', () => {
      it('deliver every event of the streams and no other, from any point, during appends', async () => {
        const target = 160;
        const others = [`x${prefix}0`, `${prefix}0-2`, `${prefix}10`, `${prefix}01\n`];
        const load = (async () => {
          for (let written = 0; written < target;) {
            const count = Math.min(1 + ((written * 13) % 9), target - written);
            await appendAtEnd(store(), `${prefix}${written % 3}`, commandOf(count));
            if (written % 4 === 0) await appendAtEnd(store(), others[written % others.length]!, commandOf(1));
            written += count;
          }
        })();
        const live = await Promise.all(
          Array.from({ length: 4 }, () => collectLog(store(), streams(), 'start', (all) => all.length >= target)),
        );
        await load;
        const [{ events, points }] = live as [{ events: RecordedEvent[]; points: ResumePoint[] }];
        expect(events).toHaveLength(target);
        expectOrdered(events);
        for (const one of live) expect(idsOf(one.events)).toEqual(idsOf(events));
        for (let index = 0; index < points.length; index += 23) {
          const point = points[index]!;
          const rest = events.filter(({ position }) => position > passedBy(point));
          const again = await collectLog(store(), streams(), point, (all, item) =>
            rest.length === 0 ? item.kind === 'caught_up' : all.length >= rest.length,
          );
          expect(idsOf(again.events)).toEqual(idsOf(rest));
        }
      });

      it('report caught_up only after everything that was there at the start', async () => {
        for (let index = 0; index < 20; index += 1) await appendAtEnd(store(), `${prefix}${index % 2}`, commandOf(7));
        const { events } = await collectLog(store(), streams(), 'start', (_, item) => item.kind === 'caught_up');
        expect(events.length).toBeGreaterThanOrEqual(140);
      });

      it('deliver what is appended after they have caught up', async () => {
        await appendAtEnd(store(), stream, commandOf(1));
        let appended: Promise<number> | undefined;
        const { events } = await collectLog(store(), streams(), 'start', (all, item) => {
          if (item.kind === 'caught_up') appended ??= appendAtEnd(store(), stream, commandOf(3));
          return all.length >= 4;
        });
        await appended;
        expect(events.map(({ revision }) => revision)).toEqual([0, 1, 2, 3]);
      });

      it('split many events into bounded batches', async () => {
        for (let index = 0; index < 13; index += 1) await appendAtEnd(store(), stream, commandOf(100));
        let largest = 0;
        const { events } = await collectLog(store(), streams(), 'start', (all, item) => {
          if (item.kind === 'events') largest = Math.max(largest, item.events.length);
          return all.length >= 1300;
        });
        expect(events).toHaveLength(1300);
        expect(largest).toBeLessThanOrEqual(bounds.itemEvents);
      });

      it('bound a batch in bytes', async () => {
        const text = 'x'.repeat(200_000);
        for (let index = 0; index < 10; index += 1) await appendAtEnd(store(), stream, commandOf(5, { text }));
        let largest = 0;
        const { events } = await collectLog(store(), streams(), 'start', (all, item) => {
          const bytes = item.kind === 'events' ? item.events.map((event) => eventBytes(ownEvent(event))) : [];
          // Allows one more event, as a store may notice the bound after passing it.
          largest = Math.max(
            largest,
            bytes.slice(0, -1).reduce((sum, size) => sum + size, 0),
          );
          return all.length >= 50;
        });
        expect(events).toHaveLength(50);
        expect(largest).toBeLessThanOrEqual(bounds.itemBytes);
      });

      it('give less at a time to a reader that wants little', async () => {
        const text = 'x'.repeat(20_000);
        for (let index = 0; index < 10; index += 1) await appendAtEnd(store(), stream, commandOf(5, { text }));
        for (let index = 0; index < 4; index += 1) await appendAtEnd(store(), stream, commandOf(10));
        const ahead = { events: 8, bytes: 50_000 };
        const little: EventStore = {
          ...store(),
          subscribe: (options) => store().subscribe({ ...options, ahead }),
        };
        const { events } = await collectLog(little, streams(), 'start', (all, item) => {
          if (item.kind !== 'events') return false;
          expect(item.events.length).toBeLessThanOrEqual(ahead.events);
          const bytes = item.events.map((event) => eventBytes(ownEvent(event))).slice(0, -1);
          expect(bytes.reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(ahead.bytes);
          return all.length >= 90;
        });
        expect(events).toHaveLength(90);
      });

      it('end without an error when they are aborted', async () => {
        await appendAtEnd(store(), stream, commandOf(2));
        for (let round = 0; round < 20; round += 1) {
          const stop = new AbortController();
          const timer = setTimeout(() => stop.abort(), round);
          try {
            for await (const item of store().subscribe({ streams: streams(), after: 'start', signal: stop.signal })) {
              if (round % 2 === 0 && item.kind === 'events') stop.abort();
            }
          } catch (error) {
            // A drop is allowed; an error because of the abort is not.
            expect(stop.signal.aborted).toBe(false);
            expect(error).toBeInstanceOf(Error);
          }
          clearTimeout(timer);
        }
      });
    });

    describe('retention', () => {
      it('hides events beyond $maxCount and keeps counting revisions', async () => {
        await appendAtEnd(store(), stream, commandOf(10));
        await store().setRetention(stream, { maxCount: 3 });
        const read = async (direction: 'forward' | 'backward', from: number | 'start' | 'end') =>
          (await collectRead(store().read(stream, { direction, from, maxCount: 100 }))).map(({ revision }) => revision);
        expect(await read('forward', 'start')).toEqual([7, 8, 9]);
        expect(await read('forward', 2)).toEqual([7, 8, 9]);
        expect(await read('backward', 'end')).toEqual([9, 8, 7]);
        expect(await read('backward', 4)).toEqual([]);
        expect(await appendSurely(store(), stream, 9, commandOf(2))).toEqual({ kind: 'appended', revision: 11 });
        expect(await read('forward', 'start')).toEqual([9, 10, 11]);
      });

      it('hides events older than $maxAge and keeps counting revisions', async () => {
        await store().setRetention(stream, { maxAgeSeconds: 1 });
        await appendAtEnd(store(), stream, commandOf(2));
        // A store may go by the time of its newest event.
        for (let waited = 0; (await readAll(store(), stream)).length > 0 && waited < 10_000; waited += 100) {
          await delay(100);
          await appendAtEnd(store(), `${stream}-other`, commandOf(1));
        }
        expect(await readAll(store(), stream)).toEqual([]);
        expect(await appendSurely(store(), stream, 'no_stream', commandOf(1))).toEqual({ kind: 'conflict', actual: 1 });
        expect(await appendSurely(store(), stream, 1, commandOf(1))).toEqual({ kind: 'appended', revision: 2 });
      });

      it('is set one by one: what is not named stays', async () => {
        await appendAtEnd(store(), stream, commandOf(5));
        await store().setRetention(stream, { maxCount: 2 });
        await store().setRetention(stream, { maxAgeSeconds: 3600 });
        expect((await readAll(store(), stream)).map(({ revision }) => revision)).toEqual([3, 4]);
      });

      it('survives a reopening', async () => {
        await store().setRetention(stream, { maxCount: 1 });
        await appendAtEnd(store(), stream, commandOf(3));
        await harness.reopen();
        expect((await readAll(store(), stream)).map(({ revision }) => revision)).toEqual([2]);
      });
    });

    describe('fold checkpoints', () => {
      const checkpoint = (size: number, revision: number) => {
        const bytes = new Uint8Array(Buffer.alloc(size, `${revision}`));
        const sha256 = createHash('sha256').update(bytes).digest('hex');
        return { foldVersion: 3, revision, position: revision * 2, sha256, bytes };
      };

      it('are loaded as saved, small or large, only the newest, also after a reopening', async () => {
        expect(await store().loadFoldCheckpoint(`${prefix}fold`)).toBeUndefined();
        for (const [index, size] of [10, 3_500_000, 0, 2_000_000].entries()) {
          const saved = checkpoint(size, index);
          await store().saveFoldCheckpoint(`${prefix}fold`, saved);
          const loaded = await store().loadFoldCheckpoint(`${prefix}fold`);
          expect({ ...loaded, bytes: 0 }).toEqual({ ...saved, bytes: 0 });
          expect(Buffer.compare(loaded!.bytes, saved.bytes)).toBe(0);
        }
        await store().saveFoldCheckpoint(`${prefix}other`, checkpoint(5, 9));
        await harness.reopen();
        expect((await store().loadFoldCheckpoint(`${prefix}fold`))?.bytes.byteLength).toBe(2_000_000);
        expect((await store().loadFoldCheckpoint(`${prefix}other`))?.revision).toBe(9);
      });
    });

    it('hands out an event that this service cannot have written as one, with its place', async () => {
      const [strange] = commandOf(1);
      await appendSurely(store(), stream, 'no_stream', commandOf(1));
      await eventually(async () => {
        await store().append(stream, 0, [{ ...strange!, metadata: { tenant: 'x' } as never }]);
        return lastRevision(store(), stream);
      }).toBe(1);
      const place = { id: strange!.id, type: strange!.type, stream, revision: 1, position: expect.any(Number) };
      const expected = { ...place, foreign: 'its metadata names no command' };
      expect(await newestEvent(store(), stream)).toEqual(expected);
      await eventually(async () => {
        const { signal } = new AbortController();
        let last: StoredEvent | undefined;
        try {
          for await (const item of store().subscribe({ streams: streams(), after: 'start', signal })) {
            if (item.kind === 'events') last = item.events.at(-1);
            if (last?.revision === 1) break;
          }
        } catch (error) {
          if (!isDrop(error)) throw error;
        }
        return last;
      }).toEqual(expected);
    });

    it('keeps everything when it is opened again', async () => {
      await appendAtEnd(store(), stream, commandOf(5));
      const before = await readAll(store(), stream);
      const head = await store().headPosition();
      await harness.reopen();
      expect(await readAll(store(), stream)).toEqual(before);
      expect(await store().headPosition()).toBeGreaterThanOrEqual(head);
      expect(await appendAtEnd(store(), stream, commandOf(1))).toBe(5);
      const { events } = await collectLog(store(), streams(), 'start', (all) => all.length >= 6);
      expectOrdered(events);
      await store().ping();
    });

    it('keeps what it acknowledged when it is killed', async (context) => {
      if (harness.kill === undefined) return context.skip();
      await appendAtEnd(store(), stream, commandOf(5));
      await harness.kill();
      expect(await readAll(store(), stream)).toHaveLength(5);
    });
  });
}
