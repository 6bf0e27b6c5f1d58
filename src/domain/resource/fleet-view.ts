/**
 * What the rules of one resource may ask of the whole fleet. Resources import this view and never the fleet, which
 * imports them: so the arrows go one way, from the fleet to its resources.
 */
import type { ListenerView } from '../listeners/collisions.js';
import type { Owner } from '../references/references.js';
import type { ResourceMeta } from './meta.js';
import type { Refusal } from './refusal.js';

/** Names a resource type together with the state that its table holds. */
export interface ResourceKey<S> {
  readonly type: string;
  /** For the compiler alone; never set. */
  readonly state?: S;
}

/** Names a single value of the fleet, such as the connectivity settings. */
export interface SingletonKey<S> {
  readonly singleton: string;
  /** For the compiler alone; never set. */
  readonly state?: S;
}

/** A live resource that dials a node by the node's own address, and the node that it dials from. */
export interface Dialler {
  readonly owner: Owner;
  readonly diallerId: string;
}

export interface FleetView extends ListenerView {
  /** Revision of `svc-fleet` that the fleet has reached; -1 when it is empty. */
  readonly revision: { readonly value: number };
  get<S>(key: ResourceKey<S>, id: string): S | undefined;
  has(type: string, id: string): boolean;
  ids(type: string): Iterable<string>;
  single<S>(key: SingletonKey<S>): S;
  /** The id of the resource of a type that has a name, compared as names are. */
  idOfName(type: string, name: string): string | undefined;
  /** Resources that refer to one, in their current or deployed definition, enabled or not. */
  referrersOf(type: string, id: string): ReadonlySet<Owner>;
  /** Why a referrer could not go on with an edited resource, or undefined when all can. */
  objectionTo(type: string, edited: ResourceMeta): Refusal | undefined;
  /** Nodes whose snapshot holds something of a resource, because a live resource refers to it. */
  nodesUsing(type: string, id: string): ReadonlySet<string>;
  /** Live resources that dial a node by the node's own address. */
  diallersOf(nodeId: string): readonly Dialler[];
  /** Revision of the last event of the last command that touched a node's configuration. */
  touchedAt(nodeId: string): number | undefined;
  /** A node's generation; undefined for an unknown node. */
  generationOf(nodeId: string): number | undefined;
}
