/**
 * Runs rollouts: one instance at a time, by a lease, looks at the nodes of each current wave and gives the commands
 * that follow (`judge.ts`). Each command names the version that the judgement is based on, so an instance that was
 * frozen repeats nothing. It also reverts changes that nobody has confirmed in time. Time in which no instance ran
 * rollouts does not count on any clock. `src/delivery/` carries out a hold. Implements
 * `docs/contract/rollouts.md#running` and `#confirmed-changes`, "By a person".
 */
import type { Gateway } from '../commands/port.js';
import { systemContext } from '../commands/system.js';
import type { NodeAgentFacts } from '../domain/agents/node-agent-facts.js';
import type { ConfirmationCommand, ConfirmationState } from '../domain/confirmation/confirmation.js';
import {
  excuses,
  generationWith,
  nodesIn,
  type Observe,
  type RolloutCommand,
  type RolloutState,
} from '../domain/rollout/rollout.js';
import { createTurns, startLoop } from '../kernel/background.js';
import { timestamp, type Clock } from '../kernel/clock.js';
import { ServiceError } from '../kernel/errors.js';
import { limits } from '../kernel/limits.js';
import { logsWarning, type Logger } from '../kernel/logger.js';
import { ranMs } from '../kernel/run-clock.js';
import type { Fleet } from '../domain/fleet/fleet.js';
import { createHeldLease } from '../storage/held-lease.js';
import type { Collection, CollectionSpec, ReadStore } from '../storage/read-store.js';
import { judge, type Judgement, type SeenNode } from './judge.js';
import { applyState } from '../reports/apply-state.js';
import { tuning } from './tuning.js';

export interface RolloutRunnerDeps {
  readonly readStore: Pick<ReadStore, 'collection' | 'leases'>;
  readonly gateway: Pick<Gateway<Fleet, RolloutCommand | ConfirmationCommand>, 'execute'>;
  /** The committed fleet. */
  fleet(): Fleet;
  readonly observe: Observe;
  /**
   * Keys of the listeners that a node should run but that its newest report shows in another state; undefined while
   * that report says nothing about what the node applied last.
   */
  failing(nodeId: string): readonly string[] | undefined;
  factsOf(nodeId: string): Pick<NodeAgentFacts, 'applied' | 'rejected'>;
  /** Reverts the entry of a rollout. @throws ServiceError its refusal */
  revert(rolloutId: string): Promise<unknown>;
  /** Reverts the entry of a change that nobody has confirmed. @throws ServiceError its refusal */
  revertUnconfirmed(confirmation: ConfirmationState): Promise<unknown>;
  readonly instanceId: string;
  /** `now` is the same on every instance. */
  readonly clock: Clock;
  /** How long agents have to come back after a start or a take-over, in milliseconds. */
  offlineAfterMs(): number;
  /** Why nothing may be written now; undefined if writing is allowed. */
  readOnly(): string | undefined;
  readonly logger: Logger;
}

export interface RolloutRunner {
  /** Takes the steps that are due. `startRolloutRunner` calls it repeatedly; tests call it themselves. */
  turn(): Promise<void>;
  /** Records until when rollouts were run, and gives up the lease. */
  close(): Promise<void>;
}

/** When rollouts were last run. */
const lastRun: CollectionSpec = { name: 'rollout_runner', version: 1 };
type LastRun = { readonly at: number };
const lastRunId = 'runner';
const context = systemContext('rollout');
const none: ReadonlySet<string> = new Set();

