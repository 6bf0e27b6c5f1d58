/** Rollouts carried on over fleets that behave in any way, by runners that die. Implements `docs/contract/rollouts.md#running`. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createRolloutRunner, type RolloutRunner } from '../../src/rollouts/runner.js';
import { hasEnded, nodesIn, type RolloutState } from '../../src/domain/rollout/rollout.js';
import { placesIn } from '../../src/domain/rollout/node-set.js';
import type { RolloutPolicyDefinition } from '../../src/domain/rollout-policy/rollout-policy.js';
import { ServiceError } from '../../src/kernel/errors.js';
import { timestamp } from '../../src/kernel/clock.js';
import { uuidFromName } from '../../src/kernel/ids.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { createFleetLog } from '../support/fleet-log.js';
import { createManualClock } from '../support/manual-clock.js';
import { leasesBy, createRolloutPolicy, rolloutId, rolloutOf } from '../support/rollouts.js';
import { storesInMemory } from '../support/stores-in-memory.js';

/** What a node does when its wave is released. */
const behaviours = [
  'applies',
  'rejects',
  'rejects while it bakes',
  'never answers',
  'is away',
  'leaves',
  'comes back',
  'fails a listener',
  'fails a listener at first',
  'has failed a listener before',
] as const;
/** In random plays, kills would change what the last two lead to. */
type Behaviour = (typeof behaviours)[number] | 'comes back and never answers' | 'fails a listener later';

const listener = 'tcp 0.0.0.0 443';
const endStates = ['completed', 'halted', 'reverted'] as const;

async function createPlay(
  nodes: readonly Behaviour[],
  policy: Partial<RolloutPolicyDefinition>,
  refusesRevert = false,
) {
  const clock = createManualClock();
  const stores = storesInMemory();
  const log = await createFleetLog(stores.eventStore, () => timestamp(clock.now()));
  const ids = nodes.map((_, index) => uuidFromName(`node ${index}`));
  for (const [index, id] of ids.entries()) await log.createNode(id, `node-${index}`);
  await log.run(createRolloutPolicy('waves', policy));

  /** When each node was released, by the monotonic clock. */
  const releasedAt = new Map<string, number>();
  const since = (id: string): number => clock.monotonic() - (releasedAt.get(id) ?? clock.monotonic());
  const behaviourOf = (id: string): Behaviour => nodes[ids.indexOf(id)] ?? 'applies';
  const observe = {
    isOnline(id: string) {
      const behaviour = behaviourOf(id);
      if (behaviour === 'leaves') return since(id) < 1_000;
      if (behaviour.startsWith('comes back')) return since(id) < 1_000 || since(id) > 4_000;
      return behaviour !== 'is away';
    },
    failing(id: string) {
      const behaviour = behaviourOf(id);
      const fails =
        (behaviour === 'fails a listener' && since(id) > 0) ||
        (behaviour === 'fails a listener later' && since(id) > 6_000) ||
        (behaviour === 'fails a listener at first' && since(id) > 0 && since(id) < 6_000) ||
        behaviour === 'has failed a listener before';
      return fails ? [listener] : [];
    },
  };
  const factsOf = (id: string) => {
    const at = timestamp(clock.now() - since(id));
    const report = { generation: log.fleet.generationOf(id) ?? 0, checksum: '', at };
    const isReleased = releasedAt.has(id);
    const answers =
      isReleased && observe.isOnline(id) && !behaviourOf(id).endsWith('never answers') && behaviourOf(id) !== 'leaves';
    const rejects =
      behaviourOf(id) === 'rejects' || (behaviourOf(id) === 'rejects while it bakes' && since(id) > 4_000);
    return {
      applied: answers && !rejects ? report : null,
      rejected: answers && rejects ? { ...report, errors: [] } : null,
    };
  };
  /** Every step of the log in order; the wave before must never be skipped or come back. */
  const steps: string[] = [];
  const before = { wave: 0 };
  function noteReleased(): void {
    for (const rollout of log.fleet.tables.rollout.values()) {
      expect(rollout.wave).toBeGreaterThanOrEqual(before.wave);
      expect(rollout.wave).toBeLessThanOrEqual(before.wave + 1);
      before.wave = rollout.wave;
      for (const { nodeId, wave } of nodesIn(rollout)) {
        if ((wave <= rollout.wave || hasEnded(rollout)) && !releasedAt.has(nodeId))
          releasedAt.set(nodeId, clock.monotonic());
      }
    }
  }
  let runners = 0;
  const leases = leasesBy(clock, stores.readStore.leases);
  const runner = (offlineAfterMs = () => 30_000): Promise<RolloutRunner> =>
    createRolloutRunner({
      readStore: { ...stores.readStore, leases },
      gateway: {
        async execute(command) {
          const revision = log.fleet.revision.value;
          await log.run(command);
          if (log.fleet.revision.value > revision && command.type !== 'SetRolloutClock') steps.push(command.type);
          noteReleased();
          return { kind: 'done', commandId: '', events: [], position: 0, result: undefined as never };
        },
      },
      fleet: () => log.fleet,
      observe,
      // For a while, the newest report is one from before the change.
      failing: (id) => (since(id) < 3_000 ? undefined : observe.failing(id)),
      factsOf: factsOf as never,
      async revert(id) {
        if (refusesRevert) throw new ServiceError('conflict', 'somebody has edited it since');
        const { entry_id, policy: copy, wave } = rolloutOf(log.fleet);
        await log.append([
          {
            type: 'RolloutStepped',
            data: {
              rollout_id: id,
              entry_id,
              policy: copy.name,
              step: 'end',
              was: 'reverting',
              state: 'reverted',
              wave,
              reason: null,
            },
          },
        ]);
        steps.push('Revert');
      },
      revertUnconfirmed: () => Promise.reject(new Error('nothing is to be confirmed here')),
      instanceId: `instance ${(runners += 1)}`,
      clock,
      offlineAfterMs,
      readOnly: () => undefined,
      logger: silentLogger,
    });
  return {
    clock,
    log,
    steps,
    runner,
    rollout: (): RolloutState => rolloutOf(log.fleet),
    async start() {
      await log.run({
        type: 'WithRollout',
        command: { type: 'UpdateConnectivity', ifMatch: undefined, multiplex: true, multiplex_port: 9000 },
        policy: 'waves',
        rolloutId: rolloutId('one'),
        observe,
        planned: () => undefined,
      });
      noteReleased();
    },
  };
}
type Play = Awaited<ReturnType<typeof createPlay>>;

