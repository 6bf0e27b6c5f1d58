/** How the runner follows the log: what it applies together, what it tells, where it continues and where it stops. No store. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ServiceError } from '../../src/kernel/errors.js';
import { allStreams, streams, type RecordedCommand } from '../../src/kernel/event.js';
import { silentLogger } from '../../src/kernel/logger.js';
import type { Parking } from '../../src/projections/engine/parked.js';
import { createProgress, createStatusBoard } from '../../src/projections/engine/progress.js';
import { startRunner, type Runner, type RunnerDeps } from '../../src/projections/engine/runner.js';
import type { ReadModel } from '../../src/projections/read-model.js';
import { tuning } from '../../src/projections/tuning.js';
import type { Checkpoint, Collection, ReadStore } from '../../src/storage/read-store.js';
import { caughtUp, delivered, drivenLog, type DrivenLog } from '../support/driven-log.js';
import { asRecorded, planned, type Planned } from '../support/read-side.js';
import { eventually } from '../support/eventually.js';

const refreshed = (count = 1, node_id = 'n'): Planned =>
  planned(
    streams.fleet,
    Array.from({ length: count }, () => ({ type: 'NodeConfigRefreshed', data: { node_id } })),
  );

/** Counts the events of each node. */
const counts: ReadModel = {
  name: 'counts',
  keys: ({ data }) => [String(data['node_id'])],
  evolve: (fields) => ({ events: Number(fields?.['events'] ?? 0) + 1 }),
};

let log: DrivenLog;
let lines: string[];
let told: string[];
let checkpoints: Checkpoint[];
/** What the next writes of documents throw, if anything. */
let outages: Error[];
/** The same of reads. */
let unreadable: Error[];
let documents: Map<string, unknown>;
let runners: Runner[];

beforeEach(() => {
  [log, lines, told, checkpoints, outages, unreadable] = [drivenLog(), [], [], [], [], []];
  [documents, runners] = [new Map(), []];
});
afterEach(async () => {
  for (const runner of runners) await runner.close();
});

function start(over: Partial<RunnerDeps> = {}) {
  const note =
    (level: string) =>
    (fields: object, message: string): void =>
      void lines.push(`${level} ${message} ${JSON.stringify(fields)}`);
  const logger = { ...silentLogger, info: note('info'), warn: note('warn'), error: note('error') };
  const inner = createProgress(0);
  /** Events that were applied together. */
  const together: number[] = [];
  const progress = {
    ...inner,
    applied(commands: readonly RecordedCommand[]) {
      together.push(commands.reduce((sum, { events }) => sum + events.length, 0));
      inner.applied(commands);
    },
  };
  const status = createStatusBoard(progress.position, () => [], logger);
  status.onChange(({ caughtUp: is, lastError }) => void told.push(`${is} ${lastError}`));
  const collection: Partial<Collection> = {
    async getMany(ids) {
      const outage = unreadable.shift();
      if (outage !== undefined) throw outage;
      return ids.flatMap((id) => (documents.has(id) ? [{ id, position: 0, fields: documents.get(id) as never }] : []));
    },
    async write(writes) {
      const outage = outages.shift();
      if (outage !== undefined) throw outage;
      for (const { id, fields } of writes) documents.set(id, fields);
    },
  };
  const parking: Parking = { has: () => false, list: () => [], add: async () => undefined };
  const runner = startRunner({
    eventStore: log.store,
    readStore: {
      saveCheckpoint: async (_name, _version, checkpoint) => void checkpoints.push(checkpoint),
    } as Partial<ReadStore> as ReadStore,
    logger,
    version: 1,
    target: {
      models: [counts],
      collections: new Map([['counts', collection as Collection]]),
      parking,
      logger,
      rebuilding: () => false,
    },
    progress,
    status,
    after: 'start',
    onCaughtUp: async () => void told.push('caught up'),
    ...over,
  });
  runners.push(runner);
  return { runner, status, progress, together };
}
const away = (): ServiceError => new ServiceError('unavailable', 'the store is away');