/** Observes the nodes of a wave. */
function createLook({ fleet: fleetNow, failing: failingAt, factsOf, observe }: RolloutRunnerDeps) {
  /**
   * By rollout and place: listeners of the current wave that ran in no report since its bake began; none before the
   * first.
   */
  const failing = new Map<string, { readonly wave: number; readonly nodes: Map<number, ReadonlySet<string>> }>();

  async function look(rollout: RolloutState): Promise<readonly SeenNode[]> {
    const { wave, waves, judged_since, state } = rollout;
    const fleet = fleetNow();
    const isExcused = excuses({ failing: waves[wave - 1]?.failing ?? [] });
    const before = failing.get(rollout.id);
    const failed = before?.wave === wave ? before.nodes : new Map<number, ReadonlySet<string>>();
    const pause = createTurns(tuning.sliceMs);
    const seen: SeenNode[] = [];
    for (const { nodeId, place, wave: own } of nodesIn(rollout)) {
      if (own !== wave) continue;
      await pause();
      const generation = generationWith(rollout, fleet.tables.node.get(nodeId));
      const apply = applyOf(nodeId, generation, judged_since);
      // An earlier report says nothing: if it counted as one in which all listeners run, it would excuse them.
      const told = state === 'baking' && apply === 'applied' ? failingAt(nodeId) : undefined;
      if (told !== undefined) {
        const still = failed.get(place);
        const fail = told.filter((key) => !isExcused(place, key) && still?.has(key) !== false);
        failed.set(place, fail.length === 0 ? none : new Set(fail));
      }
      seen.push({
        nodeId,
        place,
        online: observe.isOnline(nodeId),
        apply,
        fails: (failed.get(place)?.size ?? 0) > 0,
      });
    }
    failing.set(rollout.id, { wave, nodes: failed });
    return seen;
  }

  function applyOf(nodeId: string, generation: number, since: string): SeenNode['apply'] {
    const { state, at } = applyState(generation, factsOf(nodeId), undefined);
    if (state === 'applied') return 'applied';
    return state === 'rejected' && (at ?? '') >= since ? 'rejected' : 'waiting';
  }

  return {
    look,
    /** Forgets what was seen of all other rollouts. */
    keep(isKept: (rolloutId: string) => boolean): void {
      for (const id of failing.keys()) if (!isKept(id)) failing.delete(id);
    },
  };
}

/** The steps of rollouts and of changes that await confirmation, each as a command. */
function createSteps(deps: RolloutRunnerDeps, look: ReturnType<typeof createLook>['look']) {
  const { clock, logger } = deps;

  const give = async (command: RolloutCommand | ConfirmationCommand): Promise<void> => {
    await deps.gateway.execute(command, context, () => undefined);
  };

  async function carryOn(rollout: RolloutState): Promise<void> {
    if (rollout.clock.since === null) {
      const { id, version, clock: stood } = rollout;
      return give({ type: 'SetRolloutClock', id, version, ran_ms: stood.ran_ms, runs: true });
    }
    const seen = await look(rollout);
    await step(rollout, judge(rollout, seen, ranMs(rollout.clock, timestamp(clock.now()))));
  }

  async function step({ id, version, policy, entry_id }: RolloutState, judgement: Judgement): Promise<void> {
    if (judgement.kind === 'nothing') return;
    const { failed, lost } = judgement;
    const judged = { id, version, failed, lost };
    if (judgement.kind !== 'stop') {
      const isConverged = judgement.kind === 'converge';
      return give(
        isConverged ? { type: 'ConvergeWave', ...judged } : { type: 'ReleaseWave', ...judged, observe: deps.observe },
      );
    }
    const { reason } = judgement;
    const reverts = policy.on_failure === 'revert' && entry_id !== null;
    logger.warn({ rollout_id: id, reason }, reverts ? 'a rollout is reverted' : 'a rollout is halted');
    return give({ type: reverts ? 'BeginRolloutRevert' : 'HaltRollout', ...judged, reason });
  }

  /** Called until the entry is reverted, because the process may be killed between the two events. */
  async function revert({ id, version, reason }: RolloutState): Promise<void> {
    const because = await refusalOf(deps.revert(id));
    if (because === undefined) return;
    const refused = `${reason ?? 'it failed'}; it could not be reverted: ${because}`;
    await give({ type: 'HaltRollout', id, version, reason: refused, failed: [], lost: [] });
  }

  async function wait(one: ConfirmationState): Promise<void> {
    const { id, version, secs, clock: stood } = one;
    if (stood.since === null) {
      return give({ type: 'SetConfirmationClock', id, version, ran_ms: stood.ran_ms, runs: true });
    }
    if (ranMs(stood, timestamp(clock.now())) < secs * 1_000) return;
    logger.warn({ entry_id: one.name }, 'a change is reverted, because nobody has confirmed it');
    const error = await refusalOf(deps.revertUnconfirmed(one));
    if (error !== undefined) await give({ type: 'RefuseTimedRevert', id, version, error });
  }

  return { give, carryOn, revert, wait };
}

