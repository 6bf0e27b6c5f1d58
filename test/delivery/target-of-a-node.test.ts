/**
 * The rules for a node's target (`docs/contract/agent-protocol.md#configuration`), and a property over apply
 * histories.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Stamp, ApplyHistory } from '../../src/delivery/target.js';
import {
  afterApply,
  afterReject,
  emptyApplyHistory,
  snapshotNamed,
  applyHistoryOf,
  targetOf,
  versionClaim,
} from '../../src/delivery/target.js';

const stamp = (generation: number, checksum = `c${generation}`): Stamp => ({ generation, checksum });
const applied = (history: ApplyHistory, of: Stamp): ApplyHistory => afterApply(history, of, of);

describe('the target of a node', () => {
  it('is the newest generation', () => {
    expect(targetOf(stamp(5), emptyApplyHistory)).toBe('newest');
    expect(targetOf(stamp(9), applied(emptyApplyHistory, stamp(5)))).toBe('newest');
  });

  it('is the last-good snapshot once the newest is rejected', () => {
    expect(targetOf(stamp(9), afterReject(applied(emptyApplyHistory, stamp(5)), stamp(9)))).toBe('last_good');
  });

  it('is the last-good snapshot after any number of rejects in a row', () => {
    let history = applied(emptyApplyHistory, stamp(5));
    for (let generation = 6; generation <= 20; generation += 1) {
      history = afterReject(history, stamp(generation));
      expect(targetOf(stamp(generation), history)).toBe('last_good');
    }
  });

  it('is the newest when only an earlier one was rejected', () => {
    expect(targetOf(stamp(12), afterReject(applied(emptyApplyHistory, stamp(5)), stamp(9)))).toBe('newest');
  });

  it('is the newest once more, then nothing, when no snapshot was ever applied', () => {
    const rejected = afterReject(emptyApplyHistory, stamp(9));
    expect(targetOf(stamp(9), rejected)).toBe('newest_again');
    expect(targetOf(stamp(9), { ...rejected, retried: 9 })).toBe('nothing');
    expect(targetOf(stamp(10), { ...rejected, retried: 9 })).toBe('newest');
  });

  it('is the newest once more, then nothing, when the last-good one is rejected too', () => {
    const both = afterReject(afterReject(applied(emptyApplyHistory, stamp(5)), stamp(9)), stamp(5));
    expect(targetOf(stamp(9), both)).toBe('newest_again');
    expect(targetOf(stamp(9), { ...both, retried: 9 })).toBe('nothing');
  });

  it('follows a reject until its generation or a later one is applied', () => {
    const rejected = afterReject(applied(emptyApplyHistory, stamp(5)), stamp(9));
    expect(targetOf(stamp(9), applied(rejected, stamp(5)))).toBe('last_good');
    expect(targetOf(stamp(9), applied(rejected, stamp(9)))).toBe('newest');
  });

  it('is the newest when another checksum of the same generation was rejected', () => {
    expect(targetOf(stamp(9, 'other'), afterReject(emptyApplyHistory, stamp(9)))).toBe('newest');
  });

  it('is never the snapshot that the node rejected last, except once more', () => {
    const step = fc.record({ of: fc.integer({ min: 1, max: 4 }), ok: fc.boolean() });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), fc.integer({ min: 1, max: 4 }), (steps, newest) => {
        let history = emptyApplyHistory;
        let last: { of: number; ok: boolean } | undefined;
        for (const next of steps) {
          history = next.ok ? applied(history, stamp(next.of)) : afterReject(history, stamp(next.of));
          last = next;
        }
        const target = targetOf(stamp(newest), history);
        const generation = target === 'last_good' ? history.lastGood?.generation : newest;
        if (last !== undefined && !last.ok && (target === 'newest' || target === 'last_good')) {
          expect(generation).not.toBe(last.of);
        }
        if (last?.ok === true && last.of === newest) expect(target).toBe('newest');
      }),
    );
  });
});

describe('the apply history at the start of a session', () => {
  it('comes from the recorded facts when this instance remembers nothing', () => {
    const history = applyHistoryOf(undefined, { applied: stamp(5), rejected: stamp(9) }, stamp(5));
    expect(targetOf(stamp(9), history)).toBe('last_good');
  });

  it('is what this instance remembers when the recorded facts lag behind', () => {
    const remembered = { ...afterReject(applied(emptyApplyHistory, stamp(5)), stamp(9)), retried: 9 };
    expect(targetOf(stamp(9), applyHistoryOf(remembered, { applied: stamp(5), rejected: null }, undefined))).toBe(
      'nothing',
    );
  });

  it('comes from the recorded facts when the node applied a later snapshot on another instance', () => {
    const remembered = afterReject(applied(emptyApplyHistory, stamp(5)), stamp(9));
    expect(targetOf(stamp(9), applyHistoryOf(remembered, { applied: stamp(9), rejected: null }, stamp(9)))).toBe(
      'newest',
    );
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
    expect(snapshotNamed(stamp(9), stamp(9), stamp(5))).toBe('newest');
    expect(snapshotNamed(stamp(5), stamp(9), stamp(5))).toBe('last_good');
    expect(snapshotNamed(stamp(9, 'c5'), stamp(9), stamp(5))).toBeUndefined();
    expect(snapshotNamed(stamp(7), stamp(9), stamp(5))).toBeUndefined();
  });
});
