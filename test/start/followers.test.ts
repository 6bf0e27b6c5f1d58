/** The followers of the log as one value: waits on one deadline, and what they say of the instance. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ServingState } from '../../src/delivery/port.js';
import type { ChainBreak } from '../../src/domain/log-chain/links.js';
import type { Fleet } from '../../src/domain/fleet/fleet.js';
import { streams } from '../../src/kernel/event.js';
import { limits } from '../../src/kernel/limits.js';
import type { ProjectionStatus } from '../../src/projections/port.js';
import { createFollowers } from '../../src/start/followers.js';
import type { FollowerParts, Followers } from '../../src/start/followers.js';
import { createNode } from '../support/fleet.js';
import { createCommandFixture } from '../support/command-fixture.js';
import type { CommandFixture } from '../support/command-fixture.js';
import { createManualClock } from '../support/manual-clock.js';
import type { ManualClock } from '../support/manual-clock.js';

let clock: ManualClock;
/** The waits that the parts are asked for, as `part(argument, timeout)`. */
let waits: string[];
/** Milliseconds that each wait takes; one that takes longer than its timeout fails. */
let waitMs: number;
let state: ServingState;
let failure: string | undefined;
let broken: ChainBreak | undefined;
let status: ProjectionStatus;

beforeEach(() => {
  clock = createManualClock();
  waits = [];
  waitMs = 0;
  state = { kind: 'ready' };
  failure = undefined;
  broken = undefined;
  status = { caughtUp: true, position: 41, parked: [], unknownEvent: null, lastError: null };
});

const fleet = { revision: { value: 7 } } as unknown as Fleet;

/** Parts that wait on the manual clock: concurrent waits are over at the same moment. */
function fakeParts(): FollowerParts {
  const wait = async (name: string, argument: number, timeoutMs: number): Promise<boolean> => {
    waits.push(`${name}(${argument}, ${timeoutMs})`);
    const endsAt = clock.monotonic() + Math.min(waitMs, timeoutMs);
    await Promise.resolve();
    clock.advance(Math.max(0, endsAt - clock.monotonic()));
    return waitMs <= timeoutMs;
  };
  return {
    committed: {
      state: () => state,
      fleet: () => fleet,
      passed: (revision, timeoutMs) => wait('committed', revision, timeoutMs),
    },
    delivery: {
      stats: () => ({
        sessions: 1,
        waitingNodes: 2,
        rejectingNodes: 3,
        offered: 4,
        reports: new Map([['ignored', 5]]),
        cacheBytes: 6,
      }),
    },
    projections: {
      status: () => status,
      revision: (stream) => (stream === streams.fleet ? 7 : undefined),
      applied: (_stream, revision, timeoutMs) => wait('projections', revision, timeoutMs),
      reached: (position, timeoutMs) => wait('position', position, timeoutMs),
    },
    accounts: {
      failure: () => failure,
      caughtUp: async () => undefined,
      applied: (_stream, revision, timeoutMs) => wait('accounts', revision, timeoutMs),
    },
    logChain: { broken: () => broken },
    clock,
  };
}
const followers = (): Followers => createFollowers(fakeParts());
const metricsOf = (of: Followers) => Object.fromEntries(of.metrics().map(({ name, read }) => [name, read()]));

describe('waiting for a command', () => {
  it('of the fleet waits for the read models and the committed fleet, both within the whole time', async () => {
    expect(await followers().applied(streams.fleet, 7, 2_000)).toBe(true);
    expect(waits).toEqual(['projections(7, 2000)', 'committed(7, 2000)']);
  });

  it('of the accounts waits for the read models and the accounts view', async () => {
    expect(await followers().applied(streams.accounts, 3, 2_000)).toBe(true);
    expect(waits).toEqual(['projections(3, 2000)', 'accounts(3, 2000)']);
  });

  it('fails after the time it was given, not after the sum of its waits', async () => {
    waitMs = 60_000;
    const startedAt = clock.monotonic();
    expect(await followers().applied(streams.fleet, 7, 2_000)).toBe(false);
    expect(clock.monotonic() - startedAt).toBe(2_000);
  });
});

