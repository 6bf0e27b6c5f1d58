/** Whether an instance may serve: its distance from the end of the log and the compiler version of the log decide. */
import { beforeEach, describe, expect, it } from 'vitest';
import { isMismatch, mismatchText } from '../../src/projections/fleet/compiler-mismatch.js';
import { createServingState } from '../../src/projections/fleet/committed-fleet.js';
import type { LogDistance } from '../../src/projections/log-connection.js';
import type { ServingState } from '../../src/delivery/port.js';
import { emptyFleet, type Fleet } from '../../src/domain/fleet/fleet.js';
import { silentLogger } from '../../src/kernel/logger.js';

const ownVersion = 5;
let fleet: Fleet;
let distance: LogDistance;
let changes: ServingState[];
let logged: string[];

beforeEach(() => {
  [fleet, distance, changes, logged] = [emptyFleet(), 'behind', [], []];
  fleet.singletons.service.set(ownVersion);
});

const create = () =>
  createServingState({
    logger: {
      ...silentLogger,
      info: () => void logged.push('info'),
      warn: () => void logged.push('warn'),
    },
    ownVersion,
    fleet: () => fleet,
    distance: () => distance,
    onChange: (state) => void changes.push(state),
  });

const older = { kind: 'older_compiler', logVersion: 6, ownVersion };
const newer = { kind: 'newer_compiler', logVersion: 4, ownVersion };

describe('the sentence about another compiler version', () => {
  it('says which instance has to change, and how', () => {
    const [behind, ahead] = [
      { kind: 'older_compiler', logVersion: 6, ownVersion: 5 },
      { kind: 'newer_compiler', logVersion: 4, ownVersion: 5 },
    ] as const;
    expect([isMismatch(behind), isMismatch(ahead), isMismatch({ kind: 'ready' })]).toEqual([true, true, false]);
    expect(mismatchText(behind)).toMatch(
      /at compiler version 6, this release has 5: upgrade this instance \(or go back for all: compiler:lower 5\)/,
    );
    expect(mismatchText(ahead)).toMatch(
      /at compiler version 4, this release has 5: .*replace this instance by the older/,
    );
  });
});

describe('the state of an instance', () => {
  it.each<[LogDistance, number, object]>([
    ['live', 5, { kind: 'ready' }],
    ['just_dropped', 5, { kind: 'ready' }],
    ['cut_off', 5, { kind: 'cut_off' }],
    ['behind', 5, { kind: 'catching_up' }],
    ['live', 4, { kind: 'catching_up' }],
    ['just_dropped', 4, { kind: 'catching_up' }],
    ['cut_off', 4, { kind: 'catching_up' }],
    ['behind', 4, { kind: 'catching_up' }],
    ['live', 6, older],
    ['just_dropped', 6, older],
    ['cut_off', 6, older],
    ['behind', 6, older],
  ])('that has not been ready, %s and with compiler version %i in the log', (at, version, expected) => {
    distance = at;
    fleet.singletons.service.set(version);
    expect(create().current()).toEqual(expected);
  });

  it.each<[LogDistance, object]>([
    ['live', newer],
    ['just_dropped', newer],
    ['cut_off', { kind: 'catching_up' }],
    ['behind', { kind: 'catching_up' }],
  ])('that has been ready, %s once the log is lowered below its compiler version', (at, expected) => {
    const state = create();
    distance = 'live';
    state.refresh();
    distance = at;
    fleet.singletons.service.set(4);
    state.refresh();
    expect(state.current()).toEqual(expected);
  });

  it('is told when it changes, and only then', () => {
    const state = create();
    state.refresh();
    expect([changes, logged]).toEqual([[], []]);
    distance = 'live';
    state.refresh();
    distance = 'just_dropped';
    state.refresh();
    fleet.singletons.service.set(6);
    state.refresh();
    expect(changes).toEqual([{ kind: 'ready' }, older]);
    expect(logged).toEqual(['info', 'warn']);
  });

  it('is final once the log cannot be folded any further', () => {
    const state = create();
    distance = 'live';
    state.refresh();
    state.stop({ kind: 'broken_log', reason: 'a link is missing' });
    expect(state.current()).toEqual({ kind: 'ready' });
    state.refresh();
    fleet.singletons.service.set(6);
    state.refresh();
    expect(state.current()).toEqual({ kind: 'broken_log', reason: 'a link is missing' });
    expect(changes.map(({ kind }) => kind)).toEqual(['ready', 'broken_log']);
  });
});
