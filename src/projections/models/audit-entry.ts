/**
 * A command as an audit entry: as much of it as the log and the names of then say, which never changes. The list of entries
 * adds whether one can be reverted now (`audit-queries.ts`), and the event feed shows it as it is (`src/feed/items.ts`).
 * Implements `docs/contract/rest.md#audit`.
 */
import type { describeCommand } from '../../domain/audit/describe.js';
import { signinEvent } from '../../domain/accounts/signin.js';
import type { RecordedCommand, RecordedEvent } from '../../kernel/event.js';
import { lastEvent, streams } from '../../kernel/event.js';
import type { AuditEntry, LoggedEntry } from '../port.js';

type Described = NonNullable<ReturnType<typeof describeCommand>>;

/** The actor of a command. For a sign-in, the account that its event names. */
export function actorOf(event: RecordedEvent): AuditEntry['actor'] {
  if (event.stream !== streams.signins) return event.metadata.actor;
  const { user_id, username } = signinEvent(event).data;
  return { type: 'user', id: user_id, name: username };
}

/** @param nameThen the name that a resource had when the command was given, null when none is known */
export function loggedEntry(
  command: RecordedCommand,
  described: Described,
  nameThen: (type: string, id: string | null) => string | null,
): LoggedEntry {
  const [first] = command.events;
  const { type, id, name } = described.resource;
  const actor = actorOf(first);
  return {
    id: first.metadata.command.id,
    at: first.metadata.occurred_at,
    // The name of an agent is the name of its node.
    actor: actor.type === 'agent' ? { ...actor, name: nameThen('node', actor.id) ?? actor.name } : actor,
    token: first.metadata.token ?? null,
    action: described.action,
    resource: { type, id, name: name ?? nameThen(type, id) },
    changes: described.changes,
    request_id: first.metadata.request_id,
    position: `${command.stream}@${lastEvent(command).revision}`,
    reverts: first.metadata.revert_of ?? null,
  };
}