describe('waiting for a log position', () => {
  it('gives the folds what is left of the time', async () => {
    waitMs = 1_500;
    expect(await followers().reached(41, 2_000)).toBe(false);
    expect(waits).toEqual(['position(41, 2000)', 'projections(7, 500)', 'committed(7, 500)']);
    expect(clock.monotonic()).toBe(createManualClock().monotonic() + 2_000);
  });

  it('does not wait for the folds when the read models do not come', async () => {
    waitMs = 2_001;
    expect(await followers().reached(41, 2_000)).toBe(false);
    expect(waits).toEqual(['position(41, 2000)']);
  });
});

describe('a command whose followers lag', () => {
  let fixture: CommandFixture;
  beforeEach(async () => void (fixture = await createCommandFixture()));
  afterEach(() => fixture.close());

  it('is answered as lagging after one wait of 2 s', async () => {
    waitMs = 60_000;
    const gateway = await fixture.gateway({ projections: followers() });
    const startedAt = clock.monotonic();
    expect(await gateway.run(createNode('a'))).toMatchObject({ kind: 'done', lagging: true });
    expect(limits.rest.projectionWaitMs).toBe(2_000);
    expect(waits).toEqual(['projections(0, 2000)', 'committed(0, 2000)']);
    expect(clock.monotonic() - startedAt).toBe(2_000);
  });
});

describe('an instance', () => {
  it('may write and should get traffic when nothing speaks against it', () => {
    expect(followers().readOnlyReason()).toBeUndefined();
    expect(followers().notReady()).toEqual([]);
  });

  it.each<[ServingState, string]>([
    [{ kind: 'cut_off' }, 'the committed fleet is cut off from the log'],
    [{ kind: 'catching_up' }, 'the committed fleet is catching up with the log'],
    [{ kind: 'older_compiler', logVersion: 3, ownVersion: 2 }, 'compiler'],
  ])('should get no traffic while delivery is %o, but may write', (deliveryState, reason) => {
    state = deliveryState;
    expect(followers().notReady()).toEqual([expect.stringContaining(reason)]);
    expect(followers().readOnlyReason()).toBeUndefined();
  });

  it('should get no traffic while the read models catch up, but may write', () => {
    status = { ...status, caughtUp: false };
    expect(followers().notReady()).toEqual(['the projections are catching up with the log']);
    expect(followers().readOnlyReason()).toBeUndefined();
  });

  it('is read-only once delivery or the read models have met an unknown event', () => {
    const reason = 'this instance is read-only: it does not know the event NewThing, which a newer release wrote';
    status = { ...status, unknownEvent: 'NewThing' };
    expect(followers().readOnlyReason()).toBe(reason);
    status = { ...status, unknownEvent: null };
    state = { kind: 'unknown_event', eventType: 'NewThing' };
    expect(followers().readOnlyReason()).toBe(reason);
    expect(followers().notReady()).toEqual([reason]);
  });

  it('is read-only once the accounts are no longer followed', () => {
    failure = 'unknown event';
    expect(followers().readOnlyReason()).toBe('this instance is read-only: unknown event');
    expect(followers().notReady()).toEqual(['this instance is read-only: unknown event']);
  });

  it('is read-only, with the place, once any fold has met a break of the log chain', () => {
    broken = { kind: 'altered', stream: 'svc-accounts', revision: 4, commandId: 'c' };
    const reason =
      'this instance is read-only: the log chain of svc-accounts breaks at revision 4, command c: ' +
      'its MAC does not fit its events: it was altered';
    expect(followers().readOnlyReason()).toBe(reason);
    expect(followers().notReady()).toEqual([reason]);
    expect(metricsOf(followers())['svc_log_broken']).toBe(1);
  });

  it('is read-only once the committed fleet has met a damaged log', () => {
    state = { kind: 'broken_log', reason: 'svc-fleet continues at 7 instead of 5' };
    const reason = 'this instance is read-only: svc-fleet continues at 7 instead of 5';
    expect(followers().readOnlyReason()).toBe(reason);
    expect(followers().notReady()).toEqual([reason]);
    expect(metricsOf(followers())['svc_log_broken']).toBe(1);
  });

  it('shows its followers as metrics', () => {
    expect(metricsOf(followers())).toEqual({
      svc_log_broken: 0,
      svc_projection_position: 41,
      svc_projection_parked: 0,
      svc_delivery_revision: 7,
      svc_delivery_rejecting_nodes: 3,
      svc_delivery_waiting_nodes: 2,
      svc_delivery_offered_total: 4,
      svc_delivery_reports_total: new Map([['ignored', 5]]),
      svc_delivery_cache_bytes: 6,
    });
  });
});
