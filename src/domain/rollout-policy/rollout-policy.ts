/**
 * A rollout policy: in which waves a change reaches the nodes that it touches, and when it stops. It adds nothing to
 * snapshots; a rollout carries a copy. The connectivity settings may name it. Implements
 * `docs/contract/rollouts.md#rollout-policies`.
 */
import { defineResource } from '../resource/define-resource.js';
import type { FleetView, ResourceKey } from '../resource/fleet-view.js';
import { nameKey, type ResourceMeta } from '../resource/meta.js';
import { refuse } from '../resource/refusal.js';
import { policyFields, settingsOf } from '../settings/settings.js';

/** A number of nodes, or a percentage of all nodes of a rollout: `"5%"`. */
export type Share = number | string;

export type WaveRule = { readonly nodes: Share } | { readonly labels: { readonly [key: string]: string } };

export const failureReactions = ['halt', 'revert'] as const;

export interface RolloutPolicyDefinition {
  readonly name: string;
  /** Nodes that no wave takes form the last wave. */
  readonly waves: readonly WaveRule[];
  readonly bake_secs: number;
  readonly apply_timeout_secs: number;
  /** Rejected and failed nodes over all waves, beyond which the rollout stops. */
  readonly max_failed: Share;
  /** Likewise nodes that were online at the release of their wave and have not returned. */
  readonly max_lost: Share;
  readonly on_failure: (typeof failureReactions)[number];
  /** How long a node waits for the service's confirmation before it goes back, in seconds; null for no wait. */
  readonly confirm_secs: number | null;
}

export interface RolloutPolicyState extends ResourceMeta, RolloutPolicyDefinition {}

export const rolloutPolicyKey: ResourceKey<RolloutPolicyState> = { type: 'rollout_policy' };

/** Stands for "no rollout" where a policy is named. */
export const noPolicy = 'none';

/** How many seconds a bake must be longer than a confirmation. */
const confirmMargin = 60;

/** A share as a number of nodes, percentages rounded up. */
export function nodesOfShare(share: Share, total: number): number {
  return typeof share === 'number' ? share : Math.ceil((Number.parseInt(share, 10) * total) / 100);
}

const policy = defineResource<RolloutPolicyDefinition>()('rollout_policy', {
  noun: 'RolloutPolicy',
  fields: ['name', 'waves', 'bake_secs', 'apply_timeout_secs', 'max_failed', 'max_lost', 'on_failure', 'confirm_secs'],
  invalid(_fleet, { name, bake_secs, confirm_secs }) {
    const message =
      nameKey(name) === noPolicy
        ? `name: expected another name than "${noPolicy}", which stands for no rollout`
        : confirm_secs !== null && bake_secs < confirm_secs + confirmMargin
          ? `bake_secs: expected at least confirm_secs + ${confirmMargin}, which is ${confirm_secs + confirmMargin}`
          : undefined;
    return message === undefined ? undefined : { code: 'invalid_request', message };
  },
  indexed: null,
  compiled: null,
  touches: null,
});

export const rolloutPolicy = {
  ...policy,
  decide: {
    ...policy.decide,
    DeleteRolloutPolicy(fleet: FleetView, command: Parameters<typeof policy.decide.DeleteRolloutPolicy>[1]) {
      const decision = policy.decide.DeleteRolloutPolicy(fleet, command);
      const settings = settingsOf(fleet);
      const naming = policyFields.filter((field) => settings[field] === command.id);
      if (!decision.ok || naming.length === 0) return decision;
      const name = fleet.nameOf(rolloutPolicyKey.type, command.id) ?? command.id;
      return refuse(
        'conflict',
        `the rollout_policy "${name}" is still named by the connectivity settings (${naming.join(', ')})`,
      );
    },
  },
};