describe('the runner', () => {
  it('applies what is delivered together in parts of a thousand events, and a larger command alone', async () => {
    const { runner, together, status } = start();
    log.give(caughtUp);
    await eventually(() => status.current().caughtUp).toBe(true);
    const sizes = [400, 600, 1, 1500, 999, 1];
    const commands = asRecorded(sizes.map((count) => refreshed(count)));
    log.give(delivered(...commands));
    await eventually(() => together).toEqual([1000, 1, 1500, 1000]);
    expect(documents.get('n')).toEqual({ events: 3501 });
    const end = commands.at(-1)?.events.at(-1)?.position ?? 0;
    expect(runner.handled()).toEqual({ commit: end, prepare: end });
    expect(tuning.batchEvents).toBe(1000);
    // Nothing of this says that it is behind.
    expect(told).toEqual(['caught up', 'true null']);
  });

  it('writes what it catches up with, then the checkpoint, then tells that it has caught up', async () => {
    const order: string[] = [];
    const { status, progress } = start({
      async onCaughtUp() {
        order.push(`caught up with ${checkpoints.length} checkpoint, documents of ${documents.size}`);
      },
    });
    const commands = asRecorded([refreshed(2), refreshed(1)]);
    log.give(delivered(...commands), caughtUp);
    await eventually(() => status.current()).toMatchObject({ caughtUp: true, lastError: null });
    expect(order).toEqual(['caught up with 1 checkpoint, documents of 1']);
    const last = commands.at(-1)?.events.at(-1);
    const point = { commit: last?.position, prepare: last?.position, anchors: [] };
    expect(checkpoints).toEqual([{ ...point, anchors: [{ stream: streams.fleet, revision: 2, id: last?.id }] }]);
    expect(progress.position()).toBe(last?.position);
    expect(log.subscriptions).toMatchObject([{ streams: allStreams, after: 'start' }]);
  });

  it('waits while the log lacks an event that the read models hold, as a server does that is behind', async () => {
    const anchors = [{ stream: streams.fleet, revision: 3, id: 'held' }];
    const { status } = start({ after: { commit: 1, prepare: 1, anchors } });
    log.give(caughtUp);
    await eventually(() => status.current().lastError).toContain('which this log lacks');
    expect([log.subscriptions.length, status.current().caughtUp]).toEqual([0, false]);
  });

  it('moves on where the log has nothing for it', async () => {
    const { runner, progress, status } = start({ after: { commit: 1, prepare: 1, anchors: [] } });
    log.give(caughtUp);
    await eventually(() => status.current().caughtUp).toBe(true);
    log.give({ kind: 'checkpoint', point: { commit: 90, prepare: 89 } });
    await eventually(() => progress.position()).toBe(89);
    expect(runner.handled()).toEqual({ commit: 90, prepare: 89 });
    expect(log.subscriptions.map(({ after }) => after)).toEqual([{ commit: 1, prepare: 1, anchors: [] }]);
    await runner.close();
    expect(checkpoints.at(-1)).toEqual({ commit: 90, prepare: 89, anchors: [] });
  });
});

