/**
 * Describes a command as an audit entry: action, resource and changed fields. The declaration of each event says how to
 * show it. The read model keeps names, since every entry shows one and few events carry one. Implements
 * `docs/contract/rest.md#audit` and `docs/contract/domain.md#audit-and-revert`.
 */
import { streams, type RecordedCommand, type RecordedEvent } from '../../kernel/event.js';
import {
  accountEvent,
  accountSubject,
  apiTokenType,
  auditOfAccountEvent,
  sessionType,
  userType,
} from '../accounts/declaration.js';
import { signinEvent } from '../accounts/signin.js';
import {
  fleetEvent,
  eventDeclaration,
  declaringResource,
  resourceOf,
  resourceTypes,
  singletons,
  singletonTypes,
} from '../fleet/resources.js';
import { fleetSetType } from '../fleet-set/declaration.js';
import { namesHeads } from '../log-chain/heads.js';
import { isOfBulk } from '../node/node.js';
import { eventAudit, type AuditChange, type EventAudit } from '../resource/audit-change.js';
import type { Changes } from '../resource/change.js';
import { confirmationKey } from '../confirmation/confirmation.js';
import { rolloutKey } from '../rollout/rollout.js';
import { webhookKey } from '../webhook/webhook.js';
import { auditOfService, serviceEvent, serviceType } from '../service/identity.js';

/** The resource types of audit entries. */
export const auditedTypes: readonly string[] = [
  ...resourceTypes,
  ...new Set(singletonTypes.map((type) => singletons[type].type)),
  userType,
  sessionType,
  apiTokenType,
];

/** Who may read an entry: everybody, admins, or admins and one user. */
export type Readers = 'all' | 'admins' | { readonly userId: string };

interface AuditDescription {
  /** `<resource type>.<verb>`. */
  readonly action: string;
  readonly resource: {
    readonly type: string;
    readonly id: string | null;
    /** The name in the events; null when they have none. */
    readonly name: string | null;
  };
  /** Each names its resource if the entry is about several. */
  readonly changes: readonly AuditChange[];
  /** The other resources that it changed. */
  readonly others: readonly { readonly type: string; readonly id: string }[];
  readonly readers: Readers;
  readonly notRevertibleBecause: string | null;
}

type Subject = AuditDescription['resource'];

/** Their events come with the commands that they are about. */
const aside: readonly string[] = [rolloutKey.type, confirmationKey.type];

/** The entry of a command, or null if it has none: facts of agents, the first start, heads of the log chain. */
export function describeCommand(command: RecordedCommand): AuditDescription | null {
  const [first] = command.events;
  if (namesHeads(command)) return null;
  switch (command.stream) {
    case streams.fleet:
      // Steps of the service have no entry: the feed shows them, and so does the entry that they are about.
      if (aside.includes(resourceOf(first).type) && first.metadata.actor.type === 'system') return null;
      if (isAboutSeveral(first)) return aboutSeveral(command);
      return entry(
        command,
        fleetSubject(first),
        command.events.map(auditOfFleetEvent),
        resourceOf(first).type === webhookKey.type ? 'admins' : 'all',
        // A join is about two resources, and a retired identity ends join tokens.
        resourcesOf(command.events.filter(({ type }) => type === 'JoinTokenUsed' || type === 'JoinTokenEnded')),
      );
    case streams.accounts: {
      const event = accountEvent(first);
      const { type, id } = accountSubject(event);
      const readers = type === apiTokenType ? { userId: event.data.user_id } : 'admins';
      return entry(command, { type, id, name: nameGiven(first) }, [auditOfAccountEvent(event)], readers);
    }
    case streams.signins: {
      const { user_id: id, username: name } = signinEvent(first).data;
      return entry(command, { type: sessionType, id, name }, [auditOfSignin(first)], 'admins');
    }
    case streams.service: {
      const event = serviceEvent(first);
      const audit = auditOfService(event);
      const subject = { type: serviceType, id: event.data.installation_id, name: null };
      return audit === null ? null : entry(command, subject, [audit], 'all');
    }
    default:
      return null;
  }
}

