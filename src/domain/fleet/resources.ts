/**
 * The list of the fleet's resources, lookups in it, and the types of all events and commands of `svc-fleet`. A new resource
 * is a line here. Implements `docs/architecture.md#adding-a-resource`.
 */
import { l4Chain } from '../chain/declaration.js';
import { confirmation } from '../confirmation/declaration.js';
import { credential } from '../credential/declaration.js';
import { listenerPolicy } from '../listener-policy/declaration.js';
import { fleetSets } from '../fleet-set/declaration.js';
import { joinToken } from '../join-token/declaration.js';
import { l3Network } from '../l3-network/declaration.js';
import { node } from '../node/declaration.js';
import type { FleetEventDeclaration, Resource, Singleton } from '../resource/declaration.js';
import type { AnyCommand, AnyEvent } from '../resource/lifecycle.js';
import type { ResourceMeta } from '../resource/meta.js';
import { rollout } from '../rollout/declaration.js';
import { rolloutPolicy } from '../rollout-policy/rollout-policy.js';
import { route } from '../route/declaration.js';
import { compiler } from '../service/compiler-version.js';
import { serviceIdentity } from '../service-identity/declaration.js';
import { connectivity } from '../settings/declaration.js';
import { l4Upstream } from '../upstream/upstream.js';
import { webhook } from '../webhook/declaration.js';
import { eventOf, streams, type RecordedEvent } from '../../kernel/event.js';

/** By type, in the order of checkpoints. A resource that shapes the claims of others comes before them. */
export const resources = {
  node,
  l4_upstream: l4Upstream,
  credential,
  l4_chain: l4Chain,
  route,
  listener_policy: listenerPolicy,
  l3_network: l3Network,
  webhook,
  rollout_policy: rolloutPolicy,
  rollout,
  confirmation,
  join_token: joinToken,
} as const;
/** Keyed by a name of their own, because two of them have the type of the service in the audit. */
export const singletons = {
  connectivity,
  service: compiler,
  fleet: fleetSets,
  identity: serviceIdentity,
} as const;

export type ResourceType = keyof typeof resources;
export type SingletonType = keyof typeof singletons;
/** What answers call the resource of an event. */
export type AuditedType = ResourceType | (typeof singletons)[SingletonType]['type'];

export type StateOf<T extends ResourceType> = Exclude<ReturnType<(typeof resources)[T]['evolve']>, undefined>;
export type NounOf<T extends ResourceType> = (typeof resources)[T]['noun'];
export type SingletonState<T extends SingletonType> = ReturnType<(typeof singletons)[T]['evolve']>;

// Declarations without their own types, for code that treats all resources alike.
export type AnyState = ResourceMeta & { readonly name: string };
export type AnyResource = Resource<string, string, string, AnyState, AnyEvent, AnyCommand>;
type AnySingleton = Singleton<string, unknown, AnyEvent, AnyCommand>;

// A resource under another key than its own type does not compile.
type KeyedByType<R> = { readonly [T in keyof R]: { readonly type: T } };
resources satisfies KeyedByType<typeof resources>;

/**
 * The resources whose read model is the folded state. Nodes and rollouts also have facts of agents, policies belong to nodes, and
 * confirmations are shown with their entries.
 */
export type PlainType = Exclude<ResourceType, 'node' | 'listener_policy' | 'rollout' | 'confirmation'>;

export const resourceTypes = Object.keys(resources) as readonly ResourceType[];
export const singletonTypes = Object.keys(singletons) as readonly SingletonType[];

export const plainTypes = resourceTypes.filter(
  (type): type is PlainType =>
    !['node', 'rollout', 'confirmation'].includes(type) && resourceOfType(type)?.ownedByNode === undefined,
);

/** A declaration without the types of its state and events. */
export function declarationOf(type: ResourceType): AnyResource {
  return resources[type] as unknown as AnyResource;
}

export function resourceOfType(type: string): AnyResource | undefined {
  return Object.hasOwn(resources, type) ? declarationOf(type as ResourceType) : undefined;
}

/** The command of a verb on a resource. The compiler cannot see that type and fields together are one. */
export function commandOn(verb: 'Create' | 'Update' | 'Delete', type: ResourceType, fields: object): FleetCommand {
  return { type: `${verb}${resources[type].noun}`, ...fields } as FleetCommand;
}

type EventTable = { readonly [type: string]: FleetEventDeclaration<AnyEvent> };

/** The declaration of an event. */
type DeclaringResource =
  | {
      readonly kind: 'resource';
      readonly type: ResourceType;
      readonly declaration: AnyResource;
      /** The field of its events' data that holds the resource's id. */
      readonly idField: string;
    }
  | { readonly kind: 'singleton'; readonly type: SingletonType; readonly declaration: AnySingleton };

const declaringResources: readonly DeclaringResource[] = [
  ...resourceTypes.map((type) => ({
    kind: 'resource' as const,
    type,
    declaration: declarationOf(type),
    idField: `${resources[type].singular}_id`,
  })),
  ...singletonTypes.map((type) => ({
    kind: 'singleton' as const,
    type,
    declaration: singletons[type] as AnySingleton,
  })),
];
const byEventType: ReadonlyMap<string, DeclaringResource> = new Map(
  declaringResources.flatMap((declaring) =>
    Object.keys(declaring.declaration.events).map((type) => [type, declaring] as const),
  ),
);

/** The resource that declares an event. @throws Error for an unknown type, which `log/upcast.ts` does not let through */
export function declaringResource(event: AnyEvent): DeclaringResource {
  const declaring = byEventType.get(event.type);
  if (declaring === undefined) throw new Error(`no resource of the fleet declares the event ${event.type}`);
  return declaring;
}

export function eventDeclaration(event: AnyEvent): FleetEventDeclaration<AnyEvent> {
  const events = declaringResource(event).declaration.events as EventTable;
  return events[event.type] as FleetEventDeclaration<AnyEvent>;
}

/** The declarations of all events of the fleet, by type. */
export const fleetEvents: EventTable = Object.assign(
  {},
  ...Object.values(resources).map(({ events }) => events),
  ...Object.values(singletons).map(({ events }) => events),
) as EventTable;

/** The resource that an event is about. */
export function resourceOf(event: AnyEvent): { readonly type: AuditedType; readonly id: string } {
  const declaring = declaringResource(event);
  if (declaring.kind !== 'resource') {
    const { id, idField } = declaring.declaration;
    const { type } = singletons[declaring.type];
    return { type, id: idField === undefined ? id : String(Reflect.get(event.data, idField)) };
  }
  return { type: declaring.type, id: String(Reflect.get(event.data, declaring.idField)) };
}

type Declared = (typeof resources)[ResourceType] | (typeof singletons)[SingletonType];

type EventsOf<D> = D extends { evolve(state: never, event: infer E, context: never): unknown } ? E : never;
type CommandsOf<D> = D extends { readonly decide: infer M }
  ? { [K in keyof M]: M[K] extends (fleet: never, command: infer C) => unknown ? C : never }[keyof M]
  : never;

export type FleetEvent = EventsOf<Declared>;
export type FleetCommand = CommandsOf<Declared>;

/** A recorded event as an event of the fleet. */
export const fleetEvent = (event: RecordedEvent): FleetEvent => eventOf(streams.fleet, event);