describe('a subscription that drops', () => {
  it('is told once, and once more when the read models are subscribed again', async () => {
    const { status } = start();
    const [first, second] = asRecorded([refreshed(), refreshed()]);
    log.give(delivered(first!), caughtUp);
    await eventually(() => status.current().caughtUp).toBe(true);
    expect(lines).toEqual([]);
    log.give(new Error('gone'), new Error('still gone'));
    await eventually(() => status.current()).toMatchObject({
      caughtUp: false,
      lastError: expect.stringContaining('gone'),
    });
    log.give(delivered(second!));
    await eventually(() => documents.get('n')).toEqual({ events: 2 });
    // What arrives does not say that nothing is missing.
    expect(status.current()).toMatchObject({ caughtUp: false, lastError: expect.stringContaining('gone') });
    log.give(caughtUp);
    await eventually(() => status.current()).toMatchObject({ caughtUp: true, lastError: null });
    expect(lines).toEqual([
      expect.stringMatching(/^warn the subscription of the read models dropped .*gone/),
      expect.stringMatching(/^info the read models are subscribed again/),
    ]);
    expect(documents.get('n')).toEqual({ events: 2 });
    // It goes on behind what is applied.
    const { position } = first!.events[0];
    expect(log.subscriptions.at(-1)?.after).toEqual({ commit: position, prepare: position });
  });

  it('is told again when it drops again', async () => {
    const { status } = start();
    for (let drops = 0; drops < 2; drops += 1) {
      log.give(caughtUp);
      await eventually(() => status.current().caughtUp).toBe(true);
      log.give(new Error('gone'));
      await eventually(() => status.current().caughtUp).toBe(false);
    }
    expect(lines.filter((line) => line.startsWith('warn'))).toHaveLength(2);
  });
});

describe('a read store that is away', () => {
  it('is tried until it works, told once, and the log is then read on with a new subscription', async () => {
    const { status, together } = start();
    log.give(caughtUp);
    await eventually(() => status.current().caughtUp).toBe(true);
    outages.push(away(), away());
    const [first, second] = asRecorded([refreshed(), refreshed()]);
    log.give(delivered(first!));
    await eventually(() => status.current()).toMatchObject({
      caughtUp: false,
      lastError: expect.stringContaining('away'),
    });
    expect(together).toEqual([]);
    await eventually(() => together).toEqual([1]);
    expect(lines).toEqual([
      expect.stringMatching(/^warn applying events: failed and is tried until it works .*away/),
      expect.stringMatching(/^info applying events: works again {"tries":2}/),
    ]);
    // Not before the end of the log is known again.
    await eventually(() => log.subscriptions.length).toBe(2);
    expect(status.current()).toMatchObject({ caughtUp: false, lastError: null });
    expect(log.subscriptions[1]?.after).toMatchObject({ commit: first!.events[0].position });
    expect(log.subscriptions.map(({ signal }) => signal.aborted)).toEqual([true, false]);
    log.give(delivered(second!), caughtUp);
    await eventually(() => status.current().caughtUp).toBe(true);
    expect(documents.get('n')).toEqual({ events: 2 });
  });

  it('while catching up, leaves nothing behind: what was folded is written before the log is read on', async () => {
    const { status } = start();
    unreadable.push(away());
    const commands = asRecorded([refreshed(), refreshed()]);
    log.give(delivered(...commands));
    await eventually(() => status.current().lastError).toContain('away');
    await eventually(() => log.subscriptions.length).toBe(2);
    const { position } = commands[1]!.events[0];
    expect(log.subscriptions[1]?.after).toEqual({ commit: position, prepare: position });
    expect(documents.get('n')).toEqual({ events: 2 });
    expect(status.current()).toMatchObject({ caughtUp: false, lastError: null });
    expect(lines).toEqual([
      expect.stringMatching(/^warn applying events: failed/),
      expect.stringMatching(/^info applying events: works again/),
    ]);
    log.give(caughtUp);
    await eventually(() => status.current().caughtUp).toBe(true);
  });

  it('makes the checkpoint late, which is told, and the runner goes on', async () => {
    let fails = false;
    const { status } = start({
      readStore: {
        async saveCheckpoint(_name: string, _version: number, checkpoint: Checkpoint) {
          if (fails) throw away();
          checkpoints.push(checkpoint);
        },
      } as Partial<ReadStore> as ReadStore,
    });
    log.give(caughtUp);
    await eventually(() => status.current().caughtUp).toBe(true);
    fails = true;
    log.give(delivered(...asRecorded([refreshed()])));
    await eventually(() => lines[0]).toMatch(/^warn the checkpoint of the read models is late .*away/);
    expect(status.current()).toMatchObject({ caughtUp: true, lastError: null });
    fails = false;
    await eventually(() => checkpoints.length).toBe(1);
  });

  it('does not keep the runner from closing, which skips nothing', async () => {
    const { runner, status, together } = start();
    log.give(caughtUp);
    await eventually(() => status.current().caughtUp).toBe(true);
    outages.push(...Array.from({ length: 50 }, away));
    log.give(delivered(...asRecorded([refreshed()])));
    await eventually(() => status.current().lastError).toContain('away');
    await runner.close();
    expect([together, runner.handled(), checkpoints]).toEqual([[], 'start', []]);
  });
});

