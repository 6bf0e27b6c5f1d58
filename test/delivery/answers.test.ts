/** What a ConfigRequest is answered, and what happens beside the answer. */
import { beforeEach, describe, expect, it } from 'vitest';
import { createAnswerer, type AnswerDeps } from '../../src/delivery/answer.js';
import type { ApplyHistoryRecord } from '../../src/delivery/apply-history.js';
import { stampOf, afterApply, emptyApplyHistory, type Stamp } from '../../src/delivery/target.js';
import type { Newest } from '../../src/delivery/newest.js';
import type { ConfigAnswer, SnapshotPush } from '../../src/delivery/port.js';
import { createSessionRegistry, type SessionState } from '../../src/delivery/session-registry.js';
import { systemClock } from '../../src/kernel/clock.js';
import { ServiceError } from '../../src/kernel/errors.js';

const pushOf = (generation: number): SnapshotPush => ({
  generation,
  checksum: Buffer.alloc(32, generation),
  payload: Buffer.alloc(generation),
});
const stamp = (generation: number): Stamp => stampOf(pushOf(generation));
const draining: ConfigAnswer = { kind: 'draining', retryAfterMs: 77 };
const conflicts: bigint[] = [];
const applied: Stamp[] = [];
const logged: string[] = [];
let record: ApplyHistoryRecord;
let session: SessionState;

beforeEach(() => {
  conflicts.length = 0;
  applied.length = 0;
  logged.length = 0;
  record = { nodeId: 'n1', history: emptyApplyHistory, recorded: true, reportedAt: 0, retry: undefined };
  session = createSessionRegistry().add('n1', 's1', { offer: () => undefined });
});

/** The node's newest generation is 10 unless the deps say otherwise. */
function answerer(deps: Partial<AnswerDeps> = {}) {
  const log =
    (level: string) =>
    (_fields: object, text: string): void =>
      void logged.push(`${level}: ${text}`);
  const answer = createAnswerer({
    clock: systemClock,
    newest: {
      forget: () => undefined,
      get: () => ({ kind: 'made', stamp: stamp(10), value: pushOf(10) }),
      stamp: () => ({ kind: 'made', stamp: stamp(10), value: undefined }),
    },
    lastGood: { load: (_nodeId, { generation }) => Promise.resolve(pushOf(generation)) },
    histories: { load: () => Promise.resolve(record) },
    applyReports: { applied: async (_record, _sessionId, report) => void applied.push(report.stamp) },
    retries: { asked: () => undefined },
    raises: {
      raise: () => Promise.resolve({ kind: 'raised' }),
      conflict: (_nodeId, _sessionId, version) => void conflicts.push(version),
    },
    logger: { debug: log('debug'), info: log('info'), warn: log('warn'), error: log('error') },
    generation: () => 10,
    checkCompilerVersion: () => undefined,
    upToDate: () => Promise.resolve(true),
    atHead: () => Promise.resolve(true),
    drainRetryMs: () => 77,
    waits: () => false,
    ...deps,
  });
  return (version: bigint, checksum = Buffer.alloc(32, Number(BigInt.asUintN(8, version)))) =>
    answer(session, version, checksum);
}

const withheld = (): Newest<never> => ({ kind: 'withheld' });

