/** How the committed fleet follows the log: when it is ready, what it tells, and where it ends. No store. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { captureFleet } from '../../src/domain/fleet/checkpoint.js';
import {
  openCommittedFleet,
  type CommittedFleet,
  type CommittedFleetDeps,
} from '../../src/projections/fleet/committed-fleet.js';
import {
  followInMemory,
  type LogFold,
  type LogFollower,
  type LogFollowerDeps,
} from '../../src/projections/log-follower.js';
import { emptyFleet } from '../../src/domain/fleet/fleet.js';
import type { FleetCommand } from '../../src/domain/fleet/resources.js';
import { streams, type RecordedCommand } from '../../src/kernel/event.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { caughtUp, delivered, drivenLog, type DrivenLog } from '../support/driven-log.js';
import { eventually } from '../support/eventually.js';
import * as f from '../support/fleet.js';
import { chainedLog, testLogChain, trustingLogChain } from '../support/log-chain.js';

const ownVersion = 70;
const raised: FleetCommand = { type: 'RaiseCompilerVersion', version: ownVersion };

/** The commands as the log of the fleet holds them, the first at this release's compiler version. */
function logOf(...commands: readonly FleetCommand[]): readonly RecordedCommand[] {
  const fleet = emptyFleet();
  return [raised, ...commands].map((command) => {
    const performed = f.perform(fleet, command);
    if (performed.kind !== 'written') throw new Error(`${command.type} wrote nothing`);
    return performed.command;
  });
}
const turns = async (): Promise<void> => {
  for (let turn = 0; turn < 10; turn += 1) await new Promise((resolve) => setImmediate(resolve));
};

let log: DrivenLog;
let told: string[];
let lines: string[];
let open: (CommittedFleet | LogFollower)[];

beforeEach(() => {
  [log, told, lines, open] = [drivenLog(), [], [], []];
});
afterEach(async () => {
  await close();
});

type Choices = Partial<CommittedFleetDeps & Pick<LogFollowerDeps, 'graceMs' | 'checkpointEvery'>>;

async function follow({ graceMs, checkpointEvery, ...over }: Choices = {}): Promise<CommittedFleet> {
  const logger = {
    ...silentLogger,
    error: (fields: object, message: string) => void lines.push(`${JSON.stringify(fields)} ${message}`),
  };
  const fold = await openCommittedFleet({
    eventStore: log.store,
    logger,
    logChain: testLogChain(),
    compilerVersion: ownVersion,
    ...over,
  });
  fold.onBatch(({ touched }) => void told.push(`touched ${touched.size}`));
  fold.onStateChange(({ kind }) => void told.push(kind));
  fold.onUpToDate(() => void told.push('up to date'));
  open.push(followInMemory({ eventStore: log.store, logger, folds: [fold], graceMs, checkpointEvery }), fold);
  return fold;
}
/** As at a shutdown. */
const close = async (): Promise<void> => {
  for (const one of open.splice(0)) await one.close();
};
const stateOf = (fold: CommittedFleet) => eventually(() => fold.state().kind);
const [first, second, third] = chainedLog(logOf(f.createNode('a'), f.createNode('b'))) as unknown as [
  RecordedCommand,
  RecordedCommand,
  RecordedCommand,
];

