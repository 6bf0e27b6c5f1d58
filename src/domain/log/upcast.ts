/**
 * Which event types this release knows, in which shape, and how older shapes become today's. Everything that reads the
 * log passes through here first. Implements `docs/contract/domain.md`, "Old shapes are upcast before anything sees them".
 */
import type { RecordedCommand, RecordedEvent } from '../../kernel/event.js';
import { streams } from '../../kernel/event.js';
import type { AgentEvent, SigninEvent } from '../agents/facts.js';
import type { AccountEvent } from '../accounts/user.js';
import type { FleetEvent } from '../fleet/events.js';
import type { ServiceEvent } from '../service/identity.js';
import { UnknownEventError } from './unknown-event.js';

type DomainEvent = FleetEvent | AccountEvent | ServiceEvent | AgentEvent | SigninEvent;

/** Today's schema version per type. The mapped type makes a forgotten one a compile error. */
export const schemaVersions: { readonly [T in DomainEvent['type']]: number } = {
  NodeCreated: 1,
  NodeUpdated: 1,
  NodeDeleted: 1,
  NodePskIssued: 1,
  NodeConfigRefreshed: 1,
  NodeReportedAddressChanged: 1,
  NodeGenerationRaised: 1,
  NodeCommandQueued: 1,
  UpstreamCreated: 1,
  UpstreamUpdated: 1,
  UpstreamDeleted: 1,
  ChainCreated: 1,
  ChainUpdated: 1,
  ChainDeleted: 1,
  ChainDeployed: 1,
  ConnectivityUpdated: 1,
  CompilerVersionRaised: 1,
  CompilerVersionLowered: 1,
  UserCreated: 1,
  UserProfileUpdated: 1,
  UserPasswordChanged: 1,
  ServiceIdentityCreated: 1,
  AgentSessionOpened: 1,
  AgentConfigApplied: 1,
  AgentConfigRejected: 1,
  AgentVersionConflict: 1,
  AgentDuplicateSeen: 1,
  SignedIn: 1,
  SignInRefused: 1,
};

/** Turns the data of schema version n of a type into that of n + 1. Empty until a shape changes for the first time. */
type Upcaster = (event: RecordedEvent) => RecordedEvent;
const upcasters: { readonly [typeAndVersion: string]: Upcaster } = {};

/** The event in today's shape. @throws UnknownEventError */
export function readEvent(event: RecordedEvent): RecordedEvent {
  const newest = Object.hasOwn(schemaVersions, event.type) ? schemaVersions[event.type as DomainEvent['type']] : 0;
  const version = event.metadata.schema_version;
  if (!Number.isInteger(version) || version > newest || version < 1) {
    throw new UnknownEventError(event.stream, event.revision, event.type, version);
  }
  let current = event;
  for (let from = version; from < newest; from += 1) {
    const upcast = upcasters[`${event.type}@${from}`];
    if (upcast === undefined) throw new UnknownEventError(event.stream, event.revision, event.type, version);
    current = upcast(current);
  }
  return current;
}

/** The command with every event in today's shape. @throws UnknownEventError */
export function readCommand(command: RecordedCommand): RecordedCommand {
  const [first, ...rest] = command.events;
  return { stream: command.stream, events: [readEvent(first), ...rest.map(readEvent)] };
}

/** Narrows a recorded event to the union of its stream, after `readEvent` has vouched for type and shape. */
export function fleetEvent(event: RecordedEvent): FleetEvent {
  if (event.stream !== streams.fleet) throw new Error(`${event.stream}@${event.revision} is no fleet event`);
  return event as unknown as FleetEvent;
}

export function accountEvent(event: RecordedEvent): AccountEvent {
  if (event.stream !== streams.accounts) throw new Error(`${event.stream}@${event.revision} is no account event`);
  return event as unknown as AccountEvent;
}

export function agentEvent(event: RecordedEvent): AgentEvent {
  if (!event.stream.startsWith(streams.agentsPrefix))
    throw new Error(`${event.stream}@${event.revision} is no agent event`);
  return event as unknown as AgentEvent;
}

export function signinEvent(event: RecordedEvent): SigninEvent {
  if (event.stream !== streams.signins) throw new Error(`${event.stream}@${event.revision} is no sign-in event`);
  return event as unknown as SigninEvent;
}
