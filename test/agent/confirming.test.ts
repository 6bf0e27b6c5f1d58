/** What an agent goes back to, and when: the rule of `src/agent/control/confirming.ts`, and `applier.ts`, which follows it. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createApplier } from '../../src/agent/control/applier.js';
import {
  afterApplied,
  afterConfirmed,
  afterGoingBack,
  goesBackAt,
  nothingKept,
  type Confirming,
} from '../../src/agent/control/confirming.js';
import { ConfigApplyStatus, type RuntimeConfigSnapshot } from '../../src/gen/svc/control/v1/config.js';
import { systemClock } from '../../src/kernel/clock.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { eventually } from '../support/eventually.js';
import { snapshot } from '../support/snapshots.js';

const of = (generation: number, secs?: number): RuntimeConfigSnapshot => ({
  ...snapshot(generation),
  confirmWithinSecs: secs,
});
const generationOf = (one: { readonly generation: bigint } | undefined): number | undefined =>
  one && Number(one.generation);

describe('what an agent goes back to', () => {
  it('is the last configuration that needed no confirmation, once the time is over', () => {
    const state = afterApplied(afterApplied(nothingKept, of(5), 0), of(6, 60), 1_000);
    expect([goesBackAt(state), generationOf(state.last)]).toEqual([61_000, 5]);
    expect(goesBackAt(afterGoingBack(state))).toBeUndefined();
  });

  it('is nothing when it never had one', () => {
    expect(goesBackAt(afterApplied(nothingKept, of(6, 60), 0))).toBeUndefined();
  });

  it('is, after a confirmation of exactly that, the confirmed one', () => {
    const state = afterApplied(afterApplied(nothingKept, of(5), 0), of(6, 60), 0);
    expect(afterConfirmed(state, 5n)).toBe(state);
    expect(afterConfirmed(state, 7n)).toBe(state);
    const confirmed = afterConfirmed(state, 6n);
    expect([goesBackAt(confirmed), generationOf(confirmed.last)]).toEqual([undefined, 6]);
  });

  it('does not move further away when the same one is applied again', () => {
    const state = afterApplied(afterApplied(nothingKept, of(5), 0), of(6, 60), 0);
    expect(goesBackAt(afterApplied(state, of(6, 60), 30_000))).toBe(60_000);
    expect(goesBackAt(afterApplied(state, of(7, 60), 30_000))).toBe(90_000);
  });

  it('is always confirmed or needs none, over any history, and is what ran last of those', () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant('apply' as const), secs: fc.option(fc.integer({ min: 60, max: 3600 })) }),
      fc.record({ kind: fc.constant('confirm' as const), back: fc.nat(2) }),
      fc.record({ kind: fc.constant('wait' as const), ms: fc.nat(4_000_000) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
        let [state, now, generation]: [Confirming, number, number] = [nothingKept, 0, 0];
        /** The model: what runs, what needs no confirmation, and by when what runs must be confirmed. */
        let [runs, good, due]: [number | undefined, number | undefined, number | undefined] = [
          undefined,
          undefined,
          undefined,
        ];
        for (const one of steps) {
          if (one.kind === 'apply') {
            generation += 1;
            state = afterApplied(state, of(generation, one.secs ?? undefined), now);
            runs = generation;
            if (one.secs === null) [good, due] = [generation, undefined];
            else due = now + one.secs * 1_000;
          } else if (one.kind === 'confirm') {
            state = afterConfirmed(state, BigInt(generation - one.back));
            if (one.back === 0 && due !== undefined && runs === generation) [good, due] = [runs, undefined];
          } else {
            now += one.ms;
            const at = goesBackAt(state);
            expect(at).toBe(good === undefined ? undefined : due);
            if (at !== undefined && at <= now) {
              state = afterGoingBack(state);
              [runs, due] = [good, undefined];
            }
          }
          expect(generationOf(state.last)).toBe(good);
        }
      }),
    );
  });
});

it('runs again what is confirmed while the agent is going back from it, and is not reported as rejected', async () => {
  const ran: bigint[] = [];
  const reported: ConfigApplyStatus[] = [];
  const applier = createApplier({
    gateway: {
      async apply({ generation, checksum }, goesBack) {
        ran.push(generation);
        if (goesBack === true) applier.confirmed(6n);
        return { generation, checksum, status: ConfigApplyStatus.APPLIED, errors: [], durationMs: 0n };
      },
    },
    file: undefined,
    clock: systemClock,
    logger: silentLogger,
    onReport: ({ status }) => void reported.push(status),
  });
  applier.offer(of(5));
  await eventually(() => ran).toEqual([5n]);
  applier.offer(of(6, 0));
  await eventually(() => reported.length).toBe(3);
  expect(ran).toEqual([5n, 6n, 5n, 6n]);
  await applier.close();
  expect(reported).toEqual([ConfigApplyStatus.APPLIED, ConfigApplyStatus.APPLIED, ConfigApplyStatus.APPLIED]);
});
