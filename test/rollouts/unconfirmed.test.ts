/**
 * What nobody confirms in time is taken back, by whichever instance serves: over kills and gaps at random moments. Implements
 * `docs/contract/rollouts.md#confirmed-changes`, "By a person".
 */
import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import type { RolledOut } from '../../src/commands/aggregate.js';
import { waitsUntil, type ConfirmationState } from '../../src/domain/confirmation/confirmation.js';
import { timestamp } from '../../src/kernel/clock.js';
import { ServiceError } from '../../src/kernel/errors.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { createRolloutRunner, type RolloutRunner } from '../../src/rollouts/runner.js';
import { createFleetLog } from '../support/fleet-log.js';
import { createUpstream, settings, updateUpstream } from '../support/fleet.js';
import { createManualClock } from '../support/manual-clock.js';
import { leasesBy, nothingSeen, rolloutId } from '../support/rollouts.js';
import { storesInMemory } from '../support/stores-in-memory.js';

const secs = 60;
const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

/** @param refusal why the revert is refused */
async function createPlay(refusal?: string) {
  const stores = storesInMemory();
  closers.push(() => stores.close());
  const clock = createManualClock();
  const log = await createFleetLog(stores.eventStore);
  const at = (): string => timestamp(clock.now());
  let reverts = 0;
  let runners = 0;
  /** Changes whose revert finds what it needs out of reach. */
  const unreachable = new Set<string>();
  const leases = leasesBy(clock, stores.readStore.leases);
  const confirmation = (): ConfirmationState => {
    const [only] = log.fleet.tables.confirmation.values();
    if (only === undefined) throw new Error('nothing is to be confirmed');
    return only;
  };
  return {
    clock,
    log,
    confirmation,
    unreachable,
    reverts: () => reverts,
    until: () => waitsUntil(confirmation(), at()),
    ask: (command: RolledOut = settings({ multiplex: true, multiplex_port: 9000 }), id = 'one') =>
      log.run(
        {
          type: 'WithRollout',
          command,
          policy: 'none',
          rolloutId: rolloutId(id),
          confirm: { by: 'manual', secs },
          observe: nothingSeen,
          planned: () => undefined,
        },
        at(),
      ),
    runner: (): Promise<RolloutRunner> =>
      createRolloutRunner({
        readStore: { ...stores.readStore, leases },
        gateway: {
          async execute(command) {
            await log.run(command, at());
            return { kind: 'done', commandId: '', events: [], position: 0, result: undefined as never };
          },
        },
        fleet: () => log.fleet,
        observe: nothingSeen,
        failing: () => [],
        factsOf: () => ({ applied: null, rejected: null }),
        revert: () => Promise.reject(new Error('there is no rollout')),
        async revertUnconfirmed({ id: confirmation_id, name: entry_id }) {
          if (refusal !== undefined) throw new ServiceError('conflict', refusal);
          if (unreachable.has(confirmation_id)) throw new ServiceError('unavailable', 'the audit is behind');
          reverts += 1;
          await log.append([
            { type: 'ConfirmationEnded', data: { confirmation_id, entry_id, how: 'reverted', error: null } },
          ]);
        },
        instanceId: `instance ${(runners += 1)}`,
        clock,
        offlineAfterMs: () => 30_000,
        readOnly: () => undefined,
        logger: silentLogger,
      }),
  };
}

