/**
 * A rollout: a change on its way to the nodes that it touches, wave by wave. State, events and commands.
 * `src/delivery/` holds nodes back; `src/rollouts/` judges waves and gives the commands. Implements
 * `docs/contract/rollouts.md#running`.
 */
import type { RunClock } from '../../kernel/run-clock.js';
import type { FleetView, ResourceKey } from '../resource/fleet-view.js';
import type { ResourceMeta } from '../resource/meta.js';
import type { RolloutPolicyDefinition } from '../rollout-policy/rollout-policy.js';
import { placesIn, type NodeSet } from './node-set.js';

export const unendedStates = ['running', 'baking', 'paused', 'halted', 'reverting'] as const;
const ends = ['reverted', 'completed', 'cancelled'] as const;
export const rolloutStates = [...unendedStates, ...ends] as const;
export type RolloutStateName = (typeof rolloutStates)[number];

export const hasEnded = ({ state }: { readonly state: RolloutStateName }): boolean => ends.some((end) => end === state);

/** What was seen of a wave's nodes when it was released, by their places in the rollout. */
export interface Observed {
  readonly online: NodeSet;
  /**
   * Listeners that had failed, which are not held against the wave: `<place> <listener>`, or the place alone for every listener
   * of the node. `excuses` reads them.
   */
  readonly failing: readonly string[];
}

export interface RolloutWave extends Observed {
  /** The number of its nodes. */
  readonly nodes: number;
  /** RFC 3339; null before. */
  readonly released_at: string | null;
  readonly converged_at: string | null;
  /** How long its timeout had run when it converged, in milliseconds; absent before. */
  readonly ran_ms?: number;
}

export interface PolicyCopy extends RolloutPolicyDefinition {
  readonly id: string;
}

/** The cause of the rollout. */
interface Cause {
  /** `l4_chain.deploy` */
  readonly action: string;
  readonly resource: { readonly type: string; readonly id: string | null; readonly name: string | null };
}

export interface RolloutState extends ResourceMeta, Cause {
  /** Its id: a rollout has no name. */
  readonly name: string;
  /** The audit entry of its command; null for an upgrade. */
  readonly entry_id: string | null;
  readonly policy: PolicyCopy;
  /** The revision of its first event, see `generationWith`. */
  readonly revision: number;
  readonly state: RolloutStateName;
  /** The state to which a paused one returns; null unless paused. */
  readonly paused_from: 'running' | 'baking' | null;
  /** Ids of the nodes: wave by wave, in each unit by unit. A node's index is its place. */
  readonly nodes: readonly string[];
  /** The lengths of the units. */
  readonly units: readonly number[];
  readonly waves: readonly RolloutWave[];
  /** The current wave, from 1; later ones are not released. */
  readonly wave: number;
  /** Deleted nodes. */
  readonly left: NodeSet;
  /** How long the timeout, or the bake, of the current wave has run. */
  readonly clock: RunClock;
  /** Rejects of the current wave count from then on: its release, or its last resumption after a halt. RFC 3339. */
  readonly judged_since: string;
  /** Over all waves, as judged so far. */
  readonly failed: NodeSet;
  readonly lost: NodeSet;
  readonly reason: string | null;
  readonly ended_at: string | null;
}

/** The last event of a command whose change is rolled out; it counts as the release of the first wave. */
export interface RolloutStarted {
  readonly type: 'RolloutStarted';
  readonly data: Cause &
    Observed & {
      readonly rollout_id: string;
      /** Set for a raised compiler version, which has no entry. */
      readonly upgrade?: true;
      readonly policy: PolicyCopy;
      /** 16 bytes of each node's id, base64url. */
      readonly nodes: string;
      readonly units: readonly number[];
      /** The number of nodes of each wave. */
      readonly waves: readonly number[];
    };
}

/** What a step does; `resource/audit-change.ts` has the verbs of those that people take. */
export const rolloutSteps = [
  'converge',
  'release',
  'pause',
  'resume',
  'advance',
  'complete',
  'halt',
  'revert',
  'end',
] as const;
export type RolloutStepName = (typeof rolloutSteps)[number];

/** Describes the step in full, so that the feed needs no fold. */
export interface RolloutStepped {
  readonly type: 'RolloutStepped';
  readonly data: {
    readonly rollout_id: string;
    readonly entry_id: string | null;
    /** The policy's name. */
    readonly policy: string;
    readonly step: RolloutStepName;
    readonly was: RolloutStateName;
    readonly state: RolloutStateName;
    /** The current wave after the step. */
    readonly wave: number;
    readonly reason: string | null;
    /** Over all waves, if the step judges. */
    readonly failed?: NodeSet;
    readonly lost?: NodeSet;
    /** Only if it releases a wave. */
    readonly observed?: Observed;
  };
}

