/** The types of all events and commands of `svc-fleet`, derived from the declarations (`resources.ts`). */
import type { RecordedEvent } from '../../kernel/event.js';
import { streams } from '../../kernel/event.js';
import type { LogChainEvent } from '../log-chain/declaration.js';
import type { ResourceType, resources, singletons, SingletonType } from './resources.js';

type Declared = (typeof resources)[ResourceType] | (typeof singletons)[SingletonType];

type EventsOf<D> = D extends { evolve(state: never, event: infer E, context: never): unknown } ? E : never;
type CommandsOf<D> = D extends { readonly decide: infer M }
  ? { [K in keyof M]: M[K] extends (fleet: never, command: infer C) => unknown ? C : never }[keyof M]
  : never;

export type FleetEvent = EventsOf<Declared> | LogChainEvent;
export type FleetCommand = CommandsOf<Declared>;

/** A recorded event as an event of the fleet. Its type and shape must have passed `log/upcast.ts`. */
export function fleetEvent(event: RecordedEvent): FleetEvent {
  if (event.stream !== streams.fleet) throw new Error(`${event.stream}@${event.revision} is no fleet event`);
  return event as unknown as FleetEvent;
}