describe('a request', () => {
  it('is drained while the fold is behind, and for a node that does not exist', async () => {
    expect(await answerer({ upToDate: () => Promise.resolve(false) })(0n)).toEqual(draining);
    expect(await answerer({ generation: () => undefined })(0n)).toEqual(draining);
    const gone = (): Newest<never> => ({ kind: 'unknown_node' });
    expect(await answerer({ newest: { forget: () => undefined, get: gone, stamp: gone } })(0n)).toEqual(draining);
    expect(session.considered).toBe(0);
  });

  it('is drained when the snapshot is withheld between its stamp and its bytes', async () => {
    const newest = {
      forget: () => undefined,
      get: withheld,
      stamp: () => ({ kind: 'made', stamp: stamp(10), value: undefined }) as const,
    };
    expect(await answerer({ newest })(0n)).toEqual(draining);
  });

  it('is drained and logged when something fails: a warning for a store, an error for anything else', async () => {
    const failing = (error: Error) => answerer({ histories: { load: () => Promise.reject(error) } })(0n);
    expect(await failing(new ServiceError('unavailable', 'away'))).toEqual(draining);
    expect(await failing(new ServiceError('internal', 'odd'))).toEqual(draining);
    expect(await failing(new Error('a bug'))).toEqual(draining);
    expect(logged.map((line) => line.split(':')[0])).toEqual(['warn', 'error', 'error']);
  });

  it('of an agent without a configuration confirms nothing', async () => {
    expect(await answerer()(0n)).toEqual({ kind: 'snapshot', push: pushOf(10) });
    expect([applied, session.considered]).toEqual([[], 10]);
  });

  it('that names the newest snapshot is unchanged, and confirms it', async () => {
    expect(await answerer()(10n)).toEqual({ kind: 'unchanged', generation: 10 });
    expect([applied, session.considered]).toEqual([[stamp(10)], 10]);
  });

  it('that names the last-good snapshot confirms it, and is answered with the newest', async () => {
    record.history = { ...emptyApplyHistory, lastGood: stamp(9) };
    expect(await answerer()(9n)).toEqual({ kind: 'snapshot', push: pushOf(10) });
    expect(applied).toEqual([stamp(9)]);
  });

  it('without a checksum gets the target whole, and neither confirms nor raises anything', async () => {
    const raise = (): Promise<never> => Promise.reject(new Error('not asked'));
    const request = answerer({ raises: { raise, conflict: raise } });
    expect(await request(10n, Buffer.alloc(0))).toEqual({ kind: 'snapshot', push: pushOf(10) });
    expect(await request(8n, Buffer.alloc(0))).toEqual({ kind: 'snapshot', push: pushOf(10) });
    record.history = {
      ...emptyApplyHistory,
      lastGood: stamp(9),
      rejected: [{ ...stamp(10), sessionId: undefined, errors: '' }],
    };
    expect(await request(10n, Buffer.alloc(0))).toEqual({ kind: 'snapshot', push: pushOf(9) });
    expect([applied, logged]).toEqual([[], []]);
  });

  it('that names a snapshot of old confirms nothing', async () => {
    record.history = { ...emptyApplyHistory, lastGood: stamp(9) };
    expect(await answerer()(8n)).toEqual({ kind: 'snapshot', push: pushOf(10) });
    expect(await answerer()(9n, Buffer.alloc(32, 1))).toEqual({ kind: 'snapshot', push: pushOf(10) });
    expect(applied).toEqual([]);
  });

  it('is answered although the confirmed apply cannot be recorded, and that is logged', async () => {
    const applyReports = { applied: () => Promise.reject(new Error('away')) };
    expect(await answerer({ applyReports })(10n)).toEqual({ kind: 'unchanged', generation: 10 });
    await new Promise((resolve) => setImmediate(resolve));
    expect(logged).toEqual(['warn: a confirmed apply was not recorded']);
  });

  it('never lowers what the session was offered', async () => {
    session.considered = 12;
    await answerer()(0n);
    expect(session.considered).toBe(12);
    await answerer({ newest: { forget: () => undefined, get: withheld, stamp: withheld } })(0n);
    expect(session.considered).toBe(12);
  });
});

describe('the answer to a node that rejected the newest snapshot', () => {
  beforeEach(() => {
    record.history = {
      ...emptyApplyHistory,
      lastGood: stamp(9),
      rejected: [{ ...stamp(10), sessionId: undefined, errors: '' }],
    };
  });

  it('is its last-good snapshot, or unchanged when it runs that', async () => {
    expect(await answerer()(0n)).toEqual({ kind: 'snapshot', push: pushOf(9) });
    expect(await answerer()(9n)).toEqual({ kind: 'unchanged', generation: 9 });
  });

  it('is unchanged when it runs the newest after all', async () => {
    const applyReports: AnswerDeps['applyReports'] = {
      applied: async (_record, _session, report) => void (record.history = afterApply(record.history, report.stamp)),
    };
    expect(await answerer({ applyReports })(10n)).toEqual({ kind: 'unchanged', generation: 10 });
  });

  it('is the newest when the last-good one cannot be loaded, however often it asks', async () => {
    const request = answerer({ lastGood: { load: () => Promise.resolve(undefined) } });
    expect(await request(0n)).toEqual({ kind: 'snapshot', push: pushOf(10) });
    expect(record.history.lastGood).toBeUndefined();
    expect(await request(0n)).toEqual({ kind: 'snapshot', push: pushOf(10) });
  });

  it('is the newest when that is to be tried again, and says on which session', async () => {
    record.retry = { generation: 10, rejectedAt: 0, times: 1, dueAt: 0, isTarget: true, offeredTo: undefined };
    expect(await answerer()(9n)).toEqual({ kind: 'snapshot', push: pushOf(10) });
    expect(record.retry.offeredTo).toBe('s1');
  });
});

describe('the answer while the newest snapshot is withheld', () => {
  const newest = { forget: () => undefined, get: withheld, stamp: withheld };

  it('is the last-good snapshot, or unchanged when the node runs that, and counts as considered', async () => {
    record.history = { ...emptyApplyHistory, lastGood: stamp(9) };
    expect(await answerer({ newest })(0n)).toEqual({ kind: 'snapshot', push: pushOf(9) });
    expect(await answerer({ newest })(9n)).toEqual({ kind: 'unchanged', generation: 9 });
    expect(session.considered).toBe(10);
  });

  it('leaves the node what it has when there is no last-good snapshot', async () => {
    expect(await answerer({ newest })(3n)).toEqual({ kind: 'unchanged', generation: 0 });
    record.history = { ...emptyApplyHistory, lastGood: stamp(9) };
    const lastGood = { load: () => Promise.resolve(undefined) };
    expect(await answerer({ newest, lastGood })(3n)).toEqual({ kind: 'unchanged', generation: 0 });
  });
});

