/**
 * Decides a command together with its rollout: the command's own events, then the start of the rollout, so that nothing is
 * pushed that the rollout should hold. Implements `docs/contract/rollouts.md#starting-one`.
 */
import { describeCommand } from '../audit/describe.js';
import type { ConfirmationAsk, ConfirmationAsked } from '../confirmation/confirmation.js';
import { applyInPieces } from '../fleet/apply.js';
import { ownersChanged } from '../fleet/confirmations.js';
import { draftFleet, type Fleet } from '../fleet/fleet.js';
import { hypothetical } from '../fleet/hypothetical.js';
import type { FleetEvent } from '../fleet/resources.js';
import type { RecordedCommand } from '../../kernel/event.js';
import { ok } from '../../kernel/result.js';
import { nodeKey } from '../node/node.js';
import { pick } from '../resource/lifecycle.js';
import { refuse, type Decision } from '../resource/refusal.js';
import { observedOf } from '../rollout/decide.js';
import { packIds, rolloutWith, type Observe, type RolloutStarted } from '../rollout/rollout.js';
import { wavesOf, type Unit } from '../rollout/waves.js';
import {
  noPolicy,
  rolloutPolicy,
  rolloutPolicyKey,
  type RolloutPolicyState,
} from '../rollout-policy/rollout-policy.js';
import { settingsOf } from '../settings/settings.js';
import { dialledPairs, unitsOf, type DialledPair } from './units.js';

/** How rollouts change what a command does. */
export interface RolloutPlan {
  /** null when the command starts none. */
  readonly rolloutId: string | null;
  readonly waves: readonly { readonly units: readonly Unit[] }[];
  readonly warnings: readonly string[];
}

/** A command, and how it is rolled out. */
export interface WithRollout<C> {
  readonly type: 'WithRollout';
  readonly command: C;
  /** A policy by name, or `none`; undefined for what the settings say. */
  readonly policy: string | undefined;
  /** The id of the rollout, if it starts one, and of its confirmation. */
  readonly rolloutId: string;
  /** How it is to be confirmed; undefined for what the policy says. */
  readonly confirm?: ConfirmationAsk | undefined;
  readonly observe: Observe;
  /** Receives the plan of each decision, of which the last counts; undefined if no rollout is asked for or set. */
  planned(plan: RolloutPlan | undefined): void;
}

type Asked = 'none' | RolloutPolicyState | undefined;
const nothing: RolloutPlan = { rolloutId: null, waves: [], warnings: [] };

/** Yields between two pieces. @param decide decides the command by itself */
export function* decideWithRollout<C extends { readonly type: string; readonly entry?: RecordedCommand }>(
  fleet: Fleet,
  request: WithRollout<C>,
  decide: (fleet: Fleet, command: C) => Generator<void, Decision<FleetEvent>>,
): Generator<void, Decision<FleetEvent>> {
  const { command, planned } = request;
  const isUpgrade = command.type === 'RaiseCompilerVersion';
  const decision = yield* decide(fleet, command);
  const asked = policyOf(fleet, request, isUpgrade);
  // A conflict comes after a policy that does not exist.
  if (!decision.ok && (decision.error.code !== 'conflict' || asked !== 'unknown')) return decision;
  if (asked === 'unknown') {
    return refuse(
      'invalid_request',
      `rollout: expected the name of a rollout policy or "none", there is none "${request.policy}"`,
    );
  }
  planned(asked === undefined ? undefined : nothing);
  if (!decision.ok || decision.value.length === 0) return decision;
  const { value: own } = decision;
  const revertOf = command.entry?.events[0].metadata.command.id;
  const because =
    request.confirm?.by === 'manual' ? describeCommand(hypothetical(fleet, own, revertOf))?.notRevertibleBecause : null;
  if (because !== null) {
    return refuse(
      'conflict',
      `nobody can be asked to confirm what cannot be reverted: ${because ?? 'it has no entry'}`,
    );
  }
  const unheld = ok([...own, ...confirmations(request, own, null)]);
  if (asked === undefined) return unheld;

  yield;
  const { state: draft } = draftFleet(fleet);
  const recorded = hypothetical(draft, own, revertOf);
  const all = yield* applyInPieces(draft, recorded);
  yield;
  let touched = new Set([...all].filter((nodeId) => draft.has(nodeKey.type, nodeId)));
  if (asked === 'none') {
    planned({ ...nothing, warnings: yield* partings(fleet, draft, touched) });
    return unheld;
  }
  // The revert of a rollout's own entry releases its nodes, and needs no rollout of its own.
  if (request.policy === undefined && recorded.events.some(({ type }) => type === 'RolloutStepped')) return unheld;
  const others = [...touched].filter((nodeId) => draft.rolloutOf(nodeId) !== undefined);
  if (isUpgrade) touched = new Set([...touched].filter((nodeId) => draft.rolloutOf(nodeId) === undefined));
  else if (others[0] !== undefined) return otherRollout(draft, others[0]);

  const confirmed = [...own, ...confirmations(request, own, touched.size === 0 ? null : asked.confirm_secs)];
  const units =
    touched.size < 2
      ? [...touched].map((id) => [id])
      : yield* unitsOf(draft, touched, yield* dialledPairs(fleet, draft, touched));
  yield;
  const labelsOf = (nodeId: string) => draft.get(nodeKey, nodeId)?.labels ?? {};
  const waves = wavesOf(asked.waves, units, labelsOf).map((taken) => ({ units: taken }));
  if (units.length < 2) {
    const warnings = touched.size < 2 ? [] : [`one unit of ${touched.size} nodes, no waves`];
    planned({ rolloutId: null, waves, warnings });
    return ok(confirmed);
  }
  planned({ rolloutId: request.rolloutId, waves, warnings: [] });
  yield;
  return ok([...confirmed, started(draft, request, recorded, asked, waves, isUpgrade)]);
}

