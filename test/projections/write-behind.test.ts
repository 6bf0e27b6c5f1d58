/** When the backlog is written, and what may be called durable meanwhile. No store: the segments are held by the test. */
import { afterEach, describe, expect, it } from 'vitest';
import type { RecordedCommand } from '../../src/kernel/event.js';
import type { ResumePoint } from '../../src/storage/event-store.js';
import type { Backlog, Segment } from '../../src/projections/engine/backlog.js';
import { createWriteBehind } from '../../src/projections/engine/write-behind.js';
import type { WriteBehind } from '../../src/projections/engine/write-behind.js';
import { tuning } from '../../src/projections/tuning.js';
import { eventually } from '../support/eventually.js';
import { asRecorded, sessionOpened } from '../support/read-side.js';

const commands = (count: number): readonly RecordedCommand[] =>
  asRecorded(Array.from({ length: count }, () => sessionOpened('n')));
const at = (commit: number): ResumePoint => ({ commit, prepare: commit });

/** A backlog of commands whose writes end when the test says so. */
function heldBacklog(): { readonly backlog: Backlog; release(): void; readonly writes: () => number } {
  let waiting: RecordedCommand[] = [];
  let writes = 0;
  let release = (): void => undefined;
  let held = Promise.resolve();
  const hold = (): void => {
    held = new Promise((resolve) => {
      release = resolve;
    });
  };
  hold();
  return {
    writes: () => writes,
    release() {
      release();
      hold();
    },
    backlog: {
      async add(more) {
        waiting.push(...more);
      },
      events: () => waiting.length,
      full: () => waiting.length >= tuning.segmentEvents,
      poisoned: () => false,
      take() {
        const segment: Segment = { commands: waiting, writes: new Map(), poisoned: [] };
        waiting = [];
        return segment;
      },
      async write() {
        writes += 1;
        await held;
      },
    },
  };
}

let stop: AbortController;
let behind: WriteBehind;
/** What became durable, in order: the number of commands of a segment, or the position of a point. */
let durable: (string | number)[];
let held: ReturnType<typeof heldBacklog>;

function start(): void {
  stop = new AbortController();
  durable = [];
  held = heldBacklog();
  behind = createWriteBehind({
    backlog: held.backlog,
    signal: stop.signal,
    persist: (_what, turn) => turn(),
    onWritten: (segment) => durable.push(`${segment.commands.length} commands`),
    onPassed: ({ commit }) => durable.push(commit),
    onFailure: () => undefined,
  });
}
afterEach(async () => {
  stop.abort();
  held.release();
  await behind.close();
});

describe('a point of the log that has been read', () => {
  it('is passed at once when nothing waits', () => {
    start();
    behind.passed(at(7));
    expect(durable).toEqual([7]);
  });

  it('is not passed while a few events below it wait for more', async () => {
    start();
    await behind.add(commands(1));
    behind.passed(at(5));
    expect([held.writes(), durable]).toEqual([0, []]);
    const flushed = behind.flush();
    await eventually(() => held.writes()).toBe(1);
    expect(durable).toEqual([]);
    held.release();
    await flushed;
    expect(durable).toEqual(['1 commands', 5]);
  });

  it('is not passed before the events below it are written, folded or on their way', async () => {
    start();
    await behind.add(commands(tuning.segmentEvents));
    expect(held.writes()).toBe(1);
    behind.passed(at(10));
    await behind.add(commands(1));
    behind.passed(at(20));
    expect(durable).toEqual([]);
    const flushed = behind.flush();
    held.release();
    await eventually(() => held.writes()).toBe(2);
    // The first segment is durable; 20 lies behind the second.
    expect(durable).toEqual([`${tuning.segmentEvents} commands`]);
    held.release();
    await flushed;
    expect(durable).toEqual([`${tuning.segmentEvents} commands`, '1 commands', 20]);
  });
});

describe('a log that falls silent before its end', () => {
  it('has its few events written all the same', async () => {
    start();
    await behind.add(commands(1));
    await eventually(() => held.writes()).toBe(1);
    held.release();
    await eventually(() => durable).toEqual(['1 commands']);
  });
});