describe('a change that nobody confirms', () => {
  it('is reverted once, when it was waited for as long as it was asked, however often the service was away', async () => {
    const gap = fc.record({ after: fc.integer({ min: 1, max: 40 }), gone: fc.integer({ min: 11, max: 600 }) });
    await fc.assert(
      fc.asyncProperty(fc.array(gap, { maxLength: 3 }), async (gaps) => {
        const play = await createPlay();
        let runner = await play.runner();
        const turn = async (): Promise<void> => {
          await runner.turn();
          play.clock.advance(1_000);
        };
        await turn();
        await play.ask();
        const asked = play.clock.now();
        let gone = 0;
        const isWaiting = (): boolean => play.confirmation().state === 'waiting';
        for (const one of gaps) {
          for (let second = 0; second < one.after && isWaiting(); second += 1) await turn();
          if (!isWaiting()) break;
          play.clock.advance(one.gone * 1_000);
          gone += one.gone;
          runner = await play.runner();
        }
        for (let second = 0; isWaiting(); second += 1) {
          expect(second).toBeLessThan(2 * secs);
          await turn();
        }
        expect(play.reverts()).toBe(1);
        const waited = (play.clock.now() - asked) / 1_000 - gone;
        // An instance notes only every three seconds that it is alive.
        expect(waited).toBeGreaterThanOrEqual(secs);
        expect(waited).toBeLessThanOrEqual(secs + 2 + 5 * gaps.length);
      }),
      { numRuns: 40 },
    );
  });

  it('is reverted in time although the clock was ahead when it was made, and is set right', async () => {
    const play = await createPlay();
    const runner = await play.runner();
    play.clock.jump(86_400_000);
    await runner.turn();
    await play.ask();
    await runner.turn();
    play.clock.jump(-86_400_000);
    for (let second = 0; play.confirmation().state === 'waiting'; second += 1) {
      expect(second).toBeLessThan(2 * secs);
      await runner.turn();
      play.clock.advance(1_000);
    }
    expect(play.reverts()).toBe(1);
  });

  it('is waited for as long while the machine sleeps, or the clock is set ahead', async () => {
    const play = await createPlay();
    const runner = await play.runner();
    await runner.turn();
    await play.ask();
    await runner.turn();
    play.clock.jump(86_400_000);
    for (let second = 0; second < secs - 3; second += 1) {
      await runner.turn();
      play.clock.advance(1_000);
    }
    expect(play.reverts()).toBe(0);
    for (let second = 0; second < 6; second += 1) {
      await runner.turn();
      play.clock.advance(1_000);
    }
    expect(play.reverts()).toBe(1);
  });

  it('shows a later end after a gap', async () => {
    const play = await createPlay();
    await (await play.runner()).turn();
    await play.ask();
    const before = play.until();
    play.clock.advance(120_000);
    const again = await play.runner();
    await again.turn();
    await again.turn();
    expect(play.until() - before).toBeGreaterThanOrEqual(117_000);
  });

  it('stays, with the sentence of the refusal, when it cannot be reverted, and is not tried again', async () => {
    const play = await createPlay('somebody has edited it since');
    const runner = await play.runner();
    await runner.turn();
    await play.ask();
    for (let second = 0; second < secs + 5; second += 1) {
      await runner.turn();
      play.clock.advance(1_000);
    }
    expect(play.confirmation()).toMatchObject({ state: 'refused', error: 'somebody has edited it since' });
    await play.log.run(settings({ multiplex: true, multiplex_port: 9001 }));
  });

  it('is reverted even while the revert of another one is out of reach', async () => {
    const play = await createPlay();
    const runner = await play.runner();
    await runner.turn();
    await play.ask();
    play.unreachable.add(play.confirmation().id);
    await play.log.run(createUpstream('u'));
    await play.ask(updateUpstream('u', { enabled: false }), 'two');
    let failed = 0;
    for (let second = 0; second < secs + 5; second += 1) {
      await runner.turn().catch(() => (failed += 1));
      play.clock.advance(1_000);
    }
    const states = Array.from(play.log.fleet.tables.confirmation.values(), ({ state }) => state);
    expect(states).toEqual(['waiting', 'reverted']);
    expect(failed).toBeGreaterThan(1);
  });

  it('is left alone once somebody has confirmed it', async () => {
    const play = await createPlay();
    const runner = await play.runner();
    await runner.turn();
    await play.ask();
    await play.log.run({ type: 'ConfirmChange', id: play.confirmation().id });
    play.clock.advance(2 * secs * 1_000);
    await runner.turn();
    expect([play.reverts(), play.confirmation().state]).toEqual([0, 'confirmed']);
  });
});
