/**
 * Which event types this release knows, in which shape, and how older shapes become today's. Everything that reads the
 * log passes through here first. Implements `docs/contract/domain.md#commands-and-events`.
 */
import type { RecordedCommand, RecordedEvent } from '../../kernel/event.js';
import { accountEvents } from '../accounts/declaration.js';
import type { AccountEvent } from '../accounts/user.js';
import type { AgentEvent, SigninEvent } from '../agents/facts.js';
import { agentEvents, signinEvents } from '../agents/facts.js';
import type { FleetEvent } from '../fleet/events.js';
import { fleetEvents } from '../fleet/resources.js';
import type { EventDeclaration } from '../resource/declaration.js';
import type { AnyEvent } from '../resource/lifecycle.js';
import type { ServiceEvent } from '../service/identity.js';
import { serviceEvents } from '../service/identity.js';
import { UnknownEventError } from './unknown-event.js';

type DomainEvent = FleetEvent | AccountEvent | ServiceEvent | AgentEvent | SigninEvent;

/** What reading the log needs of a declared event. */
type Shape = Pick<EventDeclaration<AnyEvent>, 'schemaVersion' | 'upcasters'>;

const shapes: { readonly [type: string]: Shape } = {
  ...fleetEvents,
  ...accountEvents,
  ...serviceEvents,
  ...agentEvents,
  ...signinEvents,
};

/** Today's schema version per type. */
export const schemaVersions = Object.fromEntries(
  Object.entries(shapes).map(([type, { schemaVersion }]) => [type, schemaVersion]),
) as { readonly [T in DomainEvent['type']]: number };

/** The event in today's shape. @throws UnknownEventError */
export function readEvent(event: RecordedEvent): RecordedEvent {
  const shape = Object.hasOwn(shapes, event.type) ? shapes[event.type] : undefined;
  const version = event.metadata.schema_version;
  const unknown = (): UnknownEventError => new UnknownEventError(event.stream, event.revision, event.type, version);
  if (shape === undefined || !Number.isInteger(version) || version > shape.schemaVersion || version < 1)
    throw unknown();
  let current = event;
  for (let from = version; from < shape.schemaVersion; from += 1) {
    const upcast = shape.upcasters?.[from];
    if (upcast === undefined) throw unknown();
    current = upcast(current);
  }
  return current;
}

/** The command with every event in today's shape. @throws UnknownEventError */
export function readCommand(command: RecordedCommand): RecordedCommand {
  const [first, ...rest] = command.events;
  return { stream: command.stream, events: [readEvent(first), ...rest.map(readEvent)] };
}
