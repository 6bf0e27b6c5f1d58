/**
 * The resources of the fleet: the one list. A new resource is a line here, and everything that is the same for all
 * resources follows from its declaration; what else needs a line for it does not compile until it has one.
 */
import { l4Chain } from '../chain/declaration.js';
import { node } from '../node/declaration.js';
import type { FleetEventDeclaration, Resource, Singleton } from '../resource/declaration.js';
import type { AnyCommand, AnyEvent } from '../resource/lifecycle.js';
import type { ResourceMeta } from '../resource/meta.js';
import { compiler } from '../service/compiler-version.js';
import { connectivity } from '../settings/declaration.js';
import { l4Upstream } from '../upstream/declaration.js';

/** By type. The order is that of checkpoints and lists. */
export const resources = { node, l4_upstream: l4Upstream, l4_chain: l4Chain } as const;
export const singletons = { connectivity, service: compiler } as const;

export type ResourceType = keyof typeof resources;
export type SingletonType = keyof typeof singletons;

export type StateOf<T extends ResourceType> = Exclude<ReturnType<(typeof resources)[T]['evolve']>, undefined>;
export type NounOf<T extends ResourceType> = (typeof resources)[T]['noun'];
export type SingletonState<T extends SingletonType> = ReturnType<(typeof singletons)[T]['evolve']>;

/** A declaration whose types are forgotten, for code that treats all resources alike. */
export type AnyState = ResourceMeta & { readonly name: string };
export type AnyResource = Resource<string, string, string, AnyState, AnyEvent, AnyCommand>;
export type AnySingleton = Singleton<string, string, unknown, AnyEvent, AnyCommand>;

// A key stands beside its own declaration, so the two cannot be mistaken for one another.
type KeyedByType<R> = { readonly [T in keyof R]: { readonly type: T } };
resources satisfies KeyedByType<typeof resources>;
singletons satisfies KeyedByType<typeof singletons>;

export const resourceTypes = Object.keys(resources) as readonly ResourceType[];
export const singletonTypes = Object.keys(singletons) as readonly SingletonType[];

export function resourceOfType(type: string): AnyResource | undefined {
  return Object.hasOwn(resources, type) ? (resources[type as ResourceType] as unknown as AnyResource) : undefined;
}

/** Which declaration an event belongs to. */
export type EventOwner =
  | { readonly kind: 'resource'; readonly type: ResourceType; readonly declaration: AnyResource }
  | { readonly kind: 'singleton'; readonly type: SingletonType; readonly declaration: AnySingleton };

const owners: readonly EventOwner[] = [
  ...resourceTypes.map((type) => ({
    kind: 'resource' as const,
    type,
    declaration: resources[type] as unknown as AnyResource,
  })),
  ...singletonTypes.map((type) => ({
    kind: 'singleton' as const,
    type,
    declaration: singletons[type] as unknown as AnySingleton,
  })),
];
const eventOwners: ReadonlyMap<string, EventOwner> = new Map(
  owners.flatMap((owner) => Object.keys(owner.declaration.events).map((event) => [event, owner] as const)),
);

/** Whose event it is. @throws Error for a type that no declaration has: the log is read through `log/upcast.ts` first */
export function ownerOfEvent(event: AnyEvent): EventOwner {
  const owner = eventOwners.get(event.type);
  if (owner === undefined) throw new Error(`no resource of the fleet declares the event ${event.type}`);
  return owner;
}

export function declarationOfEvent(event: AnyEvent): FleetEventDeclaration<AnyEvent> {
  const declared = (ownerOfEvent(event).declaration.events as EventTable)[event.type];
  if (declared === undefined) throw new Error(`no declaration of the event ${event.type}`);
  return declared;
}

type EventTable = { readonly [type: string]: FleetEventDeclaration<AnyEvent> };

/** All events of the fleet with their declarations. */
export const fleetEvents: EventTable = Object.assign(
  {},
  ...Object.values(resources).map(({ events }) => events),
  ...Object.values(singletons).map(({ events }) => events),
) as EventTable;

/** Which resource an event is about. */
export function resourceOf(event: AnyEvent): { readonly type: ResourceType | SingletonType; readonly id: string } {
  const owner = ownerOfEvent(event);
  if (owner.kind === 'singleton') return { type: owner.type, id: owner.declaration.id };
  return { type: owner.type, id: String(Reflect.get(event.data, `${owner.declaration.one}_id`)) };
}
