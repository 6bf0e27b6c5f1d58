/**
 * Read model of the audit: the place of each command in the log, and what queries filter on. Not the content of an entry:
 * `audit-queries.ts` reads it from the log. Implements `docs/contract/rest.md#audit`.
 */
import { describeCommand } from '../../domain/audit/describe.js';
import { signinEvent } from '../../domain/accounts/signin.js';
import { auditOfService, serviceEvent } from '../../domain/service/identity.js';
import { timestamp } from '../../kernel/clock.js';
import { lastEvent, streams } from '../../kernel/event.js';
import type { RecordedCommand, RecordedEvent } from '../../kernel/event.js';
import { limits } from '../../kernel/limits.js';
import type { AuditEntry } from '../port.js';
import type { ReadModel } from '../read-model.js';

export type AuditFields = {
  /** Time, then position, as one sortable string (`auditOrder`). */
  readonly order: string;
  readonly stream: string;
  /** The revision of the command's first event. */
  readonly revision: number;
  readonly count: number;
  /** The log position of the command's last event. */
  readonly position: number;
  readonly at: string;
  readonly action: string;
  readonly resource_type: string;
  readonly resource_id: string | null;
  readonly actor_type: AuditEntry['actor']['type'];
  readonly actor_id: string | null;
  readonly actor_name: string | null;
  /** Id and name of the actor, lower-cased; a query may give either. */
  readonly actors: readonly string[];
  /** True for users and sign-ins, which only admins are shown. */
  readonly accounts: boolean;
  /** The entry that this one reverts. */
  readonly reverts: string | null;
  /** The newest entry that reverts this one. Its own entry says whether it was reverted in turn. */
  readonly reverted_by: string | null;
};

/** The types of entries about users and sign-ins. */
export const accountTypes: ReadonlySet<string> = new Set(['user', 'session']);

const auditedStreams: ReadonlySet<string> = new Set([
  streams.fleet,
  streams.accounts,
  streams.signins,
  streams.service,
]);

/** @param at RFC 3339, UTC, milliseconds */
function auditOrder(at: string, position: number): string {
  return `${at}/${String(position).padStart(16, '0')}`;
}

/** The actor of a command. That of a sign-in is the account that its event names. */
export function actorOf(event: RecordedEvent): AuditEntry['actor'] {
  if (event.stream !== streams.signins) return event.metadata.actor;
  const { user_id, username } = signinEvent(event).data;
  return { type: 'user', id: user_id, name: username };
}

function entryFields(command: RecordedCommand): AuditFields | undefined {
  const described = describeCommand(command);
  if (described === null) return undefined;
  const [first] = command.events;
  const { position } = lastEvent(command);
  const at = first.metadata.occurred_at;
  const actor = actorOf(first);
  const keys = [actor.id, actor.name].filter((key) => key !== null).map((key) => key.toLowerCase());
  return {
    order: auditOrder(at, position),
    stream: command.stream,
    revision: first.revision,
    count: command.events.length,
    position,
    at,
    action: described.action,
    resource_type: described.resource.type,
    resource_id: described.resource.id,
    actor_type: actor.type,
    actor_id: actor.id,
    actor_name: actor.name,
    actors: [...new Set(keys)],
    accounts: described.accounts,
    reverts: first.metadata.revert_of ?? null,
    reverted_by: null,
  };
}

/** The type of the entries of sign-ins, which are kept as long as their events. */
const signinType = 'session';

export const audit: ReadModel<AuditFields> = {
  name: 'audit',
  // Every entry is written to every index, so there is none with and without `accounts`: `audit-queries.ts` filters on
  // both of its values where an index needs it. A list field comes first (`src/storage/README.md`).
  indexes: [
    { fields: ['resource_id', 'order'] },
    { fields: ['actors', 'accounts', 'order'], grouped: true },
    { fields: ['action', 'order'], grouped: true },
    { fields: ['resource_type', 'order'], grouped: true },
    { fields: ['accounts', 'order'], grouped: true },
  ],

  expired(now) {
    const before = timestamp(now - limits.events.signinsMaxAgeSeconds * 1000);
    return [
      { field: 'resource_type', op: 'eq', value: signinType },
      { field: 'order', op: 'lt', value: before },
    ];
  },

  keys(event) {
    const { command, revert_of } = event.metadata;
    // A command has one entry, made from its first event.
    if (command.index !== 0 || !auditedStreams.has(event.stream)) return [];
    if (event.stream === streams.service && auditOfService(serviceEvent(event)) === null) return [];
    return revert_of === undefined ? [command.id] : [command.id, revert_of];
  },

  evolve(fields, event, command, id) {
    const commandId = event.metadata.command.id;
    if (id === commandId) return entryFields(command);
    return fields === undefined ? undefined : { ...fields, reverted_by: commandId };
  },
};