/** Second by second until the rollout has ended. @param killedAt seconds at which another runner takes the place of this one */
async function play(one: Play, killedAt: ReadonlySet<number> = new Set()): Promise<void> {
  let runner = await one.runner();
  // The grace of a start.
  for (let second = 0; second < 31; second += 1) {
    await runner.turn();
    one.clock.advance(1_000);
  }
  await one.start();
  for (let second = 0; !isAtEnd(one.rollout()); second += 1) {
    expect(second).toBeLessThan(20_000);
    if (killedAt.has(second)) runner = await one.runner();
    await runner.turn();
    one.clock.advance(1_000);
  }
}
const isAtEnd = ({ state }: RolloutState): boolean => endStates.some((end) => end === state);

const anyPolicy = fc.record({
  waves: fc.constantFrom<RolloutPolicyDefinition['waves']>(
    [{ nodes: 1 }],
    [{ nodes: 1 }, { nodes: '50%' }],
    [{ nodes: 1 }, { nodes: 1 }, { nodes: 1 }],
  ),
  bake_secs: fc.constantFrom(0, 7, 60),
  apply_timeout_secs: fc.constantFrom(5, 20),
  max_failed: fc.constantFrom<number | string>(0, 1, '40%'),
  max_lost: fc.constantFrom<number | string>(0, 1),
  on_failure: fc.constantFrom('halt' as const, 'revert' as const),
});
const anyNodes = fc.array(fc.constantFrom(...behaviours), { minLength: 2, maxLength: 6 });

/** How it ended, without times. */
const endOf = (one: Play) => {
  const { state, wave, reason, failed, lost } = one.rollout();
  return { state, wave, reason, failed: placesIn(failed), lost: placesIn(lost), steps: one.steps };
};