/** The first event gives verb and reason, unless it is a revert; the others only add their changes. */
function entry(
  { events: [recorded] }: RecordedCommand,
  resource: Subject,
  audits: readonly EventAudit[],
  readers: Readers,
  others: AuditDescription['others'] = [],
): AuditDescription | null {
  const [first] = audits;
  if (first === undefined) return null;
  return {
    action: `${resource.type}.${recorded.metadata.revert_of === undefined ? first.verb : 'revert'}`,
    resource,
    get changes() {
      return audits.flatMap(({ changes }) => changes);
    },
    others,
    readers,
    notRevertibleBecause: first.notRevertibleBecause,
  };
}

/**
 * Whether a command is one entry about several resources: an apply, its revert, a release, a command about several nodes.
 * @param first its first event
 */
export const isAboutSeveral = (first: RecordedEvent): boolean =>
  isOfBulk(first) || resourceOf(first).type === fleetSetType;

/** One entry, each change with its resource. */
function aboutSeveral({ events }: RecordedCommand): AuditDescription {
  const [first, ...rest] = events;
  const { type, id } = resourceOf(first);
  const isBulk = isOfBulk(first);
  // An apply begins with an event about its set, a command about nodes with the first of them.
  const done = (isBulk ? events : rest).filter((event) => !aside.includes(resourceOf(event).type));
  const others = resourcesOf(done);
  let made: readonly AuditChange[] | undefined;
  return {
    action: `${type}.${first.metadata.revert_of === undefined ? auditOfFleetEvent(first).verb : 'revert'}`,
    resource: isBulk
      ? { type, id: null, name: others.length === 1 ? '1 node' : `${others.length} nodes` }
      : { type, id, name: nameGiven(first) },
    get changes() {
      return (made ??= done.flatMap((event) => {
        const resource = { ...resourceOf(event), name: fleetSubject(event).name };
        return auditOfFleetEvent(event).changes.map((change) => ({ ...change, resource }));
      }));
    },
    others,
    readers: 'all',
    notRevertibleBecause: isBulk ? auditOfFleetEvent(first).notRevertibleBecause : whyFinal(first, done),
  };
}

const resourcesOf = (events: readonly RecordedEvent[]): AuditDescription['others'] => [
  ...new Map(events.map((event) => [resourceOf(event).id, resourceOf(event)])).values(),
];

/** Ignores the PSK of a created node, which is deleted with the node. */
function whyFinal(first: RecordedEvent, done: readonly RecordedEvent[]): string | null {
  if (first.type === 'FleetApplied' && done.length === 0) return 'it changed no resource';
  for (const event of done) {
    const { undo, audit } = eventDeclaration(fleetEvent(event));
    const because = undo === null ? null : audit(fleetEvent(event)).notRevertibleBecause;
    if (because !== null) return because;
  }
  return null;
}

export function fleetSubject(event: RecordedEvent): Subject {
  const { type, id } = resourceOf(event);
  const { kind, declaration } = declaringResource(event);
  const named = kind === 'resource' && declaration.ownedByNode === undefined;
  return { type, id, name: named ? nameGiven(event) : id };
}

export function auditOfFleetEvent(recorded: RecordedEvent): EventAudit {
  const event = fleetEvent(recorded);
  return eventDeclaration(event).audit(event);
}

function auditOfSignin(recorded: RecordedEvent): EventAudit {
  const { type, data } = signinEvent(recorded);
  const changes = [{ path: 'address', before: null, after: data.address }];
  return eventAudit(type === 'SignedIn' ? 'sign_in' : 'sign_in_refused', changes, 'a sign-in is a fact');
}

/** The name that an event sets; null when it sets none. */
function nameGiven({ stream, data }: RecordedEvent): string | null {
  const { changes } = data as { readonly changes?: Changes };
  const name = (stream === streams.accounts ? data['username'] : undefined) ?? data['name'] ?? changes?.['name']?.to;
  return typeof name === 'string' ? name : null;
}

/** The resource that an event names; undefined when it names none. */
export function namedBy(
  event: RecordedEvent,
): { readonly type: string; readonly id: string; readonly name: string } | undefined {
  const name = nameGiven(event);
  if (name === null) return undefined;
  if (event.stream === streams.accounts) {
    const { type, id } = accountSubject(accountEvent(event));
    // A sign-out repeats the name of its user.
    return type === sessionType ? undefined : { type, id, name };
  }
  return event.stream === streams.fleet ? { ...resourceOf(event), name } : undefined;
}
