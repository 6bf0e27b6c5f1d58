/** The fold of a rollout's events. `decide.ts` decides the steps. Implements `docs/contract/rollouts.md#running`. */
import { unreachable } from '../../kernel/errors.js';
import { ranMs } from '../../kernel/run-clock.js';
import type { EventContext } from '../resource/declaration.js';
import { firstVersion, nextVersion } from '../resource/meta.js';
import { noNodes } from './node-set.js';
import {
  hasEnded,
  unpackIds,
  type RolloutEvent,
  type RolloutStarted,
  type RolloutState,
  type RolloutStepped,
  type RolloutWave,
} from './rollout.js';

/** The state after one event. Ignores the start of a rollout that exists, and other events of one that does not. */
export function evolveRollout(
  state: RolloutState | undefined,
  event: RolloutEvent,
  context: EventContext,
): RolloutState | undefined {
  switch (event.type) {
    case 'RolloutStarted':
      return state ?? started(event.data, context);
    case 'RolloutStepped':
      return state && nextVersion(stepped(state, event.data, context.at), context.at);
    case 'RolloutClockSet': {
      const { ran_ms, runs } = event.data;
      return state && nextVersion({ ...state, clock: { ran_ms, since: runs ? context.at : null } }, context.at);
    }
    default:
      return unreachable(event);
  }
}

function started(data: RolloutStarted['data'], { at, commandId, revision }: EventContext): RolloutState {
  const { rollout_id, upgrade, action, resource, policy, nodes, units, waves, online, failing } = data;
  const unreleased = { released_at: null, converged_at: null, online: noNodes, failing: [] };
  return {
    ...firstVersion(rollout_id, at),
    name: rollout_id,
    entry_id: upgrade === true ? null : commandId,
    action,
    resource,
    policy,
    revision,
    state: 'running',
    paused_from: null,
    nodes: unpackIds(nodes),
    units,
    waves: waves.map((count, index) => ({
      nodes: count,
      ...(index === 0 ? { released_at: at, converged_at: null, online, failing } : unreleased),
    })),
    wave: 1,
    left: noNodes,
    clock: { ran_ms: 0, since: at },
    judged_since: at,
    failed: noNodes,
    lost: noNodes,
    reason: null,
    ended_at: null,
  };
}

function stepped(before: RolloutState, data: RolloutStepped['data'], at: string): RolloutState {
  const { step, was, state, wave, reason, failed = before.failed, lost = before.lost, observed } = data;
  const runs = state === 'running' || state === 'baking';
  const goesOn = step === 'resume' && was === 'paused';
  const isAnew = step === 'resume' && was === 'halted';
  const waves = (change: Partial<RolloutWave>): readonly RolloutWave[] =>
    before.waves.map((one, index) => (index === wave - 1 ? { ...one, ...change } : one));
  return {
    ...before,
    state,
    wave,
    reason,
    failed,
    lost,
    paused_from: step === 'pause' && (was === 'running' || was === 'baking') ? was : null,
    clock: { ran_ms: runs && !goesOn ? 0 : ranMs(before.clock, at), since: runs ? at : null },
    ...(observed !== undefined ? { waves: waves({ released_at: at, ...observed }), judged_since: at } : {}),
    ...(step === 'converge' ? { waves: waves({ converged_at: at, ran_ms: ranMs(before.clock, at) }) } : {}),
    ...(isAnew ? { waves: waves({ converged_at: null }), judged_since: at } : {}),
    ended_at: hasEnded({ state }) ? at : null,
  };
}
