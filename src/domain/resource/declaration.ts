/**
 * A declaration: everything that distinguishes one resource from the others, as one value. The fleet derives the rest: fold,
 * dispatch, indexes, checkpoint, schema versions, audit, names, read model. `fleet/resources.ts` lists the resources.
 * Implements `docs/architecture.md#adding-a-resource`.
 */
import type { Actor, RecordedEvent } from '../../kernel/event.js';
import type { Claim } from '../listeners/claims.js';
import type { IntendedListener, ListenerKey } from '../listeners/intent.js';
import type { Owner } from '../references/references.js';
import type { Feature } from '../snapshot/features.js';
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
  /** The event's own id, if its command has several events. */
  readonly eventId?: string | undefined;
  readonly revision: number;
  readonly actor: Actor;
}

/** Converts an event from one schema version to the next. */
type Upcaster = (event: RecordedEvent) => RecordedEvent;

/** The schema of an event type in the log. */
export interface EventSchema {
  /** The version that this release writes; 1 unless given. */
  readonly schemaVersion?: number;
  /** By the older version that each one reads. Every version below `schemaVersion` has one. */
  readonly upcasters?: { readonly [version: number]: Upcaster };
}

export type EventSchemas<E extends AnyEvent> = { readonly [T in E['type']]: EventSchema };

/** An event type whose commands are audit entries. */
export interface EventDeclaration<E extends AnyEvent> extends EventSchema {
  audit(event: E): EventAudit;
}

export interface FleetEventDeclaration<E extends AnyEvent> extends EventDeclaration<E> {
  /**
   * Ids of the nodes whose configuration the event changes, without a node that it deletes. A property test compares them
   * with the compiler's output. @param fleet before the event
   */
  touches(fleet: FleetView, event: E, context: EventContext): Iterable<string>;
  /** null for an event that leaves nothing to undo. The audit says whether an entry may be reverted at all. */
  readonly undo: ((event: E) => Undo) | null;
}

/** For an event that changes no configuration and leaves nothing to undo. */
export const onRecord = { undo: null, touches: (): readonly string[] => [] } as const;

export type EventDeclarations<E extends AnyEvent> = {
  readonly [T in E['type']]: FleetEventDeclaration<Extract<E, { readonly type: T }>>;
};

/** One function per command, which returns its events, none if nothing changes, or a refusal. */
export type Decisions<C extends AnyCommand, E extends AnyEvent> = {
  readonly [T in C['type']]: (fleet: FleetView, command: Extract<C, { readonly type: T }>) => Decision<E>;
};

/** The entries of a resource in the fleet's indexes. */
export interface Indexed<S> {
  /** The fields that the other members read. An update that keeps their values moves no index. */
  readonly dependsOn: readonly (keyof S)[];
  /** The resources that this one refers to, none of which can be deleted meanwhile. */
  references(state: S): Iterable<Owner>;
  /** May read the resources that this one refers to, but only the fields that their `shapesClaims` name. */
  claims(state: S, fleet: Pick<FleetView, 'get'>): readonly Claim[];
  /** The fields on which the claims of referrers depend, such as a credential's server names. */
  readonly shapesClaims?: readonly (keyof S)[];
  /** Ids of the nodes whose snapshot may contain the resource. */
  nodes(state: S): Iterable<string>;
}

/** What a resource adds to the snapshots of nodes. */
export interface Compiled<S> {
  rulesOn(fleet: FleetView, state: S, nodeId: string): NodeRules;
  /** An upper bound of the encoded size of those rules in bytes, from lengths alone. */
  bound(fleet: FleetView, state: S, nodeId: string): number;
  /** What a node's agent must be able to run for those rules; may repeat itself. */
  features(fleet: FleetView, state: S, nodeId: string): readonly Feature[];
  /** The listeners that the current definition intends on a node. */
  intendedOn(fleet: FleetView, state: S, nodeId: string): readonly IntendedListener[];
  /** The listeners that a node runs for it after applying its newest snapshot. */
  liveOn(state: S, nodeId: string): readonly ListenerKey[];
  /** Ids of the nodes whose rules use the resource `type/id`, which this one refers to. */
  nodesUsing(state: S, type: string, id: string): readonly string[];
  /** Ids of the nodes that dial a node at its own address. */
  diallersOf(state: S, nodeId: string): readonly string[];
  /** The id of the node that a rule dials; undefined when it dials none. @param ruleId of a rule of this resource */
  dialledBy(state: S, ruleId: string): string | undefined;
  /** The nodes to which a node forwards traffic, by the current and the deployed definition; none while disabled. */
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
  /** Its name in fields: `upstream` of `upstream_id`. */
  readonly singular: Singular;
  /**
   * Set for a resource that belongs to the node that `indexed.nodes` names, and is deleted and restored with it. Its name
   * is its id, and only answers about the node show it.
   */
  readonly ownedByNode?: {
    /** The states to restore with the node. @param node the data of `NodeRestored` */
    restoredWith(node: object, context: EventContext): readonly S[];
  };
  /** Set when a name can be taken while a resource still has it: decisions compare names, and no index holds them. */
  readonly reusesNames?: true;
  /** The fields of its definition, whose size is bounded (`fleet/decide.ts`). */
  readonly fields: readonly (keyof S)[];
  /** The fields that hold a sealed secret or null; null in read models. */
  readonly sealed?: readonly (keyof S)[];
  readonly events: EventDeclarations<E>;
  readonly decide: Decisions<C, E>;
  /** The state after one event; undefined once deleted. Ignores an event for a resource that does not exist. */
  evolve(state: S | undefined, event: E, context: EventContext): S | undefined;
  /** null for a resource that refers to nothing and claims nothing. */
  readonly indexed: Indexed<S> | null;
  /** null for a resource that adds nothing to snapshots. */
  readonly compiled: Compiled<S> | null;
  /**
   * Why an edit of a resource that this one refers to is refused, as a sentence in which `{}` stands for the names of all
   * referrers that give the same sentence.
   */
  objectionTo?(state: S, type: string, edited: ResourceMeta): string | undefined;
}

/** A single value of the fleet with events of its own, such as the connectivity settings. */
export interface Singleton<Type extends string, S, E extends AnyEvent, C extends AnyCommand> {
  readonly type: Type;
  /** Its id in the audit. */
  readonly id: string;
  /** The field of its events' data that holds the audit's id instead. */
  readonly idField?: string;
  readonly initial: S;
  readonly events: EventDeclarations<E>;
  readonly decide: Decisions<C, E>;
  evolve(state: S, event: E, context: EventContext): S;
}
