/** Apply reports: what they change in a node's history, what is stored, and which fact is recorded, once. */
import { beforeEach, describe, expect, it } from 'vitest';
import type { ApplyHistoryRecord } from '../../src/delivery/apply-history.js';
import { createApplyReports, type ApplyReportsDeps } from '../../src/delivery/apply-reports.js';
import { stampOf, emptyApplyHistory, type Reject } from '../../src/delivery/target.js';
import type { ApplyReport, SnapshotPush } from '../../src/delivery/port.js';
import { createTimeToApplied } from '../../src/delivery/time-to-applied.js';
import type { AgentEvent, FactOutcome } from '../../src/domain/agents/facts.js';
import { systemClock } from '../../src/kernel/clock.js';
import { silentLogger } from '../../src/kernel/logger.js';

const pushOf = (generation: number, fill = generation): SnapshotPush => ({
  generation,
  checksum: Buffer.alloc(32, fill),
  payload: Buffer.alloc(1),
});
const session = {
  sessionId: 's1',
  offers: [],
  superseded: false,
  unreported: undefined,
  opened: true,
  confirm: undefined,
  unconfirmed: undefined,
};
const stamp = (generation: number, fill = generation) => stampOf(pushOf(generation, fill));
const reject = (generation: number): Reject => ({ ...stamp(generation), sessionId: 's0', errors: '' });
const reportOf = (push: SnapshotPush, status: ApplyReport['status']): ApplyReport => ({
  generation: BigInt(push.generation),
  checksum: push.checksum,
  status,
  errors: status === 'applied' ? [] : [{ resource_type: 'node', resource_id: 'n1', path: 'p', message: 'no' }],
  durationMs: 12,
});

/** Monotonic milliseconds. */
const arrived = 1_000;

let record: ApplyHistoryRecord;
let facts: [string, AgentEvent, string][];
let saved: SnapshotPush[];
let outcome: FactOutcome | Error;
let newest: SnapshotPush;

beforeEach(() => {
  record = { nodeId: 'n1', history: emptyApplyHistory, recorded: true, reportedAt: 0, retry: undefined };
  [facts, saved, outcome, newest] = [[], [], 'recorded', pushOf(10)];
});

const create = (deps: Partial<ApplyReportsDeps> = {}) => {
  const reports = createApplyReports({
    newest: {
      forget: () => undefined,
      get: () => ({ kind: 'made', stamp: stampOf(newest), value: newest }),
      stamp: () => ({ kind: 'made', stamp: stampOf(newest), value: undefined }),
    },
    lastGood: { save: (_nodeId, push) => void saved.push(push) },
    retries: { rejected: () => undefined },
    clock: systemClock,
    logger: silentLogger,
    sessionLog: silentLogger,
    timeToApplied: createTimeToApplied(),
    generation: () => newest.generation,
    waits: () => false,
    need: () => undefined,
    recordFact: async (...fact) => {
      facts.push(fact);
      if (outcome instanceof Error) throw outcome;
      return outcome;
    },
    ...deps,
  });
  return {
    reports,
    applied: (push: SnapshotPush) => reports.report(record, session, reportOf(push, 'applied'), arrived),
    rejected: (push: SnapshotPush) => reports.report(record, session, reportOf(push, 'rejected'), arrived),
  };
};
const types = (): readonly string[] => facts.map(([, { type }]) => type);

