/**
 * What the fleet knows of a resource: one declaration, from which everything that is the same for all resources is
 * derived (fold, dispatch of commands, indexes, checkpoint, schema versions, audit, names, read model). A part that is
 * missing does not compile. Not the list of resources: that is `fleet/resources.ts`.
 */
import type { RecordedEvent } from '../../kernel/event.js';
import type { Claim } from '../listeners/claims.js';
import type { IntendedListener } from '../listeners/intent.js';
import type { Owner } from '../references/references.js';
import type { NodeRules } from '../snapshot/snapshot.js';
import type { EventAudit } from './audit-change.js';
import type { FleetView } from './fleet-view.js';
import type { AnyCommand, AnyEvent } from './lifecycle.js';
import type { ResourceMeta } from './meta.js';
import type { Decision } from './refusal.js';

/** What a fold knows of an event beside its type and data. */
export interface EventContext {
  /** When it happened, RFC 3339. */
  readonly at: string;
  readonly commandId: string;
}

/** Turns an event of one schema version into the next one. */
export type Upcaster = (event: RecordedEvent) => RecordedEvent;

/** One type of event of a stream that is audited. */
export interface EventDeclaration<E extends AnyEvent> {
  /** Today's, from 1. */
  readonly schemaVersion: number;
  /** By the older version that each one starts from; every version below today's has one. */
  readonly upcasters?: { readonly [version: number]: Upcaster };
  audit(event: E): EventAudit;
}

export interface FleetEventDeclaration<E extends AnyEvent> extends EventDeclaration<E> {
  /**
   * Ids of the nodes whose configuration the event touches, seen from the fleet before it. A property test holds it to
   * the compiler's output. A deleted node is not among them: it has no configuration any more.
   */
  touches(fleet: FleetView, event: E, context: EventContext): Iterable<string>;
}

export type EventDeclarations<E extends AnyEvent> = {
  readonly [T in E['type']]: FleetEventDeclaration<Extract<E, { readonly type: T }>>;
};

/** One decision per command: the events that the command is, or why it is refused. No events: an accepted no-change. */
export type Decisions<C extends AnyCommand, E extends AnyEvent> = {
  readonly [T in C['type']]: (fleet: FleetView, command: Extract<C, { readonly type: T }>) => Decision<E>;
};

/** What of a state the fleet's indexes hold. */
export interface Indexed<S> {
  /** The fields that the rest depends on: an update that keeps their values moves no index. */
  readonly dependsOn: readonly (keyof S)[];
  references(state: S): Iterable<Owner>;
  claims(state: S): readonly Claim[];
  /** Ids of the nodes whose snapshot the resource may have a part in. */
  nodes(state: S): Iterable<string>;
}

/** What a resource puts into the snapshots of nodes. */
export interface Compiled<S> {
  rulesOn(fleet: FleetView, state: S, nodeId: string): NodeRules;
  /** Bytes of those rules, never less than what is sent; adds up lengths only. */
  bound(fleet: FleetView, state: S, nodeId: string): number;
  /** The listeners that the current definition intends on a node. */
  intendedOn(fleet: FleetView, state: S, nodeId: string): readonly IntendedListener[];
  /** Ids of the nodes on which the rules hold something of a resource that this one refers to. */
  nodesUsing(state: S, type: string, id: string): readonly string[];
  /** Ids of the nodes that dial a node by its own address. */
  diallersOf(state: S, nodeId: string): readonly string[];
}

/** Why a referrer could not go on with an edited resource; `{}` in the sentence stands for all who say the same. */
export type Objection = string;

export interface Resource<
  Type extends string,
  Noun extends string,
  One extends string,
  S extends ResourceMeta & { readonly name: string },
  E extends AnyEvent,
  C extends AnyCommand,
> {
  /** As owners, the audit and the wire call it: `l4_upstream`. */
  readonly type: Type;
  /** As commands and events call it: `Upstream` of `UpstreamCreated`. */
  readonly noun: Noun;
  /** As fields call it: `upstream` of `upstream_id`, and the line of a checkpoint. */
  readonly one: One;
  /** As collections of the read store are called. */
  readonly many: string;
  readonly events: EventDeclarations<E>;
  readonly decide: Decisions<C, E>;
  /** The state after one event; undefined once deleted. An event for a resource that is not there changes nothing. */
  evolve(state: S | undefined, event: E, context: EventContext): S | undefined;
  readonly indexed?: Indexed<S>;
  readonly compiled?: Compiled<S>;
  /** Why this resource, which refers to another, could not go on with the other's edit. */
  objectionTo?(state: S, type: string, edited: ResourceMeta): Objection | undefined;
}

/** A single value of the fleet with events of its own. */
export interface Singleton<Type extends string, Word extends string, S, E extends AnyEvent, C extends AnyCommand> {
  readonly type: Type;
  /** Stands for the id in owners and in the audit. */
  readonly id: string;
  /** Its field in the head of a checkpoint. */
  readonly word: Word;
  readonly initial: S;
  readonly events: EventDeclarations<E>;
  readonly decide: Decisions<C, E>;
  evolve(state: S, event: E, context: EventContext): S;
  /** The state without what it holds of a node that is gone. Not an event of its own: a version stays as it is. */
  withoutNode(state: S, nodeId: string): S;
}