describe('a rollout', () => {
  it('ends as its policy says of what its nodes do, and as without kills when its runners die', async () => {
    await fc.assert(
      fc.asyncProperty(
        anyNodes,
        anyPolicy,
        fc.uniqueArray(fc.nat({ max: 200 }), { maxLength: 5 }),
        async (any, policy, kills) => {
          // Without a bake there is no time to do anything in, and no listener is judged.
          const inBake: readonly Behaviour[] = ['comes back', 'rejects while it bakes'];
          const nodes = any.map((one) => (policy.bake_secs === 0 && inBake.includes(one) ? 'applies' : one));
          const whole = await createPlay(nodes, policy);
          await play(whole);
          const killed = await createPlay(nodes, policy);
          await play(killed, new Set(kills));
          expect(endOf(killed)).toEqual(endOf(whole));

          const { rollout } = whole;
          const { state, wave, failed, lost, nodes: all } = rollout();
          const allowed = (share: number | string): number =>
            typeof share === 'number' ? share : Math.ceil((Number.parseInt(share, 10) * all.length) / 100);
          const isOver =
            placesIn(failed).length > allowed(policy.max_failed) || placesIn(lost).length > allowed(policy.max_lost);
          expect(state).toBe(isOver ? (policy.on_failure === 'revert' ? 'reverted' : 'halted') : 'completed');
          const behaviourAt = (place: number): Behaviour | undefined =>
            nodes[Number(whole.log.fleet.tables.node.get(all[place] ?? '')?.name.slice('node-'.length))];
          // A wave at which it stopped is judged in part.
          const whollyJudged = [...nodesIn(rollout())]
            .filter(({ wave: own }) => own < wave || state === 'completed')
            .map(({ place }) => place);
          const expectWere = (places: readonly number[], ...expected: readonly Behaviour[]): void => {
            const were = (place: number): boolean => expected.some((one) => one === behaviourAt(place));
            expect(places.filter((place) => !were(place))).toEqual([]);
            expect(places).toEqual(expect.arrayContaining(whollyJudged.filter(were)));
          };
          const judgedInBake = policy.bake_secs > 0 ? (['fails a listener'] as const) : [];
          expectWere(placesIn(failed), 'rejects', 'rejects while it bakes', 'never answers', ...judgedInBake);
          expectWere(placesIn(lost), 'leaves');
          if (state === 'completed') expect(wave).toBe(rollout().waves.length);
        },
      ),
      { numRuns: 30 },
    );
  });

  it.each([
    ['halted', 60],
    ['completed', 7],
  ])('is %s when a node comes back in a bake of %i s and has not applied in 20 s', async (state, bake_secs) => {
    const one = await createPlay(['comes back and never answers', 'applies'], { bake_secs, apply_timeout_secs: 20 });
    await play(one);
    expect(endOf(one)).toMatchObject({ state, failed: state === 'halted' ? [0] : [], lost: [] });
  });

  it('is halted with the sentence when its revert is refused', async () => {
    const one = await createPlay(['rejects', 'rejects'], { on_failure: 'revert', waves: [{ nodes: 2 }] }, true);
    await play(one);
    // It is stopped before its wave has converged.
    expect(one.steps).toEqual(['BeginRolloutRevert', 'HaltRollout']);
    expect(one.rollout()).toMatchObject({
      state: 'halted',
      wave: 1,
      reason: '2 nodes failed by wave 1; the policy allows 0; it could not be reverted: somebody has edited it since',
    });
  });

  it('goes on when a listener has run at any time of the bake', async () => {
    const one = await createPlay(['fails a listener later', 'fails a listener later'], {});
    await play(one);
    expect(one.rollout()).toMatchObject({ state: 'completed', failed: '' });
  });

  it.each([
    [60, 2],
    [0, 1],
  ])('judges listeners by the whole bake of %i s alone, whatever they did before', async (bake_secs, failed) => {
    const nodes = ['never answers', 'fails a listener later'] as const;
    const one = await createPlay(nodes, { waves: [{ nodes: 2 }], bake_secs, apply_timeout_secs: 20, max_failed: 2 });
    await play(one);
    expect(one.rollout().state).toBe('completed');
    expect(placesIn(one.rollout().failed)).toHaveLength(failed);
  });

  it('waits for newer answers when it is resumed after a halt', async () => {
    const one = await createPlay(['rejects', 'applies'], { apply_timeout_secs: 20 });
    await play(one);
    expect(one.rollout().state).toBe('halted');
    one.clock.advance(60_000);
    await one.log.run({ type: 'ResumeRollout', id: rolloutId('one') });
    const runner = await one.runner(() => 0);
    for (let second = 0; second < 20; second += 1) {
      await runner.turn();
      expect(one.rollout().state).toBe('running');
      one.clock.advance(1_000);
    }
    await runner.turn();
    expect(one.rollout()).toMatchObject({ state: 'halted', reason: '1 node failed by wave 1; the policy allows 0' });
  });

  it('is judged as soon as a shorter grace is set', async () => {
    const one = await createPlay(['applies', 'applies'], {});
    let graceMs = 30_000;
    const runner = await one.runner(() => graceMs);
    await runner.turn();
    await one.start();
    one.clock.advance(4_000);
    await runner.turn();
    expect(one.steps).toEqual([]);
    graceMs = 3_000;
    await runner.turn();
    expect(one.steps).toEqual(['ConvergeWave']);
  });

  it('does not age while it is paused, nor while nobody carries it on', async () => {
    const one = await createPlay(['never answers', 'applies'], { apply_timeout_secs: 20 });
    const runner = await one.runner();
    await runner.turn();
    one.clock.advance(31_000);
    await runner.turn();
    await one.start();
    one.clock.advance(5_000);
    await runner.turn();
    await one.log.run({ type: 'PauseRollout', id: rolloutId('one') });
    one.clock.advance(1_000_000);
    await one.log.run({ type: 'ResumeRollout', id: rolloutId('one') });
    await runner.turn();
    // A pause of the process: it takes over from itself, with a grace.
    one.clock.advance(1_000_000);
    for (let second = 0; second < 45; second += 1) {
      expect(one.rollout().state).toBe('running');
      await runner.turn();
      one.clock.advance(1_000);
    }
    await runner.turn();
    expect(one.rollout()).toMatchObject({ state: 'halted', reason: '1 node failed by wave 1; the policy allows 0' });
  });
});
