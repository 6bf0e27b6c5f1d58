/** The followers of the log as one value: waits on one deadline, and what they say of the instance. */
import { beforeEach, describe, expect, it } from 'vitest';
import type { ServingState } from '../../src/delivery/port.js';
import type { ChainBreak } from '../../src/domain/log-chain/links.js';
import type { Accounts } from '../../src/domain/accounts/accounts.js';
import type { Fleet } from '../../src/domain/fleet/fleet.js';
import { streams, type RecordedEvent } from '../../src/kernel/event.js';
import type { ProjectionStatus } from '../../src/projections/port.js';
import { followerMetrics } from '../../src/app/metrics.js';
import { createFollowers, type FollowerParts, type Followers } from '../../src/projections/followers.js';
import { createManualClock, type ManualClock } from '../support/manual-clock.js';

let clock: ManualClock;
/** The waits that the parts are asked for, as `part(argument, timeout)`. */
let waits: string[];
/** Milliseconds that each wait takes; one that takes longer than its timeout fails. */
let waitMs: number;
let state: ServingState;
let failure: string | undefined;
let factsFailure: string | undefined;
let broken: ChainBreak | undefined;
let status: ProjectionStatus;

beforeEach(() => {
  clock = createManualClock();
  waits = [];
  waitMs = 0;
  state = { kind: 'ready' };
  failure = undefined;
  factsFailure = undefined;
  broken = undefined;
  status = { caughtUp: true, position: 41, parked: [], unknownEvent: null, brokenLog: null, lastError: null };
});

const at = (revision: number, position: number) => ({ revision: { value: revision }, position: { value: position } });
let fleet: Fleet;
let accounts: Accounts;
let heads: Record<string, number>;
let head: number;

beforeEach(() => {
  [fleet, accounts] = [at(7, 41) as unknown as Fleet, at(3, 40) as unknown as Accounts];
  heads = { [streams.fleet]: 7, [streams.accounts]: 3 };
  head = 60;
});

/** Parts that wait on the manual clock: concurrent waits are over at the same moment. */
function fakeParts(): FollowerParts {
  const wait = async (name: string, timeoutMs: number): Promise<boolean> => {
    waits.push(`${name}(${timeoutMs})`);
    const endsAt = clock.monotonic() + Math.min(waitMs, timeoutMs);
    await Promise.resolve();
    clock.advance(Math.max(0, endsAt - clock.monotonic()));
    return waitMs <= timeoutMs;
  };
  return {
    eventStore: {
      headPosition: async () => head,
      async *read(stream) {
        yield { revision: heads[stream] } as RecordedEvent;
      },
    },
    committed: {
      state: () => state,
      fleet: () => fleet,
      passed: (revision, timeoutMs) => wait(`fleet ${revision}`, timeoutMs),
      until: (_condition, timeoutMs) => wait('fleet', timeoutMs),
    },
    projections: { status: () => status },
    agentFacts: { failure: () => factsFailure, caughtUp: () => true },
    accounts: {
      accounts,
      failure: () => failure,
      damage: () => undefined,
      caughtUp: () => true,
      until: (condition, timeoutMs) =>
        condition() ? Promise.resolve(true) : wait(`accounts ${heads[streams.accounts]}`, timeoutMs),
    },
    logChain: { broken: () => broken },
    clock,
  };
}
const followers = (): Followers => createFollowers(fakeParts());
const stats = {
  sessions: 1,
  waitingNodes: 2,
  rejectingNodes: 3,
  offered: 4,
  reports: new Map([['ignored', 5]]),
};
const metrics = () => {
  const { committed, projections, logChain } = fakeParts();
  const all = followerMetrics(committed, { stats: () => stats }, projections, logChain);
  return Object.fromEntries(all.map(({ name, read }) => [name, read()]));
};

describe('waiting for a log position', () => {
  it('is over at once when both folds are past it', async () => {
    expect(followers().position()).toBe(41);
    expect(await followers().reached(40, 2_000)).toBe(true);
    expect(waits).toEqual([]);
  });

  it('is over when both folds hold the ends of their streams, however far apart these are', async () => {
    expect(await followers().reached(41, 2_000)).toBe(true);
    expect(waits).toEqual(['fleet 7(2000)']);
  });

  it('fails when the log has not come as far', async () => {
    waitMs = 60_000;
    expect(await followers().reached(61, 2_000)).toBe(false);
    expect(clock.monotonic()).toBe(createManualClock().monotonic() + 2_000);
  });

  it('fails after the time it was given, not after the sum of its waits', async () => {
    waitMs = 60_000;
    heads = { [streams.fleet]: 9, [streams.accounts]: 5 };
    expect(await followers().reached(55, 2_000)).toBe(false);
    expect(waits).toEqual(['fleet 9(2000)', 'accounts 5(2000)']);
    expect(clock.monotonic()).toBe(createManualClock().monotonic() + 2_000);
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

  it.each(['accounts', 'facts'])('is read-only once the %s are no longer followed', (which) => {
    if (which === 'facts') factsFailure = 'unknown event';
    else failure = 'unknown event';
    expect(followers().readOnlyReason()).toBe('this instance is read-only: unknown event');
    expect(followers().notReady()).toEqual(['this instance is read-only: unknown event']);
  });

  it('is read-only, with the place, once any fold has met a break of the log chain', () => {
    broken = { kind: 'altered', stream: 'svc-accounts', revision: 4, commandId: 'c' };
    const reason =
      'this instance is read-only: the log chain of svc-accounts breaks at revision 4, command c: ' +
      'its MAC does not fit its events: it was altered, or another installation wrote it';
    expect(followers().readOnlyReason()).toBe(reason);
    expect(followers().notReady()).toEqual([reason]);
    expect(metrics()['svc_log_broken']).toBe(1);
  });

  it('is read-only once the committed fleet has met a damaged log', () => {
    state = { kind: 'broken_log', reason: 'svc-fleet continues at 7 instead of 5' };
    const reason = 'this instance is read-only: svc-fleet continues at 7 instead of 5';
    expect(followers().readOnlyReason()).toBe(reason);
    expect(followers().notReady()).toEqual([reason]);
    expect(metrics()['svc_log_broken']).toBe(1);
  });

  it('shows its followers as metrics', () => {
    expect(metrics()).toEqual({
      svc_log_broken: 0,
      svc_projection_position: 41,
      svc_projection_parked: 0,
      svc_delivery_revision: 7,
      svc_delivery_rejecting_nodes: 3,
      svc_delivery_waiting_nodes: 2,
      svc_delivery_offered_total: 4,
      svc_delivery_reports_total: new Map([['ignored', 5]]),
    });
  });
});
