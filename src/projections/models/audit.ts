/**
 * Stored read model: the place of each audited command in the log, and the fields that queries filter on. `audit-queries.ts`
 * reads the content from the log. Implements `docs/contract/rest.md#audit`.
 */
import { apiTokenType, sessionType, userType } from '../../domain/accounts/declaration.js';
import { describeCommand } from '../../domain/audit/describe.js';
import { headsNamedBy } from '../../domain/log-chain/heads.js';
import { auditOfService, serviceEvent } from '../../domain/service/identity.js';
import { webhookKey } from '../../domain/webhook/webhook.js';
import { timestamp } from '../../kernel/clock.js';
import { lastEvent, streams, type RecordedCommand } from '../../kernel/event.js';
import { limits } from '../../kernel/limits.js';
import type { AuditEntry } from '../port.js';
import type { ReadModel } from '../read-model.js';
import { actorOf } from './audit-entry.js';

export type AuditFields = {
  /** The position as sortable text, because clocks cannot order entries. */
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
  /** The name in its events; null if they have none, and `names.ts` has it. */
  readonly resource_name: string | null;
  readonly actor_type: AuditEntry['actor']['type'];
  readonly actor_id: string | null;
  readonly actor_name: string | null;
  /** The groups that queries select by (`auditGroups`). */
  readonly groups: readonly string[];
  /** The entry that this one reverts. */
  readonly reverts: string | null;
  /** The newest entry that reverts this one. Its own entry says whether it was reverted in turn. */
  readonly reverted_by: string | null;
};

/** The types of entries outside the groups of `open`. */
export const closedTypes: ReadonlySet<string> = new Set([userType, sessionType, apiTokenType, webhookKey.type]);

const auditedStreams: ReadonlySet<string> = new Set([
  streams.fleet,
  streams.accounts,
  streams.signins,
  streams.service,
]);

/**
 * The groups that entries are found in. Entries about users, sign-ins, webhooks and API tokens are for admins and not in the
 * groups of `open`; those about API tokens are also in the group of their user.
 */
export const auditGroups = {
  all: 'all',
  type: (type: string): string => `type ${type}`,
  action: (action: string): string => `action ${action}`,
  resource: (id: string): string => `resource ${id}`,
  /** @param actor id or name; names are compared without regard to case */
  actor: (actor: string): string => `actor ${actor.toLowerCase()}`,
  open: (group: string): string => `open ${group}`,
  reader: (userId: string): string => `reader ${userId}`,
} as const;

/** The order of entries whose last event has this log position. */
export const orderOf = (position: number): string => String(position).padStart(16, '0');

function entryFields(command: RecordedCommand): AuditFields | undefined {
  const described = describeCommand(command);
  if (described === null) return undefined;
  const [first] = command.events;
  const { position } = lastEvent(command);
  const at = first.metadata.occurred_at;
  const actor = actorOf(first);
  const { action, resource, others, readers } = described;
  const open = [
    auditGroups.all,
    ...(resource.id === null ? [] : [auditGroups.resource(resource.id)]),
    ...others.map(({ id }) => auditGroups.resource(id)),
    ...[actor.id, actor.name].flatMap((one) => (one === null ? [] : [auditGroups.actor(one)])),
  ];
  const groups = [
    ...open,
    ...(readers === 'all' ? open.map(auditGroups.open) : []),
    ...(typeof readers === 'object' ? [auditGroups.reader(readers.userId)] : []),
    auditGroups.type(resource.type),
    ...others.map(({ type }) => auditGroups.type(type)),
    auditGroups.action(action),
  ];
  return {
    order: orderOf(position),
    stream: command.stream,
    revision: first.revision,
    count: command.events.length,
    position,
    at,
    action,
    resource_type: resource.type,
    resource_id: resource.id,
    resource_name: resource.name,
    actor_type: actor.type,
    actor_id: actor.id,
    actor_name: actor.name,
    groups: [...new Set(groups)],
    reverts: first.metadata.revert_of ?? null,
    reverted_by: null,
  };
}

export const audit: ReadModel<AuditFields> = {
  name: 'audit',
  index: { group: 'groups', order: 'order', time: 'at' },

  // Entries of sign-ins are kept as long as their events.
  expired(now) {
    const to = timestamp(now - limits.events.signinsMaxAgeSeconds * 1000 - 1);
    return { groups: [auditGroups.type(sessionType)], times: { to } };
  },

  keys(event) {
    const { command, revert_of } = event.metadata;
    // The first event of a command makes its entry.
    if (command.index !== 0 || !auditedStreams.has(event.stream)) return [];
    if (headsNamedBy(event) !== undefined) return [];
    if (event.stream === streams.service && auditOfService(serviceEvent(event)) === null) return [];
    return revert_of === undefined ? [command.id] : [command.id, revert_of];
  },

  evolve(fields, event, command, id) {
    const commandId = event.metadata.command.id;
    if (id === commandId) return entryFields(command);
    return fields === undefined ? undefined : { ...fields, reverted_by: commandId };
  },
};
