/**
 * The steps of a rollout, as people and the service take them. A step of the service names the version by which it was
 * judged, and does nothing at another one, so only one of two instances takes it. Implements
 * `docs/contract/rollouts.md#running`.
 */
import { ok } from '../../kernel/result.js';
import type { Decisions } from '../resource/declaration.js';
import type { FleetView } from '../resource/fleet-view.js';
import { refuse, type Decision } from '../resource/refusal.js';
import { existing } from '../resource/rules.js';
import { noNodes, nodeSet } from './node-set.js';
import {
  hasEnded,
  nodesIn,
  rolloutKey,
  type Judged,
  type Observe,
  type Observed,
  type RolloutCommand,
  type RolloutEvent,
  type RolloutState,
  type RolloutStateName,
  type RolloutStepped,
  type RolloutStepName,
} from './rollout.js';

type Of<T extends RolloutCommand['type']> = Extract<RolloutCommand, { readonly type: T }>;
type StepData = RolloutStepped['data'];

function step(
  rollout: RolloutState,
  name: RolloutStepName,
  state: RolloutStateName,
  further: Partial<Pick<StepData, 'wave' | 'reason' | 'failed' | 'lost' | 'observed'>> = {},
): Decision<RolloutStepped> {
  const { id: rollout_id, entry_id, policy, state: was, wave } = rollout;
  const data = { rollout_id, entry_id, policy: policy.name, step: name, was, state, wave, reason: null, ...further };
  return ok([{ type: 'RolloutStepped', data }]);
}

/** A release names up to this many failing listeners; for the nodes after that, every listener is excused. */
const failingNamed = 1_000;

/** Observes nodes by their places. */
export function observedOf(
  nodes: Iterable<{ readonly nodeId: string; readonly place: number }>,
  observe: Observe,
): Observed {
  const online: number[] = [];
  const failing: string[] = [];
  for (const { nodeId, place } of nodes) {
    if (observe.isOnline(nodeId)) online.push(place);
    const listeners = observe.failing(nodeId);
    if (listeners?.length === 0) continue;
    if (listeners === undefined || failing.length + listeners.length > failingNamed) failing.push(String(place));
    else failing.push(...listeners.map((listener) => `${place} ${listener}`));
  }
  return { online: nodeSet(online), failing };
}

/** Releases the next wave, or completes after the last. */
function onward(
  rollout: RolloutState,
  name: 'release' | 'advance',
  observe: Observe,
  judged: Partial<Pick<StepData, 'failed' | 'lost'>> = {},
): Decision<RolloutStepped> {
  const wave = rollout.wave + 1;
  if (wave > rollout.waves.length) {
    return step(rollout, name === 'release' ? 'complete' : name, 'completed', judged);
  }
  const nodes = [...nodesIn(rollout)].filter((node) => node.wave === wave);
  return step(rollout, name, 'running', { ...judged, wave, observed: observedOf(nodes, observe) });
}

/** The rollout's sets of failed and lost nodes, with those of a judgement added. */
function judgedIn(rollout: RolloutState, { failed, lost }: Judged): Pick<StepData, 'failed' | 'lost'> {
  const places = new Map(rollout.nodes.map((nodeId, place) => [nodeId, place]));
  const placesOf = (ids: readonly string[]): readonly number[] => ids.flatMap((id) => places.get(id) ?? []);
  return { failed: nodeSet(placesOf(failed), rollout.failed), lost: nodeSet(placesOf(lost), rollout.lost) };
}

/** A step of the service, which only some states allow. */
const expected =
  <C extends Extract<RolloutCommand, { readonly version: number }>>(
    from: readonly RolloutStateName[],
    decide: (rollout: RolloutState, command: C) => Decision<RolloutEvent>,
  ) =>
  (fleet: FleetView, command: C): Decision<RolloutEvent> => {
    const rollout = fleet.get(rolloutKey, command.id);
    return rollout?.version === command.version && from.includes(rollout.state) ? decide(rollout, command) : ok([]);
  };

/** A step that a person takes, which only some states allow. @param what for a sentence: "paused" */
const allowed =
  <C extends RolloutCommand>(
    from: readonly RolloutStateName[],
    what: string,
    decide: (rollout: RolloutState, command: C) => Decision<RolloutEvent>,
  ) =>
  (fleet: FleetView, command: C): Decision<RolloutEvent> => {
    const rollout = existing(fleet, rolloutKey, { id: command.id });
    if (!rollout.ok) return rollout;
    const { state } = rollout.value;
    if (from.includes(state)) return decide(rollout.value, command);
    return refuse('conflict', `the rollout is ${state}; only one that is ${from.join(' or ')} can be ${what}`);
  };

const runs = ['running', 'baking'] as const;
const notEnded = ['running', 'baking', 'paused', 'halted', 'reverting'] as const;

export const decideRollout: Decisions<RolloutCommand, RolloutEvent> = {
  ConvergeWave: expected<Of<'ConvergeWave'>>(['running'], (rollout, command) =>
    step(rollout, 'converge', 'baking', judgedIn(rollout, command)),
  ),
  ReleaseWave: expected<Of<'ReleaseWave'>>(['baking'], (rollout, command) =>
    onward(rollout, 'release', command.observe, judgedIn(rollout, command)),
  ),
  HaltRollout: expected<Of<'HaltRollout'>>([...runs, 'reverting'], (rollout, command) =>
    step(rollout, 'halt', 'halted', { ...judgedIn(rollout, command), reason: command.reason }),
  ),
  BeginRolloutRevert: expected<Of<'BeginRolloutRevert'>>(runs, (rollout, command) =>
    step(rollout, 'revert', 'reverting', { ...judgedIn(rollout, command), reason: command.reason }),
  ),
  SetRolloutClock: expected<Of<'SetRolloutClock'>>(runs, ({ id }, { ran_ms, runs: goesOn }) =>
    ok([{ type: 'RolloutClockSet', data: { rollout_id: id, ran_ms, runs: goesOn } }]),
  ),
  PauseRollout: allowed(runs, 'paused', (rollout) => step(rollout, 'pause', 'paused')),
  ResumeRollout: allowed(['paused', 'halted'], 'resumed', (rollout) =>
    rollout.state === 'halted'
      ? step(rollout, 'resume', 'running', { failed: noNodes, lost: noNodes })
      : step(rollout, 'resume', rollout.paused_from ?? 'running'),
  ),
  AdvanceRollout: allowed<Of<'AdvanceRollout'>>(['baking'], 'advanced', (rollout, { observe }) =>
    onward(rollout, 'advance', observe),
  ),
  CompleteRollout: allowed(notEnded, 'completed', (rollout) => step(rollout, 'complete', 'completed')),
};

/**
 * The end of a rollout with the revert of its entry; nothing if it has ended. @param byName whether somebody reverts the
 * rollout itself
 */
export function endByRevert(fleet: FleetView, id: string, byName: boolean): readonly RolloutStepped[] {
  const rollout = fleet.get(rolloutKey, id);
  if (rollout === undefined || hasEnded(rollout)) return [];
  const isReverted = byName || rollout.state === 'reverting';
  const ended = step(rollout, 'end', isReverted ? 'reverted' : 'cancelled', { reason: rollout.reason });
  return ended.ok ? ended.value : [];
}
