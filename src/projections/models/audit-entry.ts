/**
 * A command as an audit entry, without the parts that may change later: `audit-queries.ts` adds whether it can be reverted, and
 * the event feed shows it without (`src/feed/items.ts`). Implements `docs/contract/rest.md#audit`.
 */
import type { describeCommand } from '../../domain/audit/describe.js';
import { signinEvent } from '../../domain/accounts/signin.js';
import { lastEvent, streams, type RecordedCommand, type RecordedEvent } from '../../kernel/event.js';
import { limits } from '../../kernel/limits.js';
import type { AuditEntry, LoggedEntry, NameLookup } from '../port.js';

type Described = NonNullable<ReturnType<typeof describeCommand>>;

/** The actor of a command. For a sign-in, the account that its event names. */
export function actorOf(event: RecordedEvent): AuditEntry['actor'] {
  if (event.stream !== streams.signins) return event.metadata.actor;
  const { user_id, username } = signinEvent(event).data;
  return { type: 'user', id: user_id, name: username };
}

type NameThen = (type: string, id: string | null) => string | null;

/** The first changes of an entry, which may have thousands. */
const shownOf = ({ changes }: Described): Described['changes'] => changes.slice(0, limits.rest.changesShown);

/** The names that an entry shows and its events lack. */
export function namesShownBy(command: RecordedCommand, described: Described): readonly NameLookup[] {
  const { position } = lastEvent(command);
  const { type, id } = actorOf(command.events[0]);
  const unnamed = [described.resource, ...shownOf(described).flatMap(({ resource }) => resource ?? [])];
  return [
    ...unnamed.flatMap((one) =>
      one.name === null && one.id !== null ? [{ type: one.type, id: one.id, position }] : [],
    ),
    // The name of an agent is the name of its node.
    ...(type === 'agent' && id !== null ? [{ type: 'node', id, position }] : []),
  ];
}

/** A resource with the name in its event, or else its name at that time. */
export const withName = (resource: Described['resource'], nameThen: NameThen): Described['resource'] => ({
  ...resource,
  name: resource.name ?? nameThen(resource.type, resource.id),
});

/** @param nameThen gives the name of a resource at the time of the command, or null */
export function loggedEntry(command: RecordedCommand, described: Described, nameThen: NameThen): LoggedEntry {
  const [first] = command.events;
  const actor = actorOf(first);
  return {
    id: first.metadata.command.id,
    at: first.metadata.occurred_at,
    actor: actor.type === 'agent' ? { ...actor, name: nameThen('node', actor.id) ?? actor.name } : actor,
    token: first.metadata.token ?? null,
    action: described.action,
    resource: withName(described.resource, nameThen),
    changes: shownOf(described).map(({ resource, ...change }) =>
      resource === undefined ? change : { ...change, resource: withName(resource, nameThen) },
    ),
    changes_total: described.changes.length,
    request_id: first.metadata.request_id,
    position: `${command.stream}@${lastEvent(command).revision}`,
    reverts: first.metadata.revert_of ?? null,
  };
}

/** @param never why it can never be reverted, or null @param reverted_by the revert that is in effect, or null */
export function revertState(never: string | null, reverted_by: string | null) {
  const because = never ?? (reverted_by === null ? null : `it was reverted by the entry ${reverted_by}`);
  return { revertible: because === null, not_revertible_because: because, reverted_by };
}
