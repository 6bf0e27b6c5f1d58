/**
 * Read model of the audit: per command its place in the log and what is filtered on, not the entry itself, which is read
 * from the log and described when it is shown (`audit-queries.ts`). Implements `docs/contract/rest.md#audit`, and `docs/architecture.md`
 * ("Audit read model holds positions and what is filtered on, not the documents").
 */
import { describeCommand } from '../../domain/audit/describe.js';
import { signinEvent } from '../../domain/accounts/signin.js';
import { lastEvent, streams } from '../../kernel/event.js';
import type { RecordedCommand, RecordedEvent } from '../../kernel/event.js';
import type { AuditEntry } from '../port.js';
import type { ReadModel } from '../read-model.js';

export type AuditFields = {
  /** Time, then position, as one string whose order is theirs: see `auditOrder`. */
  readonly order: string;
  readonly stream: string;
  /** Of the command's first event. */
  readonly revision: number;
  readonly count: number;
  /** Log position of the command's last event. */
  readonly position: number;
  readonly at: string;
  readonly action: string;
  readonly resource_type: string;
  readonly resource_id: string | null;
  readonly actor_type: AuditEntry['actor']['type'];
  readonly actor_id: string | null;
  readonly actor_name: string | null;
  /** Id and name, lower-cased: either finds the entry. */
  readonly actors: readonly string[];
  /** About users and sign-ins: for admins only. */
  readonly accounts: boolean;
  /** The entry that this one reverts. */
  readonly reverts: string | null;
  /** The newest entry that reverts this one; whether that one still stands is seen from its own. */
  readonly reverted_by: string | null;
};

/** Only entries of these types are about users and sign-ins. */
export const accountTypes: ReadonlySet<string> = new Set(['user', 'session']);

const auditedStreams: ReadonlySet<string> = new Set([streams.fleet, streams.accounts, streams.signins]);

/** @param at RFC 3339, UTC, milliseconds */
function auditOrder(at: string, position: number): string {
  return `${at}/${String(position).padStart(16, '0')}`;
}

/** Who did it. A sign-in is of the account that its event names, whoever the caller was before. */
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

export const audit: ReadModel<AuditFields> = {
  name: 'audit',
  // Each entry costs a write in each: `audit-queries.ts` binds `accounts` to both of its values rather than have one
  // index with it and one without. The list comes first: see the storage's README.
  indexes: [
    { fields: ['resource_id', 'order'] },
    { fields: ['actors', 'accounts', 'order'], grouped: true },
    { fields: ['action', 'order'], grouped: true },
    { fields: ['resource_type', 'order'], grouped: true },
    { fields: ['accounts', 'order'], grouped: true },
  ],

  keys(event) {
    const { command, revert_of } = event.metadata;
    // A command is one entry, made with its first event.
    if (command.index !== 0 || !auditedStreams.has(event.stream)) return [];
    return revert_of === undefined ? [command.id] : [command.id, revert_of];
  },

  evolve(fields, event, command, id) {
    const { command: own } = event.metadata;
    if (id === own.id) return entryFields(command);
    return fields === undefined ? undefined : { ...fields, reverted_by: own.id };
  },
};
