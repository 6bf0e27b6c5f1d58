/**
 * Checkpoints of servers that mean something else by them than 23.10: the end of the log, or no position at all. Every
 * event is delivered exactly once, whichever of them a follower resumes at.
 */
import { afterEach, describe, expect, it } from 'vitest';
import { silentLogger } from '../../../src/kernel/logger.js';
import { ofAnotherLog } from '../../../src/projections/engine/another-log.js';
import type { Projections } from '../../../src/projections/port.js';
import { startProjections } from '../../../src/projections/projections.js';
import { placeOf, readLayout } from '../../../src/projections/engine/layout.js';
import { groupName, groupVersion } from '../../../src/projections/read-models.js';
import { passedBy, type LogItem, type ResumePoint } from '../../../src/storage/event-store.js';
import { append, caughtUp, dump, signedIn } from '../../support/read-side.js';
import { eventually } from '../../support/eventually.js';
import { createManualClock } from '../../support/manual-clock.js';
import { openTemporaryStores } from '../../support/temporary-stores.js';
import { appendAtEnd, commandOf } from '../contract/appending.js';
import { following, openFixture, takeUntil, writeForeign, type Fixture } from './fixture.js';

const isCaughtUp = (item: LogItem): boolean => item.kind === 'caught_up';

describe('checkpoints of EventStoreDB', { timeout: 20_000 }, () => {
  let fixture: Fixture;
  afterEach(async () => {
    await fixture.close();
  });
  const subscribe = (after: ResumePoint | 'start', signal = new AbortController().signal): AsyncIterable<LogItem> =>
    fixture.store.subscribe({ streams: ['svc-a', 'svc-b', 'svc-c'], after, signal });
  /** Revisions that a new follower gets from a point to the end of the log. */
  async function followed(after: ResumePoint | 'start', then?: () => Promise<unknown>): Promise<number[]> {
    const { kinds, revisions, stop } = following(fixture.store, after);
    await eventually(() => kinds).toContain('caught_up');
    if (then !== undefined) {
      const before = revisions.length;
      await then();
      await eventually(() => revisions.length).toBeGreaterThan(before);
    }
    await stop();
    expect(kinds).not.toContain('dropped');
    return revisions;
  }
  const lastCheckpoint = (items: readonly LogItem[]): ResumePoint | undefined =>
    items.flatMap((item) => (item.kind === 'checkpoint' ? [item.point] : [])).at(-1);

  it('name the end of the log after an empty page (25.0.0): the next event, written there, is delivered once', async () => {
    fixture = await openFixture();
    fixture.server.faults.later = '25.0';
    // A full page, so that the server reads an empty one after it.
    for (let revision = -1; revision < 31; revision += 8) await appendAtEnd(fixture.store, 'svc-a', commandOf(8));
    const end = lastCheckpoint(await takeUntil(subscribe('start'), isCaughtUp));
    expect(end).toEqual({ commit: fixture.server.log.end(), prepare: 0 });

    expect(await followed(end!, () => appendAtEnd(fixture.store, 'svc-a', commandOf(1)))).toEqual([32]);
    expect(fixture.server.log.all.at(-1)!.position).toBe(end!.commit);
    expect(await followed(end!)).toEqual([32]);
    expect(await followed(end!, () => appendAtEnd(fixture.store, 'svc-a', commandOf(1)))).toEqual([32, 33]);
    // In the middle of a command.
    fixture.server.faults.dropAfter = 1;
    expect(await followed(end!, () => appendAtEnd(fixture.store, 'svc-a', commandOf(3)))).toEqual([32, 33, 34, 35, 36]);
  });

  it('do not hold what lies at their commit position when the other half is lower', () => {
    expect(passedBy({ commit: 700, prepare: 0 })).toBe(699);
    expect(passedBy({ commit: 700, prepare: 700 })).toBe(700);
    expect(passedBy({ commit: 0, prepare: 0 })).toBe(0);
  });

  it('at the end of the log lose no read model an event, and a start with nothing written since is not refused', async () => {
    fixture = await openFixture();
    fixture.server.faults.later = '25.0';
    const clock = createManualClock();
    const stores = await openTemporaryStores(clock);
    const { store: eventStore } = fixture;
    const { readStore } = stores;
    const entries = async (): Promise<number> => (await dump(readStore))['audit']!.length;
    const started = async (): Promise<Projections> => {
      const projections = await startProjections({
        eventStore,
        readStore,
        logger: silentLogger,
        deletionTime: () => undefined,
      });
      await caughtUp(projections);
      return projections;
    };
    try {
      for (let count = 0; count < 32; count += 1) await append(eventStore, signedIn(null));
      await (await started()).close();
      const { number } = await readLayout(readStore, groupVersion);
      const stored = await readStore.loadCheckpoint(groupName, placeOf(groupVersion, number));
      expect(stored).toMatchObject({ commit: fixture.server.log.end(), prepare: 0 });

      expect(await ofAnotherLog(eventStore, readStore)).toBeUndefined();
      const before = await started();
      // A wait for the place of the next event must not be over before that event is there.
      expect(before.status().position).toBeLessThan(stored!.commit);
      await before.close();

      const { position } = await append(eventStore, signedIn(null));
      expect(position).toBe(stored!.commit);
      const after = await started();
      expect(after.status().position).toBe(position);
      expect(await entries()).toBe(33);
      await after.close();
    } finally {
      await stores.close();
    }
  });

  it('at no position (24.10) are passed over: a log without a matching event is followed to its end, and on from there', async () => {
    fixture = await openFixture();
    fixture.server.faults.later = '24.10';
    writeForeign(fixture.server, 3);
    const items = await takeUntil(subscribe('start'), isCaughtUp);
    expect(items.map(({ kind }) => kind)).toEqual(['caught_up']);
    expect(await followed('start', () => appendAtEnd(fixture.store, 'svc-a', commandOf(1)))).toEqual([0]);
    expect(await followed('start')).toEqual([0]);
  });

  it('at no position are no excuse for events there: these are refused', async () => {
    fixture = await openFixture();
    fixture.server.faults.eventsNowhere = true;
    await fixture.store.append('svc-a', 'no_stream', commandOf(1));
    await expect(takeUntil(subscribe('start'), isCaughtUp)).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining('2^53'),
    });
  });
});