describe('an apply of the newest snapshot', () => {
  it('becomes the last-good one and is recorded, with its duration', async () => {
    record.history = { ...emptyApplyHistory, rejected: [reject(9), reject(10), reject(11)], lastGood: stamp(8) };
    await create().applied(newest);
    expect(saved).toEqual([newest]);
    expect(record.history).toEqual({
      ...emptyApplyHistory,
      lastGood: stamp(10),
      applied: stamp(10),
      rejected: [reject(11)],
    });
    expect(facts).toEqual([
      ['n1', { type: 'AgentConfigApplied', data: { node_id: 'n1', ...stamp(10), duration_ms: 12 } }, 's1'],
    ]);
  });

  it('is neither recorded nor stored again when it is repeated', async () => {
    const { applied } = create();
    await applied(newest);
    await applied(newest);
    expect([types(), saved.length]).toEqual([['AgentConfigApplied'], 1]);
  });

  it('is recorded once more when it was rejected in between, and when the last one was not recorded', async () => {
    const { applied, rejected } = create();
    await applied(newest);
    await rejected(newest);
    await applied(newest);
    expect(types()).toEqual(['AgentConfigApplied', 'AgentConfigRejected', 'AgentConfigApplied']);
    record.recorded = false;
    await applied(newest);
    expect([types().length, record.recorded]).toEqual([4, true]);
  });

  it('is a repeat although a later one was rejected', async () => {
    record.history = { ...emptyApplyHistory, applied: stamp(10), lastGood: stamp(10), rejected: [reject(11)] };
    await create().applied(newest);
    expect([facts, record.history.rejected]).toEqual([[], [reject(11)]]);
  });

  it('leaves the last-good one when there is a newer snapshot by the time it is stored', async () => {
    record.history = { ...emptyApplyHistory, lastGood: stamp(8) };
    const { reports } = create();
    await reports.applied(record, session, { stamp: stamp(9), named: 'newest', durationMs: 1, at: arrived });
    expect([saved, record.history.lastGood, record.history.applied]).toEqual([[], stamp(8), stamp(9)]);
    const withheld = create({
      newest: { forget: () => undefined, get: () => ({ kind: 'withheld' }), stamp: () => ({ kind: 'withheld' }) },
    });
    await withheld.reports.applied(record, session, { stamp: stamp(10), named: 'newest', durationMs: 1, at: arrived });
    expect([saved, record.history.lastGood]).toEqual([[], stamp(8)]);
  });
});

describe('an apply of the last-good snapshot', () => {
  it('is recorded as a fall when a later one was applied before, and not as one otherwise', async () => {
    record.history = { ...emptyApplyHistory, lastGood: stamp(8), applied: stamp(9) };
    const { applied } = create();
    await applied(pushOf(8));
    expect(facts[0]?.[1].data).toEqual({ node_id: 'n1', ...stamp(8), duration_ms: 12, falls_from: 9 });
    expect([saved, record.history.lastGood]).toEqual([[], stamp(8)]);
    record.history = { ...emptyApplyHistory, lastGood: stamp(8), applied: stamp(8, 1) };
    await applied(pushOf(8));
    expect(facts[1]?.[1].data).toEqual({ node_id: 'n1', ...stamp(8), duration_ms: 12 });
    expect(saved).toEqual([]);
  });
});

describe('a reject', () => {
  it('is recorded once with its errors, and again when that failed', async () => {
    const { rejected } = create();
    outcome = new Error('away');
    await expect(rejected(newest)).rejects.toThrow('away');
    expect([record.recorded, record.history.rejected]).toMatchObject([false, [stamp(10)]]);
    outcome = 'recorded';
    await rejected(newest);
    await rejected(newest);
    expect(types()).toEqual(['AgentConfigRejected', 'AgentConfigRejected']);
    expect(facts[1]).toEqual([
      'n1',
      {
        type: 'AgentConfigRejected',
        data: { node_id: 'n1', ...stamp(10), errors: reportOf(newest, 'rejected').errors },
      },
      's1',
    ]);
  });
});

describe('a reject that is repeated', () => {
  it('is recorded again when its errors are others, so that those are shown which are true', async () => {
    const { reports } = create();
    const rejects = (message: string): Promise<void> => {
      const errors = [{ resource_type: 'node', resource_id: 'n1', path: 'p', message }];
      return reports.report(record, session, { ...reportOf(newest, 'rejected'), errors }, arrived);
    };
    await rejects('port 1 in use');
    await rejects('port 1 in use');
    await rejects('port 2 in use');
    expect(facts.map(([, { data }]) => data)).toMatchObject([
      { errors: [{ message: 'port 1 in use' }] },
      { errors: [{ message: 'port 2 in use' }] },
    ]);
  });
});