/** Sets the clock after a time in which nothing was judged. Not a step. */
export interface RolloutClockSet {
  readonly type: 'RolloutClockSet';
  readonly data: { readonly rollout_id: string; readonly ran_ms: number; readonly runs: boolean };
}

export type RolloutEvent = RolloutStarted | RolloutStepped | RolloutClockSet;

/** Observes nodes at the moment of a release. */
export interface Observe {
  isOnline(nodeId: string): boolean;
  /**
   * Keys (`listenerKey`) of the listeners that are reported in another state than `running`; undefined for an agent
   * that reports no listener at all.
   */
  failing(nodeId: string): readonly string[] | undefined;
}

interface Addressed {
  readonly id: string;
}

/** A step of the service does nothing unless the rollout is at the version that it was judged by. */
interface Expected extends Addressed {
  readonly version: number;
}

export interface Judged {
  /** Ids of nodes that have failed or were lost, besides those already known. */
  readonly failed: readonly string[];
  readonly lost: readonly string[];
}

export type RolloutCommand =
  /** running → baking */
  | ({ readonly type: 'ConvergeWave' } & Expected & Judged)
  /** baking → running with the next wave, or completed after the last */
  | ({ readonly type: 'ReleaseWave'; readonly observe: Observe } & Expected & Judged)
  /** running, baking, reverting → halted */
  | ({ readonly type: 'HaltRollout'; readonly reason: string } & Expected & Judged)
  /** running, baking → reverting; the revert of the entry ends it */
  | ({ readonly type: 'BeginRolloutRevert'; readonly reason: string } & Expected & Judged)
  | ({ readonly type: 'SetRolloutClock'; readonly ran_ms: number; readonly runs: boolean } & Expected)
  | ({ readonly type: 'PauseRollout' } & Addressed)
  | ({ readonly type: 'ResumeRollout' } & Addressed)
  | ({ readonly type: 'AdvanceRollout'; readonly observe: Observe } & Addressed)
  | ({ readonly type: 'CompleteRollout' } & Addressed);

export const rolloutKey: ResourceKey<RolloutState> = { type: 'rollout' };

/** A node of a rollout. */
export interface RolloutNode {
  readonly nodeId: string;
  readonly place: number;
  /** From 1. */
  readonly wave: number;
  /** From 1, over all waves. */
  readonly unit: number;
}

/** The nodes of a rollout in its order, or those of one wave; without deleted ones. */
export function* nodesIn(rollout: Pick<RolloutState, 'nodes' | 'units' | 'waves' | 'left'>): Generator<RolloutNode> {
  const left = new Set(placesIn(rollout.left));
  let [wave, waveEnd, unit, unitEnd] = [0, 0, 0, 0];
  for (const [place, nodeId] of rollout.nodes.entries()) {
    // A wave of deleted nodes keeps its length, so none is empty.
    if (place === waveEnd) waveEnd += rollout.waves[wave++]?.nodes ?? Number.POSITIVE_INFINITY;
    if (place === unitEnd) unitEnd += rollout.units[unit++] ?? Number.POSITIVE_INFINITY;
    if (!left.has(place)) yield { nodeId, place, wave, unit };
  }
}

/** @returns whether a listener had failed before its wave was released, by its key (`listenerKey`) */
export function excuses({ failing }: Pick<Observed, 'failing'>): (place: number, listener: string) => boolean {
  const all = new Set(failing);
  return (place, listener) => all.has(String(place)) || all.has(`${place} ${listener}`);
}

/** The generation from which a node has the rollout's change. */
export const generationWith = (
  { revision }: Pick<RolloutState, 'revision'>,
  node: { readonly generation_offset: number } | undefined,
): number => 1 + revision + (node?.generation_offset ?? 0);

/** The place of a node in the rollout that it is in. */
export interface Membership {
  readonly rolloutId: string;
  readonly wave: number;
}

/** The unfinished rollout of a node; undefined when there is none. */
export function rolloutWith(fleet: FleetView, nodeId: string): RolloutState | undefined {
  return fleet.get(rolloutKey, fleet.rolloutOf(nodeId)?.rolloutId);
}

const idBytes = 16;

export function packIds(ids: readonly string[]): string {
  return Buffer.from(ids.map((id) => id.replaceAll('-', '')).join(''), 'hex').toString('base64url');
}

export function unpackIds(packed: string): readonly string[] {
  const hex = Buffer.from(packed, 'base64url').toString('hex');
  return Array.from({ length: hex.length / (2 * idBytes) }, (_, index) => {
    const id = hex.slice(index * 2 * idBytes, (index + 1) * 2 * idBytes);
    return `${id.slice(0, 8)}-${id.slice(8, 12)}-${id.slice(12, 16)}-${id.slice(16, 20)}-${id.slice(20)}`;
  });
}