describe('a node that runs what it is recorded to have applied', () => {
  const notAsked = (): Newest<never> => {
    throw new Error('not asked');
  };
  const recorded = (): ApplyHistoryRecord['history'] => ({
    ...emptyApplyHistory,
    applied: stamp(10),
    lastGood: stamp(10),
  });

  it('is answered without making its newest snapshot, and confirms it', async () => {
    record.history = recorded();
    const request = answerer({ newest: { forget: () => undefined, get: notAsked, stamp: notAsked } });
    expect(await request(10n)).toEqual({ kind: 'unchanged', generation: 10 });
    expect([applied, session.considered]).toEqual([[stamp(10)], 10]);
  });

  it.each<[string, ApplyHistoryRecord['history'], number]>([
    ['a newer generation', recorded(), 11],
    ['another snapshot recorded', { ...recorded(), applied: stamp(9) }, 10],
    ['another snapshot kept', { ...recorded(), lastGood: stamp(9) }, 10],
    ['nothing recorded', emptyApplyHistory, 10],
  ])('is compared with its newest snapshot in any other case: %s', async (_name, history, generation) => {
    record.history = history;
    let looks = 0;
    const request = answerer({
      generation: () => generation,
      newest: {
        forget: () => undefined,
        get: () => ({ kind: 'made', stamp: stamp(generation), value: pushOf(generation) }),
        stamp: () => {
          looks += 1;
          return { kind: 'made', stamp: stamp(generation), value: undefined };
        },
      },
    });
    await request(10n);
    expect(looks).toBe(1);
  });

  it('is not answered while the log is at another compiler version', async () => {
    record.history = recorded();
    const request = answerer({
      newest: { forget: () => undefined, get: notAsked, stamp: notAsked },
      checkCompilerVersion: () => {
        throw new ServiceError('unavailable', 'the log is at another compiler version');
      },
    });
    expect(await request(10n)).toEqual(draining);
  });
});

describe('a version that the service does not have', () => {
  /** Raising moves the newest generation to 13. */
  function raisable(deps: Partial<AnswerDeps> = {}) {
    let generation = 10;
    const raised: [string, number][] = [];
    const request = answerer({
      generation: () => generation,
      newest: {
        forget: () => undefined,
        get: () => ({ kind: 'made', stamp: stamp(generation), value: pushOf(generation) }),
        stamp: () => ({ kind: 'made', stamp: stamp(generation), value: undefined }),
      },
      raises: {
        raise: async (nodeId, reported) => {
          raised.push([nodeId, reported]);
          generation = 13;
          return { kind: 'raised' };
        },
        conflict: () => undefined,
      },
      ...deps,
    });
    return { request, raised };
  }

  it.each([
    ['ahead of the newest', 12n, undefined],
    ['the newest with another checksum', 10n, Buffer.alloc(32, 1)],
  ])('is raised above, once the fold is at the head of the log: %s', async (_name, version, checksum) => {
    const { request, raised } = raisable();
    expect(await request(version, checksum)).toEqual({ kind: 'snapshot', push: pushOf(13) });
    expect(raised).toEqual([['n1', Number(version)]]);
  });

  it('is not raised above when the head of the log answers for it', async () => {
    let generation = 10;
    const { request, raised } = raisable({
      generation: () => generation,
      newest: {
        forget: () => undefined,
        get: () => {
          throw new Error('not needed');
        },
        stamp: () => ({ kind: 'made', stamp: stamp(generation), value: undefined }),
      },
      atHead: async () => {
        generation = 12;
        return true;
      },
    });
    expect(await request(12n)).toEqual({ kind: 'unchanged', generation: 12 });
    expect(raised).toEqual([]);
  });

  it('is drained when the head of the log is not reached in time', async () => {
    const { request, raised } = raisable({ atHead: () => Promise.resolve(false) });
    expect([await request(12n), raised]).toEqual([draining, []]);
  });

  it('is drained when a raise did not help, is not available, and told to wait when it is too soon', async () => {
    const raising = (outcome: Awaited<ReturnType<AnswerDeps['raises']['raise']>>) => {
      let asked = 0;
      const request = answerer({
        raises: {
          raise: async () => {
            asked += 1;
            return outcome;
          },
          conflict: () => undefined,
        },
      });
      return request(12n).then((answer) => [answer, asked]);
    };
    expect(await raising({ kind: 'raised' })).toEqual([draining, 1]);
    expect(await raising({ kind: 'unavailable' })).toEqual([draining, 1]);
    expect(await raising({ kind: 'too_soon', retryAfterMs: 9 })).toEqual([
      { kind: 'raised_too_soon', reported: expect.any(Number), retryAfterMs: 9 },
      1,
    ]);
  });

  it.each([2n ** 53n, 2n ** 64n - 1n, 2n ** 32n + 11n])(
    'is a conflict that the next confirmed apply ends when no log can have produced it: %s',
    async (version) => {
      expect(await answerer()(version)).toEqual({ kind: 'absurd_version' });
      expect([conflicts, record.recorded]).toEqual([[version], false]);
      expect(session.considered).toBe(0);
    },
  );
});
