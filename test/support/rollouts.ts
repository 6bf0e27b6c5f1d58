/** Rollouts of tests of the domain: policies, commands with a rollout, and what a fleet says of held nodes. */
import { fleetAggregate, type RolledOut } from '../../src/commands/aggregate.js';
import type { ConfirmationAsk } from '../../src/domain/confirmation/confirmation.js';
import { applyCommand } from '../../src/domain/fleet/apply.js';
import type { Fleet } from '../../src/domain/fleet/fleet.js';
import type { FleetCommand, FleetEvent } from '../../src/domain/fleet/resources.js';
import type { RolloutPlan } from '../../src/domain/rollout-start/start.js';
import { hasEnded, nodesIn, type Observe, type RolloutState } from '../../src/domain/rollout/rollout.js';
import type { RolloutPolicyDefinition } from '../../src/domain/rollout-policy/rollout-policy.js';
import type { Decision } from '../../src/domain/resource/refusal.js';
import { uuidFromName } from '../../src/kernel/ids.js';
import { runSync } from '../../src/kernel/pieces.js';
import type { RecordedCommand } from '../../src/kernel/event.js';
import type { LeaseClaim, Leases } from '../../src/storage/read-store.js';
import { recorded } from './fleet.js';
import type { ManualClock } from './manual-clock.js';

export const rolloutPolicyId = (name: string): string => uuidFromName(`rollout policy ${name}`);
export const rolloutId = (name: string): string => uuidFromName(`rollout ${name}`);

export function createRolloutPolicy(name: string, fields: Partial<RolloutPolicyDefinition> = {}) {
  return {
    type: 'CreateRolloutPolicy',
    id: rolloutPolicyId(name),
    name,
    waves: [{ nodes: 1 }],
    bake_secs: 60,
    apply_timeout_secs: 120,
    max_failed: 0,
    max_lost: 0,
    on_failure: 'halt',
    confirm_secs: null,
    ...fields,
  } as const satisfies FleetCommand;
}

export const nothingSeen: Observe = { isOnline: () => false, failing: () => [] };

export interface Rolled {
  readonly decision: Decision<FleetEvent>;
  /** Absent when nothing was planned, and where no rollout was asked for, nor is set. */
  readonly plan: RolloutPlan | undefined;
  /** What was written. */
  readonly written: RecordedCommand | undefined;
}

/** Decides a command with a rollout, and applies it unless it is only tried. */
export function roll(
  fleet: Fleet,
  command: RolledOut,
  policy: string | undefined,
  {
    id = 'one',
    observe = nothingSeen,
    isTry = false,
    revertOf = undefined as string | undefined,
    confirm = undefined as ConfirmationAsk | undefined,
  } = {},
): Rolled {
  let plan: RolloutPlan | undefined;
  const planned = (next: RolloutPlan | undefined): void => void (plan = next);
  const decision = runSync(
    fleetAggregate.decide(fleet, {
      type: 'WithRollout',
      command,
      policy,
      rolloutId: rolloutId(id),
      confirm,
      observe,
      planned,
    }),
  ) as Decision<FleetEvent>;
  if (!decision.ok || decision.value.length === 0 || isTry) return { decision, plan, written: undefined };
  const written = recorded(fleet, decision.value, { revertOf, actor: { type: 'user', id: 'anna', name: 'anna' } });
  applyCommand(fleet, written);
  return { decision, plan, written };
}

/** The held nodes by the states of rollouts, to compare with what the fleet answers. */
export function heldByStates(fleet: Fleet): ReadonlyMap<string, string> {
  const held = new Map<string, string>();
  for (const rollout of fleet.tables.rollout.values()) {
    if (hasEnded(rollout)) continue;
    for (const { nodeId, wave } of nodesIn(rollout)) if (wave > rollout.wave) held.set(nodeId, rollout.id);
  }
  return held;
}

export const heldNodes = (fleet: Fleet): ReadonlyMap<string, string> =>
  new Map(
    [...fleet.tables.node.ids()].flatMap((id) => {
      const by = fleet.heldBy(id);
      return by === undefined ? [] : [[id, by] as const];
    }),
  );

export function rolloutOf(fleet: Fleet, id = 'one'): RolloutState {
  const rollout = fleet.tables.rollout.get(rolloutId(id));
  if (rollout === undefined) throw new Error(`there is no rollout ${id}`);
  return rollout;
}

/** One lease, which ends by the clock of the test. */
export function leasesBy(clock: Pick<ManualClock, 'monotonic'>, leases: Leases): Leases {
  let held = { holder: '', until: 0 };
  return {
    ...leases,
    async acquire(_kind: string, { holder, ttlMs }: LeaseClaim): Promise<boolean> {
      if (held.holder !== holder && held.until > clock.monotonic()) return false;
      held = { holder, until: clock.monotonic() + ttlMs };
      return true;
    },
  };
}
