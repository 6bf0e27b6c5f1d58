/**
 * The shape of a declaration: everything in which one resource differs from the others, as one value. The fleet derives
 * the rest from it: fold, dispatch of commands, indexes, checkpoint, schema versions, audit, names, read model. A
 * declaration without one of the required parts does not compile. The list of resources is `fleet/resources.ts`.
 * Implements `docs/architecture.md#adding-a-resource`.
 */
import type { Actor, RecordedEvent } from '../../kernel/event.js';
import type { Claim } from '../listeners/claims.js';
import type { IntendedListener, ListenerKey } from '../listeners/intent.js';
import type { Owner } from '../references/references.js';
import type { NodeRules } from '../snapshot/snapshot.js';
import type { EventAudit } from './audit-change.js';
import type { FleetView } from './fleet-view.js';
import type { AnyCommand, AnyEvent } from './lifecycle.js';
import type { ResourceMeta } from './meta.js';
import type { Decision } from './refusal.js';
import type { Undo } from './undo.js';

/** The context of an event besides its type and data. */
export interface EventContext {
  /** When it happened, RFC 3339. */
  readonly at: string;
  readonly commandId: string;
  /** The event's own id, when its command has several. */
  readonly eventId?: string | undefined;
  /** Its revision in the stream. */
  readonly revision: number;
  /** Who gave the command. */
  readonly actor: Actor;
}

/** Turns an event of one schema version into the next one. */
type Upcaster = (event: RecordedEvent) => RecordedEvent;

/** How the log knows an event type. */
export interface EventSchema {
  /** The version that this release writes; the first is 1. */
  readonly schemaVersion: number;
  /** Keyed by the older version that each one reads. Every version below `schemaVersion` has one. */
  readonly upcasters?: { readonly [version: number]: Upcaster };
}

export type EventSchemas<E extends AnyEvent> = { readonly [T in E['type']]: EventSchema };

/** An event type of a stream whose commands are audit entries. */
export interface EventDeclaration<E extends AnyEvent> extends EventSchema {
  audit(event: E): EventAudit;
}

export interface FleetEventDeclaration<E extends AnyEvent> extends EventDeclaration<E> {
  /**
   * Ids of the nodes whose configuration the event changes, judged on the fleet before the event. A property test compares
   * them with the compiler's output. A node that the event deletes is not among them, because it has no configuration.
   */
  touches(fleet: FleetView, event: E, context: EventContext): Iterable<string>;
  /** null for an event that leaves nothing to undo. An event's audit says whether its entry may be reverted at all. */
  readonly undo: ((event: E) => Undo) | null;
}

export type EventDeclarations<E extends AnyEvent> = {
  readonly [T in E['type']]: FleetEventDeclaration<Extract<E, { readonly type: T }>>;
};

/** One decision per command: its events, or why it is refused. No events: accepted, and nothing changes. */
export type Decisions<C extends AnyCommand, E extends AnyEvent> = {
  readonly [T in C['type']]: (fleet: FleetView, command: Extract<C, { readonly type: T }>) => Decision<E>;
};

/** The entries of a resource in the fleet's indexes. */
export interface Indexed<S> {
  /** The fields that the other members read: an update that keeps their values moves no index. */
  readonly dependsOn: readonly (keyof S)[];
  /** The resources that this one refers to; none of them can be deleted meanwhile. */
  references(state: S): Iterable<Owner>;
  /** May read the resources that this one refers to, which say with `shapesClaims` that they decide about claims. */
  claims(state: S, fleet: Pick<FleetView, 'get'>): readonly Claim[];
  /** The fields that the claims of the resources that refer to this one follow, such as a credential's server names. */
  readonly shapesClaims?: readonly (keyof S)[];
  /** Ids of the nodes whose snapshot may hold something of the resource. */
  nodes(state: S): Iterable<string>;
}