/** What the command itself asks for, or else the policy's. @param policySecs of the policy in force, null for none */
function confirmations(
  { confirm, rolloutId: confirmation_id }: Pick<WithRollout<unknown>, 'confirm' | 'rolloutId'>,
  own: readonly FleetEvent[],
  policySecs: number | null,
): readonly ConfirmationAsked[] {
  const asked = (data: Omit<ConfirmationAsked['data'], 'confirmation_id'>): ConfirmationAsked => ({
    type: 'ConfirmationAsked',
    data: { confirmation_id, ...data },
  });
  const secs = confirm?.by === 'node' ? confirm.secs : policySecs;
  return [
    ...(secs === null ? [] : [asked({ by: 'node', secs })]),
    ...(confirm?.by === 'manual' ? [asked({ ...confirm, owners: ownersChanged(own) })] : []),
  ];
}

/** The policy in force; undefined where none was asked for and none is set. */
function policyOf(
  fleet: Fleet,
  { policy }: Pick<WithRollout<unknown>, 'policy'>,
  isUpgrade: boolean,
): Asked | 'unknown' {
  if (policy === noPolicy) return 'none';
  const settings = settingsOf(fleet);
  const id =
    policy === undefined
      ? settings[isUpgrade ? 'upgrade_rollout_policy' : 'rollout_policy']
      : fleet.idOfName(rolloutPolicyKey.type, policy);
  return fleet.get(rolloutPolicyKey, id) ?? (policy === undefined ? undefined : 'unknown');
}

function otherRollout(fleet: Fleet, nodeId: string): Decision<FleetEvent> {
  const rollout = rolloutWith(fleet, nodeId);
  const name = fleet.nameOf(nodeKey.type, nodeId) ?? nodeId;
  return refuse(
    'conflict',
    `the node "${name}" is in the rollout ${rollout?.id}, which is ${rollout?.state}; complete or revert that one first, or say rollout=none`,
  );
}

function started(
  fleet: Fleet,
  { rolloutId, observe }: Pick<WithRollout<unknown>, 'rolloutId' | 'observe'>,
  recorded: RecordedCommand,
  policy: RolloutPolicyState,
  waves: RolloutPlan['waves'],
  isUpgrade: boolean,
): RolloutStarted {
  const { action = '', resource } = describeCommand(recorded) ?? {};
  const { type = '', id = null, name = null } = resource ?? {};
  const nodes = waves.flatMap(({ units }) => units.flat());
  const first = (waves[0]?.units ?? []).flat().map((nodeId, place) => ({ nodeId, place }));
  const copy = { ...pick(policy, rolloutPolicy.fields), id: policy.id };
  return {
    type: 'RolloutStarted',
    data: {
      rollout_id: rolloutId,
      ...(isUpgrade ? { upgrade: true } : {}),
      action,
      resource: { type, id, name: name ?? (id === null ? null : (fleet.nameOf(type, id) ?? null)) },
      policy: isUpgrade ? { ...copy, on_failure: 'halt' } : copy,
      nodes: packIds(nodes),
      units: waves.flatMap(({ units }) => units.map(({ length }) => length)),
      waves: waves.map(({ units }) => units.reduce((sum, { length }) => sum + length, 0)),
      ...observedOf(first, observe),
    },
  };
}

const namedPairs = 10;

/** Sentences about touched nodes that dial one another, of which one is held and the other changes at once. */
function* partings(before: Fleet, after: Fleet, touched: ReadonlySet<string>): Generator<void, readonly string[]> {
  const holds = (nodeId: string): string => {
    const held = after.heldBy(nodeId);
    return held === undefined ? '' : `${held} ${after.rolloutOf(nodeId)?.wave}`;
  };
  if (![...touched].some((nodeId) => holds(nodeId) !== '')) return [];
  const apart = (yield* dialledPairs(before, after, touched)).filter(([a, b]) => holds(a) !== holds(b));
  const named = [...new Map(apart.map((pair) => [pair.join(' '), pair])).values()];
  const sentence = ([a, b]: DialledPair): string => {
    const [dialler, dialled] = [a, b].map((id) => after.nameOf(nodeKey.type, id) ?? id);
    const id = after.heldBy(a) ?? after.heldBy(b);
    return `the node "${dialler}" dials "${dialled}", and the rollout ${id} holds one of them back: they differ until it is released`;
  };
  const more = named.length - namedPairs;
  return [...named.slice(0, namedPairs).map(sentence), ...(more > 0 ? [`and ${more} more pairs of nodes`] : [])];
}
