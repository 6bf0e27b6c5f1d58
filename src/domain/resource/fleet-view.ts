/**
 * What the rules of one resource may ask of the whole fleet. Resources import this view and never the fleet, which imports
 * them. `fleet/fleet.ts` implements it.
 */
import type { Values } from '../aggregate/containers.js';
import type { ListenerView } from '../listeners/collisions.js';
import type { Owner } from '../references/references.js';
import type { ResourceMeta } from './meta.js';
import type { Refusal } from './refusal.js';

/** A resource type with the type of its state. */
export interface ResourceKey<S> {
  readonly type: string;
  /** Carries a type only; never set. */
  readonly state?: S;
}

/** A singleton with the type of its value. */
export interface SingletonKey<S> {
  readonly singleton: string;
  /** Carries a type only; never set. */
  readonly state?: S;
}

/** A live resource that dials a node at its own address, and the node that it dials from. */
interface Dialler {
  readonly owner: Owner;
  readonly diallerId: string;
}

export interface FleetView extends ListenerView {
  /** The revision of `svc-fleet` that the fold has reached; -1 when the fleet is empty. */
  readonly revision: { readonly value: number };
  /** A resource; undefined if there is none, or no id is given. */
  get<S>(key: ResourceKey<S>, id: string | null | undefined): S | undefined;
  has(type: string, id: string): boolean;
  ids(type: string): Iterable<string>;
  singleton<S>(key: SingletonKey<S>): S;
  /** The id of the resource that has a name, compared case-insensitively. */
  idOfName(type: string, name: string): string | undefined;
  /** The resources that refer to one, in their current or deployed definition, enabled or not. */
  referrersOf(type: string, id: string): Values;
  /** The refusal of an edit that a referrer objects to, or that would make a referrer's listeners collide. */
  objectionTo(type: string, edited: ResourceMeta): Refusal | undefined;
  /** Ids of the nodes whose snapshot uses a resource through a live referrer. */
  nodesUsing(type: string, id: string): ReadonlySet<string>;
  /**
   * Ids of the nodes whose rules an edit changes through live referrers, direct ones or those of a referrer without rules.
   */
  nodesChangedBy(type: string, edited: ResourceMeta): ReadonlySet<string>;
  /** The resources that may have rules on a node. */
  contributorsTo(nodeId: string): readonly { readonly type: string; readonly id: string }[];
  /** The live resources that dial a node at its own address. */
  diallersOf(nodeId: string): readonly Dialler[];
  /** The revision of the last event of the last command that touched a node. */
  touchedAt(nodeId: string): number | undefined;
  /** A node's rollout that has not ended, and the node's wave in it; undefined for a node in none. */
  rolloutOf(nodeId: string): { readonly rolloutId: string; readonly wave: number } | undefined;
  /**
   * The id of the rollout that holds a node back: the one in which its wave is not released.
   * @param applied the generation that the node applied last: with the rollout's change it counts as released
   */
  heldBy(nodeId: string, applied?: number): string | undefined;
  /** The id of the confirmation by a person that the last change of a resource waits for. */
  confirmingOf(type: string, id: string): string | undefined;
  /** The generation from which a node waits, or waited, for a confirmation; undefined if it never had to. */
  needOf(nodeId: string): { readonly generation: number; readonly secs: number } | undefined;
  /** A node's generation; undefined for an unknown node. */
  generationOf(nodeId: string): number | undefined;
}