describe('the committed fleet', () => {
  it('tells each batch, then that it is ready, then that it is up to date, and only at the end of the log', async () => {
    const fold = await follow();
    expect([fold.state(), fold.upToDate()]).toEqual([{ kind: 'catching_up' }, false]);
    log.give(delivered(first, second));
    await eventually(() => told).toEqual(['touched 1']);
    expect([fold.state().kind, fold.upToDate()]).toEqual(['catching_up', false]);
    log.give(caughtUp);
    await stateOf(fold).toBe('ready');
    expect(fold.upToDate()).toBe(true);
    await eventually(() => told).toEqual(['touched 1', 'ready', 'up to date', 'up to date']);
    log.give(delivered(third));
    await eventually(() => told.at(-1)).toBe('touched 1');
    expect(fold.fleet().tables.node.get(f.nodeId('b'))?.name).toBe('b');
    expect(log.subscriptions.length).toBe(1);
    expect(log.subscriptions[0]).toMatchObject({ streams: [streams.fleet], after: 'start' });
  });

  it('answers those who wait after the batch is told, and those whose wait is over at once', async () => {
    const fold = await follow();
    const waited = fold.until(() => fold.fleet().revision.value >= 0, 10_000).then((held) => told.push(`held ${held}`));
    log.give(delivered(first));
    await waited;
    expect(told).toEqual(['touched 0', 'held true']);
    const never = fold.until(() => false, 600_000);
    await close();
    expect(await never).toBe(false);
  });

  it('is up to date again when the log comes to the compiler version of this release', async () => {
    const lower = logOf().map((command) => ({
      ...command,
      events: [{ ...command.events[0], data: { version: { from: 0, to: ownVersion - 1 } } }] as const,
    }));
    const fold = await follow({ logChain: trustingLogChain() });
    log.give(delivered(...lower), caughtUp);
    await eventually(() => told).toEqual(['touched 0']);
    await turns();
    expect([fold.state().kind, fold.upToDate(), told]).toEqual(['catching_up', false, ['touched 0']]);
    const next = { ...first.events[0], revision: 1, position: first.events[0].position + 1 };
    log.give(
      delivered({ ...first, events: [{ ...next, data: { version: { from: ownVersion - 1, to: ownVersion } } }] }),
    );
    await stateOf(fold).toBe('ready');
    expect(told.slice(1)).toEqual(['touched 0', 'ready', 'up to date']);
  });

  it('stays ready for a while without a subscription, pushes nothing then, and counts as cut off afterwards', async () => {
    const fold = await follow({ graceMs: 500 });
    log.give(delivered(first), caughtUp);
    await stateOf(fold).toBe('ready');
    log.give(new Error('gone'));
    await eventually(() => fold.upToDate()).toBe(false);
    expect(fold.state().kind).toBe('ready');
    let held = false;
    void fold.until(() => fold.state().kind === 'cut_off', 10_000).then((value) => (held = value));
    await stateOf(fold).toBe('cut_off');
    await eventually(() => held).toBe(true);
    // Something arrives, but not the end of the log: it is in reach again, and this instance is behind.
    log.give({ kind: 'checkpoint', point: { commit: 1e9, prepare: 1e9 } });
    await stateOf(fold).toBe('catching_up');
    log.give(caughtUp);
    await stateOf(fold).toBe('ready');
    expect(told.filter((what) => !what.startsWith('touched'))).toEqual([
      'ready',
      'up to date',
      'up to date',
      'cut_off',
      'catching_up',
      'ready',
      'up to date',
      'up to date',
    ]);
  });

  it('writes a checkpoint when one is due, not before the end of the log, and continues from it', async () => {
    const fold = await follow({ checkpointEvery: 2 });
    log.give(delivered(first), delivered(second));
    await eventually(() => fold.fleet().revision.value).toBe(1);
    await turns();
    expect(log.saved).toEqual([]);
    log.give(caughtUp);
    await eventually(() => log.saved.map(({ revision }) => revision)).toEqual([1]);
    await close();
    // One more event is not enough for the next one, which counts from the one that it started with.
    const again = await follow({ checkpointEvery: 2 });
    const { position } = second.events[0];
    await eventually(() => log.subscriptions.at(-1)?.after).toEqual({ commit: position, prepare: position });
    log.give(delivered(third), caughtUp);
    await stateOf(again).toBe('ready');
    await turns();
    expect(again.fleet().revision.value).toBe(2);
    expect(log.saved.length).toBe(1);
    expect(captureFleet(again.fleet()).head.revision).toBe(2);
  });
});