/** The caller takes its turns. @internal exported for tests */
export async function createRolloutRunner(deps: RolloutRunnerDeps): Promise<RolloutRunner> {
  const { clock } = deps;
  const lived: Collection<LastRun> = await deps.readStore.collection<LastRun>(lastRun);
  const noteLife = (): Promise<void> => lived.set([{ id: lastRunId, fields: { at: clock.now() } }]);
  const lease = createHeldLease({
    leases: deps.readStore.leases,
    kind: 'rollouts',
    name: 'runner',
    holder: deps.instanceId,
    ttlMs: tuning.leaseMs,
    everyMs: tuning.leaseEveryMs,
    clock,
    async onGiven(isTaken) {
      if (isTaken) await takeOver();
      await noteLife();
    },
  });
  let takenAt = Number.POSITIVE_INFINITY;
  /** How far the wall clock is ahead of the monotonic one. */
  let ahead = clock.now() - clock.monotonic();
  const { look, keep } = createLook(deps);
  const { give, carryOn, revert, wait } = createSteps(deps, look);

  /** Sets each clock back to where it stood when rollouts were last run. */
  async function takeOver(): Promise<void> {
    keep(() => false);
    takenAt = clock.monotonic();
    const at = (await lived.get(lastRunId))?.fields.at;
    // Without a recorded run, as in an emptied read store, a clock stays where it was last set.
    const until = (since: string): string => (at === undefined ? since : timestamp(Math.min(at, clock.now())));
    const stop = async (
      type: 'SetConfirmationClock' | 'SetRolloutClock',
      { id, version, clock: runs }: ConfirmationState | RolloutState,
    ): Promise<void> => {
      if (runs.since !== null) await give({ type, id, version, ran_ms: ranMs(runs, until(runs.since)), runs: false });
    };
    for (const one of unconfirmed()) await stop('SetConfirmationClock', one);
    for (const rollout of under('running', 'baking')) await stop('SetRolloutClock', rollout);
  }

  const under = (...states: readonly RolloutState['state'][]): readonly RolloutState[] =>
    [...deps.fleet().tables.rollout.values()].filter(({ state }) => states.includes(state));

  const unconfirmed = (): readonly ConfirmationState[] =>
    [...deps.fleet().tables.confirmation.values()].filter(({ state }) => state === 'waiting');

  /** Takes the step of each, even if that of another fails. @throws the first error */
  async function each<T>(all: readonly T[], take: (one: T) => Promise<void>): Promise<void> {
    const errors: unknown[] = [];
    for (const one of all) {
      // The lease may have ended while this process slept.
      if (lease.isHeld()) await take(one).catch((error: unknown) => errors.push(error));
    }
    if (errors.length > 0) throw errors[0];
  }

  async function carryOnAll(): Promise<void> {
    if (clock.monotonic() < takenAt + Math.min(tuning.graceMs, deps.offlineAfterMs())) return;
    await each(under('running', 'baking', 'reverting'), (rollout) =>
      rollout.state === 'reverting' ? revert(rollout) : carryOn(rollout),
    );
    keep((id) => deps.fleet().tables.rollout.get(id)?.state === 'baking');
  }

  return {
    async turn() {
      if (deps.readOnly() !== undefined) return;
      const now = clock.now() - clock.monotonic();
      // The machine slept, or the clock was set: that time counts on no clock, and one that runs since a future time stands still.
      if (Math.abs(now - ahead) > limits.clocks.apartMs && lease.isHeld()) await takeOver();
      ahead = now;
      if (!(await lease.hold())) return;
      await each(unconfirmed(), wait).finally(carryOnAll);
    },
    async close() {
      if (!lease.isHeld()) return;
      await noteLife();
      await lease.release();
    },
  };
}

/** Why a revert was refused for good; undefined if it succeeded. @throws errors that a later try may not meet */
async function refusalOf(revert: Promise<unknown>): Promise<string | undefined> {
  try {
    await revert;
    return undefined;
  } catch (error) {
    if (!(error instanceof ServiceError) || error.code === 'unavailable' || error.code === 'internal') throw error;
    return error.message;
  }
}

/** Runs rollouts until closed. @throws ServiceError `unavailable` */
export async function startRolloutRunner(deps: RolloutRunnerDeps): Promise<{ close(): Promise<void> }> {
  const runner = await createRolloutRunner(deps);
  const loop = startLoop(tuning.turnMs, runner.turn, logsWarning(deps.logger, 'rollouts cannot be carried on yet'));
  return {
    async close() {
      await loop.close();
      await runner.close().catch(logsWarning(deps.logger, 'the lease of the rollout runner ends by itself'));
    },
  };
}
