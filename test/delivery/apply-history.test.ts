/** The apply histories of nodes: loaded for a node's first session, shared by its sessions, remembered while it matters. */
import { neverConnected } from '../../src/domain/agents/node-agent-facts.js';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { createApplyHistories, type ApplyHistoriesDeps } from '../../src/delivery/apply-history.js';
import { emptyApplyHistory, errorsDigest, type RecordedApplyReports, type Reject } from '../../src/delivery/target.js';
import { ServiceError } from '../../src/kernel/errors.js';

const stamp = (generation: number) => ({ generation, checksum: 'aa' });
const at = '2025-01-01T00:00:00.000Z';
const reject = (generation: number): Reject => ({
  ...stamp(generation),
  sessionId: undefined,
  errors: errorsDigest([]),
});
const recordedOf = (applied: number | null, rejected: number | null): RecordedApplyReports => ({
  applied: applied === null ? null : { ...stamp(applied), at, duration_ms: 1 },
  rejected: rejected === null ? null : { ...stamp(rejected), at, errors: [] },
  version_conflict_at: null,
});
const rejectedOf = (generation: number): RecordedApplyReports => recordedOf(null, generation);

const histories = (deps: Partial<ApplyHistoriesDeps> = {}) =>
  createApplyHistories({
    lastGood: { stamp: () => Promise.resolve(undefined) },
    nodeFacts: () => neverConnected,
    ...deps,
  });

afterEach(() => vi.useRealTimers());