/** The additions of a resource to the snapshots of nodes. */
export interface Compiled<S> {
  rulesOn(fleet: FleetView, state: S, nodeId: string): NodeRules;
  /** An upper bound of the encoded size of those rules in bytes, from lengths alone. */
  bound(fleet: FleetView, state: S, nodeId: string): number;
  /** The listeners that the current definition intends on a node. */
  intendedOn(fleet: FleetView, state: S, nodeId: string): readonly IntendedListener[];
  /** The listeners that a node has for it once it has applied its newest snapshot. */
  liveOn(state: S, nodeId: string): readonly ListenerKey[];
  /** Ids of the nodes whose rules hold something of the resource `type/id`, which this one refers to. */
  nodesUsing(state: S, type: string, id: string): readonly string[];
  /** Ids of the nodes that dial a node at the node's own address. */
  diallersOf(state: S, nodeId: string): readonly string[];
  /**
   * The nodes to which a node forwards the resource's traffic, in the wanted and in the deployed definition. Nowhere
   * while the resource is disabled.
   */
  linksFrom(fleet: FleetView, state: S, nodeId: string): readonly NodeLink[];
}

/** A link to another node. */
export interface NodeLink {
  readonly toNodeId: string;
  /** The `host:port` that is dialled; `""` while no address is known. */
  readonly endpoint: string;
}

export interface Resource<
  Type extends string,
  Noun extends string,
  Singular extends string,
  S extends ResourceMeta & { readonly name: string },
  E extends AnyEvent,
  C extends AnyCommand,
> {
  /** Its name in owners, in the audit and on the wire: `l4_upstream`. */
  readonly type: Type;
  /** Its name in commands and events: `Upstream` of `UpstreamCreated`. */
  readonly noun: Noun;
  /** Its name in fields and in the lines of a checkpoint: `upstream` of `upstream_id`. */
  readonly singular: Singular;
  /**
   * Set for what belongs to the node that `indexed.nodes` names: the delete of the node takes it along and carries it. It
   * has no name but its id, and no list of its own, because only answers about the node show it.
   */
  readonly ownedByNode?: {
    /** The states of those that come back with the node. @param node the data of `NodeRestored` */
    restoredWith(node: object, context: EventContext): readonly S[];
  };
  /** The fields of its definition, whose size is bounded (`fleet/decide.ts`). */
  readonly fields: readonly (keyof S)[];
  /** The fields that hold a sealed secret or null. Read models hold null instead. */
  readonly sealed?: readonly (keyof S)[];
  readonly events: EventDeclarations<E>;
  readonly decide: Decisions<C, E>;
  /** The state after one event; undefined once deleted. Ignores an event for a resource that does not exist. */
  evolve(state: S | undefined, event: E, context: EventContext): S | undefined;
  /** null for a resource that refers to nothing and claims nothing. Said, so that it is not forgotten. */
  readonly indexed: Indexed<S> | null;
  /** null for a resource that puts nothing into snapshots. */
  readonly compiled: Compiled<S> | null;
  /**
   * Why the edit of a resource that this one refers to cannot be accepted, as a sentence; `{}` in it stands for the names
   * of all referrers that return the same sentence.
   */
  readonly objectionTo: ((state: S, type: string, edited: ResourceMeta) => string | undefined) | null;
}

/** A single value of the fleet with events of its own, such as the connectivity settings. */
export interface Singleton<
  Type extends string,
  CheckpointField extends string,
  S,
  E extends AnyEvent,
  C extends AnyCommand,
> {
  readonly type: Type;
  /** Its id in the audit. */
  readonly id: string;
  /** The field of its events' data that holds the id in the audit instead, when each is about something else. */
  readonly idField?: string;
  /** Its field in the first line of a checkpoint. */
  readonly checkpointField: CheckpointField;
  readonly initial: S;
  readonly events: EventDeclarations<E>;
  readonly decide: Decisions<C, E>;
  evolve(state: S, event: E, context: EventContext): S;
  /** The state without what it holds of a deleted node. No event of its own, so a version stays as it is. */
  withoutNode(state: S, nodeId: string): S;
  /** The state with its part about a node that comes back. @param node the data of `NodeRestored` */
  withNode(state: S, node: object): S;
}
