/**
 * The event types that this release knows, and how their older shapes become the current one. Every reader of the log calls
 * this first. Implements `docs/contract/domain.md#commands-and-events`.
 */
import type { RecordedCommand, RecordedEvent } from '../../kernel/event.js';
import { accountEvents, type AccountEvent } from '../accounts/declaration.js';
import { signinEvents, type SigninEvent } from '../accounts/signin.js';
import { agentEvents, type AgentEvent } from '../agents/facts.js';
import { fleetEvents, type FleetEvent } from '../fleet/resources.js';
import { logChainEvents, type LogHeadsRecorded } from '../log-chain/heads.js';
import type { EventSchema } from '../resource/declaration.js';
import { statusEvents, type StatusChanged } from '../status/facts.js';
import { webhookCursorEvents, type WebhookCursorMoved } from '../webhook/cursors.js';
import { serviceEvents, keyringEvents, type ServiceEvent, type KeyringWrapped } from '../service/identity.js';

/** An event of a type or shape that this release does not know. It is never skipped; it makes the instance read-only. */
export class UnknownEventError extends Error {
  readonly eventType: string;

  constructor(stream: string, revision: number, eventType: string, schemaVersion: number) {
    super(
      `the event ${eventType} with schema version ${schemaVersion} at ${stream}@${revision} is not known to this release; ` +
        'a newer release wrote it',
    );
    this.name = 'UnknownEventError';
    this.eventType = eventType;
  }
}

type DomainEvent =
  | FleetEvent
  | AccountEvent
  | ServiceEvent
  | KeyringWrapped
  | LogHeadsRecorded
  | AgentEvent
  | SigninEvent
  | WebhookCursorMoved
  | StatusChanged;

const schemas: { readonly [type: string]: EventSchema } = {
  ...fleetEvents,
  ...accountEvents,
  ...serviceEvents,
  ...keyringEvents,
  ...logChainEvents,
  ...agentEvents,
  ...signinEvents,
  ...webhookCursorEvents,
  ...statusEvents,
};

/** The current schema version of each type. */
export const schemaVersions = Object.fromEntries(
  Object.entries(schemas).map(([type, { schemaVersion = 1 }]) => [type, schemaVersion]),
) as { readonly [T in DomainEvent['type']]: number };

/** The event in its current shape. @throws UnknownEventError */
export function readEvent(event: RecordedEvent): RecordedEvent {
  const schema = Object.hasOwn(schemas, event.type) ? schemas[event.type] : undefined;
  const version = event.metadata.schema_version;
  const { schemaVersion = 1, upcasters = {} } = schema ?? { schemaVersion: 0 };
  if (version === schemaVersion) return event;
  const unknown = (): UnknownEventError => new UnknownEventError(event.stream, event.revision, event.type, version);
  if (!Number.isInteger(version) || version > schemaVersion || version < 1) throw unknown();
  let current = event;
  for (let from = version; from < schemaVersion; from += 1) {
    const upcast = upcasters[from];
    if (upcast === undefined) throw unknown();
    current = upcast(current);
  }
  return current;
}

/** The command with every event in its current shape. @throws UnknownEventError */
export function readCommand(command: RecordedCommand): RecordedCommand {
  const [first, ...rest] = command.events;
  const read = readEvent(first);
  // Nearly every command is one event in its current shape.
  if (rest.length === 0 && read === first) return command;
  return { stream: command.stream, events: [read, ...rest.map(readEvent)] };
}