describe('the apply history of a node', () => {
  it('is loaded once for all its sessions, from the facts and the last-good snapshot', async () => {
    let reads = 0;
    const { load, peek } = histories({
      lastGood: { stamp: () => Promise.resolve(stamp(3)) },
      nodeFacts: () => {
        reads += 1;
        return recordedOf(4, 5);
      },
    });
    const loading = load('n1');
    expect(peek('n1')).toBeUndefined();
    const [one, two] = await Promise.all([loading, load('n1')]);
    expect([one === two, peek('n1') === one, reads]).toEqual([true, true, 1]);
    expect(one).toEqual({
      nodeId: 'n1',
      history: {
        lastGood: stamp(3),
        applied: stamp(4),
        rejected: [reject(5)],
        rejectedSince: true,
        confirmed: 0,
      },
      recorded: true,
      reportedAt: 0,
      retry: undefined,
    });
  });

  it('is unavailable when the read store does not answer in time, and is read again for the next request', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    let answers = false;
    const { load, peek } = histories({
      nodeFacts: () => rejectedOf(2),
      lastGood: { stamp: () => (answers ? Promise.resolve(undefined) : new Promise(() => undefined)) },
    });
    const loading = load('n1').catch((error: unknown) => error);
    await vi.advanceTimersByTimeAsync(5_000);
    expect(await loading).toBeInstanceOf(ServiceError);
    expect(peek('n1')).toBeUndefined();
    answers = true;
    expect((await load('n1')).history.rejected).toEqual([reject(2)]);
  });

  it('that is loaded for a later session stays when an earlier load fails', async () => {
    const fail: (() => void)[] = [];
    let away = true;
    const { load, peek, release } = histories({
      lastGood: {
        stamp: () =>
          away
            ? new Promise((_resolve, reject) => fail.push(() => reject(new Error('away'))))
            : Promise.resolve(undefined),
      },
    });
    const first = load('n1').catch(() => 'failed');
    release('n1');
    away = false;
    const second = await load('n1');
    fail[0]?.();
    expect(await first).toBe('failed');
    expect(peek('n1')).toBe(second);
  });

  it('outlives the last session while a reject in it still counts, and is read once', async () => {
    const { load, release, peek } = histories();
    const record = await load('n1');
    record.history = { ...emptyApplyHistory, rejected: [reject(7)] };
    release('n1');
    expect(peek('n1')).toBeUndefined();
    const again = await load('n1');
    expect(again.history).toEqual({ ...emptyApplyHistory, rejected: [reject(7)] });
    again.history = emptyApplyHistory;
    release('n1');
    expect((await load('n1')).history).toEqual(emptyApplyHistory);
  });

  it('outlives a session that ends while it is being read', async () => {
    const { load, release } = histories();
    const record = await load('n1');
    record.history = { ...emptyApplyHistory, rejected: [reject(7)] };
    release('n1');
    const loading = load('n1');
    release('n1');
    await loading;
    expect((await load('n1')).history.rejected).toEqual([reject(7)]);
  });

  it('without a reject is forgotten with the last session', async () => {
    const { load, release } = histories();
    (await load('n1')).history = { ...emptyApplyHistory, applied: stamp(9) };
    release('n1');
    expect((await load('n1')).history).toEqual(emptyApplyHistory);
  });

  it('remembers that its last fact was not written, until the next session records it', async () => {
    const { load, release } = histories();
    (await load('n1')).recorded = false;
    release('n1');
    const again = await load('n1');
    expect(again.recorded).toBe(false);
    again.recorded = true;
    release('n1');
    expect((await load('n1')).recorded).toBe(true);
  });

  it('records the next apply, even a repeat, while a version conflict is shown', async () => {
    const conflict = (since: string | null) => ({ ...recordedOf(1, null), version_conflict_at: since });
    expect((await histories({ nodeFacts: () => conflict('2025-01-01T00:00:00Z') }).load('n1')).recorded).toBe(false);
    expect((await histories({ nodeFacts: () => conflict(null) }).load('n1')).recorded).toBe(true);
    expect((await histories({ nodeFacts: () => rejectedOf(1) }).load('n1')).recorded).toBe(true);
  });

  it('is what this instance was told last while the facts of the log lag behind that', async () => {
    const { load, release } = histories({ nodeFacts: () => recordedOf(7, null) });
    const record = await load('n1');
    Object.assign(record, { history: { ...emptyApplyHistory, rejected: [reject(7)] }, reportedAt: Date.parse(at) });
    release('n1');
    expect((await load('n1')).history.rejected).toEqual([reject(7)]);
  });

  it('is what another instance recorded when that came later', async () => {
    const { load, release } = histories({ nodeFacts: () => recordedOf(7, null) });
    const record = await load('n1');
    Object.assign(record, { history: { ...emptyApplyHistory, rejected: [reject(7)] }, reportedAt: Date.parse(at) - 1 });
    release('n1');
    expect((await load('n1')).history).toEqual({ ...emptyApplyHistory, applied: stamp(7) });
  });

  it('is forgotten with its node', async () => {
    const { load, release, forget, peek } = histories();
    (await load('n1')).history = { ...emptyApplyHistory, rejected: [reject(7)] };
    forget('n1');
    expect(peek('n1')).toBeUndefined();
    (await load('n1')).history = { ...emptyApplyHistory, rejected: [reject(7)] };
    release('n1');
    forget('n1');
    expect((await load('n1')).history.rejected).toEqual([]);
  });
});

describe('the count of nodes that reject', () => {
  it('has those with a session whose newest generation was rejected', async () => {
    const { load, rejecting, release } = histories();
    const newest = (nodeId: string): number | undefined => ({ n1: 7, n2: 7, n3: 7 })[nodeId];
    const loading = load('n0');
    expect(rejecting(newest)).toBe(0);
    await loading;
    (await load('n1')).history = { ...emptyApplyHistory, rejected: [reject(6), reject(7)] };
    (await load('n2')).history = { ...emptyApplyHistory, rejected: [reject(6)] };
    (await load('n3')).history = { ...emptyApplyHistory, rejected: [reject(7)] };
    await load('n4');
    expect(rejecting(newest)).toBe(2);
    release('n3');
    expect(rejecting(newest)).toBe(1);
  });
});
