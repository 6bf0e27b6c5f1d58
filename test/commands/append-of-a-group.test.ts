/** The append of a group: its outcome when the store says it, and when the store does not. */
import { describe, expect, test } from 'vitest';
import { appendGroup } from '../../src/commands/group.js';
import { tuning } from '../../src/commands/tuning.js';
import type { RecordedEvent } from '../../src/kernel/event.js';
import { silentLogger } from '../../src/kernel/logger.js';
import type { AppendOutcome, EventStore } from '../../src/storage/event-store.js';
import { createManualClock } from '../support/manual-clock.js';
import { eventOf, refused, storeOf, unavailable, unknown } from '../support/append-outcomes.js';

describe('the append of a group', () => {
  const clock = createManualClock();
  const group = [eventOf('A'), eventOf('B')];
  /** @param log the events that stand behind the expected revision at each search */
  function append(
    outcomes: AppendOutcome[],
    log: (readonly string[] | 'unreadable')[] = [],
    options: { readonly expected?: number; readonly aborted?: boolean; readonly advanceMs?: number } = {},
  ) {
    const { append: appendTo, appends } = storeOf(...outcomes);
    const ranges: unknown[] = [];
    const warnings: object[] = [];
    const store = {
      append: async (...args: Parameters<typeof appendTo>) => {
        clock.advance(options.advanceMs ?? 0);
        return appendTo(...args);
      },
      async *read(_stream: string, range: object) {
        ranges.push(range);
        const found = log.shift() ?? [];
        if (found === 'unreadable') throw new Error('away');
        for (const [index, id] of found.entries()) yield { id, position: 100 + index } as RecordedEvent;
      },
    } as unknown as EventStore;
    const stop = new AbortController();
    if (options.aborted === true) stop.abort();
    const logger = { ...silentLogger, warn: (fields: object) => void warnings.push(fields) };
    const outcome = appendGroup(
      { eventStore: store, clock, logger, signal: stop.signal },
      'svc-fleet',
      options.expected ?? 4,
      group,
    );
    return { outcome, appends, ranges, warnings };
  }
  const own = group.map(({ id }) => id);

  test('is expected behind the revision, or to begin its stream', async () => {
    const behind = append([]);
    expect(await behind.outcome).toEqual({ kind: 'appended', position: 7 });
    expect([behind.appends[0]?.expected, behind.appends[0]?.ids, behind.ranges, behind.warnings]).toEqual([
      4,
      own,
      [],
      [],
    ]);
    const zero = append([], [], { expected: 0 });
    await zero.outcome;
    const first = append([], [], { expected: -1 });
    await first.outcome;
    expect([zero.appends[0]?.expected, first.appends[0]?.expected]).toEqual([0, 'no_stream']);
  });

  test('is a conflict, or unavailable, at once while nothing may have been written', async () => {
    const conflict = append([{ kind: 'conflict', actual: 9 }]);
    expect(await conflict.outcome).toEqual({ kind: 'conflict' });
    for (const outcome of [unavailable, refused('stream'), refused('append')]) {
      const away = append([outcome]);
      expect(await away.outcome).toMatchObject({ kind: 'unavailable', cause: expect.any(String) });
      expect([away.appends.length, away.ranges, away.warnings.length]).toEqual([1, [], 1]);
    }
  });

  test('whose position the store does not say is read from the log', async () => {
    const { outcome, ranges } = append([{ kind: 'appended', revision: 6, position: undefined }], [own]);
    expect(await outcome).toEqual({ kind: 'appended', position: 101 });
    expect(ranges).toEqual([{ direction: 'forward', from: 5, maxCount: 2 }]);
  });

  test('whose outcome is unknown is looked for, and is a conflict when other events stand there', async () => {
    expect(await append([unknown], [own]).outcome).toEqual({ kind: 'appended', position: 101 });
    expect(await append([unknown], [['other', own[1] ?? '']]).outcome).toEqual({ kind: 'conflict' });
  });

  test('is tried again unchanged when the log has nothing or cannot be read, and no later answer says that nothing was written', async () => {
    const { outcome, appends, warnings } = append(
      [unknown, unavailable, { kind: 'conflict', actual: 6 }],
      [[], 'unreadable', own],
    );
    expect(await outcome).toEqual({ kind: 'appended', position: 101 });
    expect(appends.map(({ ids: tried }) => tried)).toEqual([own, own, own]);
    expect(warnings).toHaveLength(3);
  });

  test('stays unknown after so much time, so many tries, or when the gateway closes', async () => {
    const slow = append([unknown, unknown], [], { advanceMs: tuning.outcomeWaitMs });
    expect([await slow.outcome, slow.appends.length]).toEqual([{ kind: 'unknown' }, 1]);
    const quicker = append([unknown, unknown], [], { advanceMs: tuning.outcomeWaitMs / 2 });
    expect([await quicker.outcome, quicker.appends.length]).toEqual([{ kind: 'unknown' }, 2]);
    const closing = append([unknown], [], { aborted: true });
    expect([await closing.outcome, closing.appends.length]).toEqual([{ kind: 'unknown' }, 1]);
    const found = append([unknown], [own], { aborted: true });
    expect(await found.outcome).toMatchObject({ kind: 'appended' });
  });
});