describe('a log that cannot be folded on', () => {
  it('ends the fold at an event that this release does not know, behind the commands before it', async () => {
    const fold = await follow({ logChain: trustingLogChain() });
    log.give(delivered(first), caughtUp);
    await stateOf(fold).toBe('ready');
    const strange = { ...third, events: [{ ...third.events[0], type: 'MoonPhaseChanged' }] as const };
    const until = fold.until(() => fold.state().kind === 'unknown_event', 10_000);
    log.give(delivered(second, strange));
    expect(await until).toBe(true);
    expect(fold.state()).toEqual({ kind: 'unknown_event', eventType: 'MoonPhaseChanged' });
    expect([fold.upToDate(), fold.fleet().revision.value]).toEqual([false, 1]);
    expect(told.slice(-2)).toEqual(['touched 1', 'unknown_event']);
    await turns();
    expect([log.subscriptions.length, lines.length]).toEqual([1, 1]);
    expect(lines[0]).toContain('MoonPhaseChanged');
  });

  it('ends the fold at the first command that does not fit into the chain', async () => {
    const altered = [first, second, third].map((command) =>
      command.events[0].type !== 'NodeCreated'
        ? command
        : {
            ...command,
            events: [{ ...command.events[0], data: { ...command.events[0].data, name: 'another' } }] as const,
          },
    );
    const fold = await follow();
    log.give(delivered(...altered), caughtUp);
    await stateOf(fold).toBe('broken_log');
    expect(fold.state()).toEqual({ kind: 'broken_log', reason: expect.stringContaining('revision 1') });
    expect(fold.fleet().tables.node.size).toBe(0);
    expect(log.subscriptions.length).toBe(1);
  });

  it('reads what is missing again, at once, and goes on when it is there', async () => {
    const fold = await follow();
    log.give(delivered(first, second), caughtUp);
    await stateOf(fold).toBe('ready');
    const [gap] = third.events;
    log.give(delivered({ ...third, events: [{ ...gap, revision: 7, position: 1000 }] }));
    const { position } = second.events[0];
    await eventually(() => log.subscriptions.map(({ after }) => after)).toEqual([
      'start',
      { commit: position, prepare: position },
    ]);
    expect([fold.state().kind, fold.upToDate(), fold.fleet().revision.value]).toEqual(['catching_up', false, 1]);
    expect(told.at(-1)).toBe('catching_up');
    log.give(delivered(second, third), caughtUp);
    await stateOf(fold).toBe('ready');
    expect(fold.fleet().tables.node.size).toBe(2);
    expect(lines.length).toBe(1);
  });

  it('ends the fold when the same events are missing a second time', async () => {
    const fold = await follow();
    log.give(delivered(first, third));
    await eventually(() => log.subscriptions.length).toBe(2);
    log.give(delivered(third));
    await stateOf(fold).toBe('broken_log');
    expect(fold.state()).toEqual({ kind: 'broken_log', reason: 'svc-fleet continues at 2 instead of 1' });
    expect([log.subscriptions.length, lines.length]).toEqual([2, 2]);
  });

  it('does not end the fold when others are missing than before', async () => {
    const fold = await follow();
    log.give(delivered(first, third));
    await eventually(() => log.subscriptions.length).toBe(2);
    // A command whose events are incomplete counts like missing ones.
    const torn = {
      ...second.events[0],
      metadata: { ...second.events[0].metadata, command: { id: 'c', index: 1, count: 2 } },
    };
    log.give({ kind: 'events', events: [torn] });
    await eventually(() => log.subscriptions.length).toBe(3);
    expect(fold.state().kind).toBe('catching_up');
    log.give({ kind: 'events', events: [torn] });
    await stateOf(fold).toBe('broken_log');
  });

  it('ends the fold, and says why, when a command cannot be folded for any other reason', async () => {
    const chain = testLogChain();
    const fold = await follow({
      logChain: {
        ...chain,
        follow() {
          throw new Error('the fold has a fault');
        },
      },
    });
    log.give(delivered(first));
    await stateOf(fold).toBe('broken_log');
    expect(lines).toEqual([expect.stringContaining('the fold has a fault')]);
    expect(log.subscriptions.length).toBe(1);
  });
});

describe('several folds on one subscription', () => {
  const given = (stream: string, revisions: readonly number[]): readonly RecordedCommand[] =>
    revisions.map((revision) => {
      const [event] = first.events;
      return {
        stream,
        events: [
          { ...event, stream, revision, position: third.events[0].position + 1 + revision, id: `${stream}${revision}` },
        ],
      };
    });

  /** A fold of `svc-accounts` that notes revisions. */
  function noting(fails?: number): LogFold & { readonly seen: number[]; ended: unknown } {
    const seen: number[] = [];
    return {
      seen,
      ended: undefined,
      streams: [streams.accounts],
      revision: () => seen.at(-1) ?? -1,
      position: () => third.events[0].position + seen.length,
      apply(commands) {
        for (const { events } of commands) {
          if (events[0].revision === fails) throw new Error('no');
          if (events[0].revision > (seen.at(-1) ?? -1)) seen.push(events[0].revision);
        }
      },
      moved: () => undefined,
      stopped(error) {
        this.ended = error;
      },
    };
  }

  async function both(other: LogFold): Promise<CommittedFleet> {
    const logger = silentLogger;
    const options = { eventStore: log.store, logger, logChain: testLogChain(), compilerVersion: ownVersion };
    const fleet = await openCommittedFleet(options);
    open.push(followInMemory({ eventStore: log.store, logger, folds: [fleet, other], checkpointEvery: 1 }), fleet);
    return fleet;
  }

  it('get the commands of their own streams, and one that stops does not stop the other', async () => {
    const other = noting(1);
    const fleet = await both(other);
    log.give(delivered(first, ...given(streams.accounts, [0])), caughtUp);
    await stateOf(fleet).toBe('ready');
    expect(other.seen).toEqual([0]);
    log.give(delivered(...given(streams.accounts, [1])));
    await eventually(() => other.ended).toEqual(new Error('no'));
    await eventually(() => log.subscriptions.at(-1)?.streams).toEqual([streams.fleet]);
    const [next] = second.events;
    log.give(delivered({ ...second, events: [{ ...next, position: third.events[0].position + 3 }] }));
    await eventually(() => fleet.fleet().revision.value).toBe(1);
    expect(fleet.state().kind).toBe('ready');
  });

  it('read up to the checkpoint of the first what precedes it in their own streams', async () => {
    const fleet = await both(noting());
    log.give(delivered(first, ...given(streams.accounts, [0, 1])), caughtUp);
    await stateOf(fleet).toBe('ready');
    await eventually(() => log.saved.length).toBe(1);
    await close();
    const other = noting();
    await both(other);
    await eventually(() => other.seen).toEqual([0, 1]);
    const { position } = first.events[0];
    await eventually(() => log.subscriptions.at(-1)?.after).toEqual({ commit: position, prepare: position });
  });
});