describe('an apply that is not recorded yet', () => {
  it('comes before what is reported meanwhile, in the history and in the log', async () => {
    const { applied, rejected } = create();
    const first = applied(newest);
    await rejected(newest);
    await first;
    expect(types()).toEqual(['AgentConfigApplied', 'AgentConfigRejected']);
    expect(record.history).toMatchObject({ lastGood: stamp(10), rejected: [stamp(10)] });
  });
});

describe('what becomes of a fact', () => {
  it.each<[FactOutcome, boolean]>([
    ['recorded', true],
    ['coalesced', true],
    ['superseded', false],
    ['refused', false],
  ])('decides whether a repeat is recorded: %s', async (became, recorded) => {
    outcome = became;
    await create().applied(newest);
    expect(record.recorded).toBe(recorded);
  });

  it('is that of the newest report: while one waits, a repeat is not recorded once more', async () => {
    let settle: ((became: FactOutcome) => void) | undefined;
    const { applied } = create({
      recordFact: (...fact) => {
        facts.push(fact);
        return new Promise((resolve) => (settle = resolve));
      },
    });
    record.recorded = false;
    const first = applied(newest);
    await new Promise((resolve) => setImmediate(resolve));
    await applied(newest);
    expect(facts).toHaveLength(1);
    settle?.('recorded');
    await first;
  });
});

describe('a report on another snapshot', () => {
  it.each<[string, SnapshotPush]>([
    ['a generation that the node does not have yet', pushOf(11)],
    ['the newest generation with another checksum', pushOf(10, 1)],
    ['an earlier one', pushOf(7)],
    ['the last-good generation with another checksum', pushOf(8, 1)],
  ])('is counted and changes nothing: %s', async (_name, push) => {
    record.history = { ...emptyApplyHistory, lastGood: stamp(8) };
    const { reports, applied, rejected } = create();
    await applied(push);
    await rejected(push);
    expect([reports.counts().get('ignored'), facts, saved]).toEqual([2, [], []]);
    expect(record.history).toEqual({ ...emptyApplyHistory, lastGood: stamp(8) });
  });

  it('is counted when it is on a last-good snapshot of another log, with the generation of the newest', async () => {
    record.history = { ...emptyApplyHistory, lastGood: stamp(10, 1) };
    const { reports, applied } = create();
    await applied(pushOf(10, 1));
    expect([reports.counts().get('ignored'), facts, record.history.applied]).toEqual([1, [], undefined]);
  });

  it('is counted when the node is gone, or its newest snapshot is withheld', async () => {
    const gone = create({ generation: () => undefined });
    await gone.applied(newest);
    expect(gone.reports.counts().get('ignored')).toBe(1);
    const withheld = create({
      newest: { forget: () => undefined, get: () => ({ kind: 'withheld' }), stamp: () => ({ kind: 'withheld' }) },
    });
    await withheld.applied(newest);
    expect([withheld.reports.counts().get('ignored'), facts]).toEqual([1, []]);
  });

  it('that repeats what is recorded of the newest one costs no look at it', async () => {
    record.history = { ...emptyApplyHistory, applied: stamp(10), lastGood: stamp(10) };
    const notAsked = (): never => {
      throw new Error('not asked');
    };
    const { reports, applied } = create({ newest: { forget: () => undefined, get: notAsked, stamp: notAsked } });
    await applied(newest);
    expect([reports.counts().get('applied'), facts]).toEqual([1, []]);
    record.recorded = false;
    await applied(newest);
    expect(types()).toEqual(['AgentConfigApplied']);
  });

  it('of an earlier generation costs no look at the newest one', async () => {
    record.history = { ...emptyApplyHistory, lastGood: stamp(8) };
    let looks = 0;
    const { applied } = create({
      newest: {
        forget: () => undefined,
        get: () => {
          throw new Error('not asked');
        },
        stamp: () => {
          looks += 1;
          return { kind: 'withheld' };
        },
      },
    });
    await applied(pushOf(8));
    expect([looks, types()]).toEqual([0, ['AgentConfigApplied']]);
  });
});