describe('the runner stops for good', () => {
  it('at an event that this release does not know, behind the commands before it', async () => {
    const { runner, status } = start({ onAnotherLog: () => void told.push('another log') });
    log.give(caughtUp);
    await eventually(() => status.current().caughtUp).toBe(true);
    const [known, unknown, later] = asRecorded([
      refreshed(),
      planned(streams.fleet, [{ type: 'MoonPhaseChanged', data: { node_id: 'n' } }]),
      refreshed(),
    ]);
    log.give(delivered(known!, unknown!, later!));
    await runner.ended;
    expect(status.current()).toMatchObject({ caughtUp: false, unknownEvent: 'MoonPhaseChanged' });
    expect(status.current().lastError).toContain('MoonPhaseChanged');
    expect(documents.get('n')).toEqual({ events: 1 });
    expect(lines).toEqual([expect.stringMatching(/^error the read models stopped.*"unknownEvent":"MoonPhaseChanged"/)]);
    expect(log.subscriptions.length).toBe(1);
    expect(told).not.toContain('another log');
  });

  it('when a read model cannot name what an event is about', async () => {
    const failing: ReadModel = {
      ...counts,
      keys() {
        throw new TypeError('no keys');
      },
    };
    const { runner, status } = start({
      target: {
        models: [failing],
        collections: new Map(),
        parking: { has: () => false, list: () => [], add: async () => undefined },
        logger: silentLogger,
        rebuilding: () => false,
      },
    });
    log.give(delivered(...asRecorded([refreshed()])), caughtUp);
    await runner.ended;
    expect(status.current()).toMatchObject({ caughtUp: false, unknownEvent: null });
    expect(status.current().lastError).toContain('counts cannot name');
    expect(told).not.toContain('caught up');
  });

  it('when the log is another one than before, and says so', async () => {
    const sentences: string[] = [];
    const [edit] = asRecorded([refreshed()]);
    log.give(delivered(edit!), caughtUp);
    const { status } = start({ onAnotherLog: (sentence) => void sentences.push(sentence) });
    await eventually(() => status.current().caughtUp).toBe(true);
    const again = drivenLog();
    again.give(delivered({ ...edit!, events: [{ ...edit!.events[0], id: 'another' }] }));
    // Only what was delivered can be read.
    for await (const _ of again.store.subscribe({
      streams: allStreams,
      after: 'start',
      signal: AbortSignal.timeout(20),
    }));
    const other = start({
      eventStore: again.store,
      after: checkpoints.at(-1)!,
      onAnotherLog: (sentence) => void sentences.push(sentence),
    });
    await other.runner.ended;
    expect(sentences).toEqual([expect.stringContaining('as event')]);
    expect(other.status.current()).toMatchObject({ caughtUp: false, unknownEvent: null });
    expect(again.subscriptions.length).toBe(1);
    // Also when nobody is to be told.
    await start({ eventStore: again.store, after: checkpoints.at(-1)! }).runner.ended;
    expect(sentences).toHaveLength(1);
  });
});

it('a runner that is closed is not followed by an error', async () => {
  const { runner, status } = start();
  log.give(delivered(...asRecorded([refreshed()])), caughtUp);
  await eventually(() => status.current().caughtUp).toBe(true);
  await runner.close();
  await runner.ended;
  expect([lines, status.current().lastError]).toEqual([[], null]);
});
