/**
 * The rules for a node's target (`docs/contract/agent-protocol.md#configuration`), and a property over apply
 * histories.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  afterApply,
  afterReject,
  emptyApplyHistory,
  errorsDigest,
  snapshotNamed,
  applyHistoryOf,
  rejectOf,
  targetOf,
  versionClaim,
  type Stamp,
  type ApplyHistory,
} from '../../src/delivery/target.js';

const stamp = (generation: number, checksum = `c${generation}`): Stamp => ({ generation, checksum });
const applied = (history: ApplyHistory, of: Stamp): ApplyHistory => ({ ...afterApply(history, of), lastGood: of });
const rejected = (history: ApplyHistory, of: Stamp): ApplyHistory =>
  afterReject(history, { ...of, sessionId: 's1', errors: '' });

describe('the target of a node', () => {
  it('is the newest generation', () => {
    expect(targetOf(stamp(5), emptyApplyHistory)).toBe('newest');
    expect(targetOf(stamp(9), applied(emptyApplyHistory, stamp(5)))).toBe('newest');
  });

  it('is the last-good snapshot once the newest is rejected', () => {
    expect(targetOf(stamp(9), rejected(applied(emptyApplyHistory, stamp(5)), stamp(9)))).toBe('last_good');
  });

  it('is the last-good snapshot after any number of rejects in a row', () => {
    let history = applied(emptyApplyHistory, stamp(5));
    for (let generation = 6; generation <= 20; generation += 1) {
      history = rejected(history, stamp(generation));
      expect(targetOf(stamp(generation), history)).toBe('last_good');
    }
  });

  it('is the newest when only an earlier one was rejected', () => {
    expect(targetOf(stamp(12), rejected(applied(emptyApplyHistory, stamp(5)), stamp(9)))).toBe('newest');
  });

  it('is the newest when no snapshot was ever applied, or the last-good one is rejected too', () => {
    expect(targetOf(stamp(9), rejected(emptyApplyHistory, stamp(9)))).toBe('newest');
    const both = rejected(rejected(applied(emptyApplyHistory, stamp(5)), stamp(9)), stamp(5));
    expect(targetOf(stamp(9), both)).toBe('newest');
    expect(targetOf(stamp(9), rejected(applied(emptyApplyHistory, stamp(9)), stamp(9)))).toBe('newest');
  });

  it('is the newest although it was rejected when that is to be tried again', () => {
    const history = rejected(applied(emptyApplyHistory, stamp(5)), stamp(9));
    expect(targetOf(stamp(9), history, 9)).toBe('newest');
    expect(targetOf(stamp(9), history, 8)).toBe('last_good');
  });

  it('follows a reject until its generation or a later one is applied', () => {
    const history = rejected(applied(emptyApplyHistory, stamp(5)), stamp(9));
    expect(targetOf(stamp(9), applied(history, stamp(5)))).toBe('last_good');
    expect(targetOf(stamp(9), applied(history, stamp(9)))).toBe('newest');
  });

  it('is the newest when another checksum of the same generation was rejected', () => {
    expect(targetOf(stamp(9, 'other'), rejected(emptyApplyHistory, stamp(9)))).toBe('newest');
  });

  it('is never the snapshot that the node rejected last while there is one that it has applied and not rejected', () => {
    const step = fc.record({ of: fc.integer({ min: 1, max: 4 }), ok: fc.boolean() });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), fc.integer({ min: 1, max: 4 }), (steps, newest) => {
        let history = emptyApplyHistory;
        let last: { of: number; ok: boolean } | undefined;
        for (const next of steps) {
          history = next.ok ? applied(history, stamp(next.of)) : rejected(history, stamp(next.of));
          last = next;
        }
        const target = targetOf(stamp(newest), history);
        const generation = target === 'last_good' ? history.lastGood?.generation : newest;
        const { lastGood } = history;
        const hasOther = lastGood !== undefined && rejectOf(history, lastGood) === undefined;
        if (last !== undefined && !last.ok && hasOther) expect(generation).not.toBe(last.of);
        if (last?.ok === true && last.of === newest) expect(target).toBe('newest');
      }),
    );
  });
});

describe('the apply history that the log has', () => {
  const at = '2025-01-01T00:00:00.000Z';
  const of = (applied: Stamp | null, rejected: Stamp | null, applied_since?: true): ApplyHistory =>
    applyHistoryOf(
      {
        applied: applied && { ...applied, at, duration_ms: 1 },
        rejected: rejected && { ...rejected, at, errors: [], ...(applied_since && { applied_since }) },
        version_conflict_at: null,
      },
      applied ?? undefined,
    );

  it('has the last-good snapshot as the target of a node that rejected a later one', () => {
    expect(targetOf(stamp(9), of(stamp(5), stamp(9)))).toBe('last_good');
    expect(targetOf(stamp(9), of(stamp(9), null))).toBe('newest');
  });

  it('says which snapshot was applied and rejected, and which of the two came last', () => {
    expect(of(stamp(5), stamp(9))).toEqual({
      ...emptyApplyHistory,
      lastGood: stamp(5),
      applied: stamp(5),
      rejected: [{ ...stamp(9), sessionId: undefined, errors: errorsDigest([]) }],
      rejectedSince: true,
    });
    expect(of(stamp(5), stamp(9), true).rejectedSince).toBe(false);
    expect(of(null, null)).toEqual(emptyApplyHistory);
  });
});

describe('the version that an agent claims', () => {
  it.each([
    [0n, 'behind'],
    [99n, 'behind'],
    [100n, 'equal'],
    [101n, 'ahead'],
    [100n + 2n ** 32n, 'ahead'],
    [101n + 2n ** 32n, 'absurd'],
    [2n ** 53n, 'absurd'],
    [2n ** 64n - 1n, 'absurd'],
  ] as const)('%s is "%s" for a node at generation 100', (version, expected) => {
    expect(versionClaim(version, 100)).toBe(expected);
  });

  it('may be up to 2^53-1, and is absurd above it', () => {
    expect(versionClaim(2n ** 53n - 1n, Number.MAX_SAFE_INTEGER - 5)).toBe('ahead');
    expect(versionClaim(2n ** 53n, Number.MAX_SAFE_INTEGER - 5)).toBe('absurd');
  });

  it('names a snapshot only together with its checksum', () => {
    const known = { newest: stamp(9), lastGood: stamp(5), pushed: undefined };
    expect(snapshotNamed(stamp(9), known)).toBe('newest');
    expect(snapshotNamed(stamp(5), known)).toBe('last_good');
    expect(snapshotNamed(stamp(9, 'c5'), known)).toBeUndefined();
    expect(snapshotNamed(stamp(7), known)).toBeUndefined();
  });
});
