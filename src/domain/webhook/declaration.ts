/**
 * The declaration of webhooks, with the decisions to rotate, stop and resume. Secrets arrive sealed, cursors checked
 * (`src/webhooks/commands.ts`). Implements `docs/contract/automation.md#webhooks`.
 */
import { limits } from '../../kernel/limits.js';
import { err, ok } from '../../kernel/result.js';
import type { Json } from '../../kernel/json.js';
import {
  addedFields,
  eventAudit,
  fieldChanges,
  masked,
  removedFields,
  type AuditChange,
  type EventAudit,
} from '../resource/audit-change.js';
import { onRecord, type EventContext, type EventDeclarations } from '../resource/declaration.js';
import { defineResource } from '../resource/define-resource.js';
import type { FleetView } from '../resource/fleet-view.js';
import { pick } from '../resource/lifecycle.js';
import { nextVersion } from '../resource/meta.js';
import { refuse, type Decision } from '../resource/refusal.js';
import { existing } from '../resource/rules.js';
import { lifecycleUndo } from '../resource/undo.js';
import {
  schemeAndHost,
  webhookDefaults,
  webhookKey,
  webhookMismatch,
  type ResumeWebhook,
  type StopWebhook,
  type WebhookDefinition,
  type WebhookResumed,
  type WebhookRun,
  type WebhookState,
  type WebhookStopped,
} from './webhook.js';

/** The fields besides the secrets. */
const open = [
  'name',
  'url',
  'types',
  'filters',
  'enabled',
  'format',
  'chat_id',
  'group_secs',
  'console_links',
] as const;

const base = defineResource<WebhookDefinition, WebhookRun, never, Pick<WebhookRun, 'cursor'>>()('webhook', {
  fields: [...open, 'secret', 'former_secret', 'former_secret_until'],
  // Events from before webhooks had formats.
  absent: webhookDefaults,
  initial: { cursor: null, since: -1, since_at: '', tries_since: -1, stopped: null },
  // A restored webhook continues where it was deleted.
  alsoDeleted: ['cursor'],
  sealed: ['secret', 'former_secret'],
  invalid(_fleet, next) {
    const message = webhookMismatch(next);
    return message === undefined ? undefined : { code: 'invalid_request', message };
  },
  conflict(fleet, _next, before) {
    if (before !== undefined || [...fleet.ids(webhookKey.type)].length < limits.webhooks.inAll) return undefined;
    return { code: 'conflict', message: `there are ${limits.webhooks.inAll} webhooks; delete one first` };
  },
  indexed: null,
  compiled: null,
  touches: null,
});

type Decided<T extends keyof typeof base.decide> = Parameters<(typeof base.decide)[T]>[1];
type WebhookEvent = Parameters<typeof base.evolve>[1] | WebhookStopped | WebhookResumed;

/** With a new secret, the former one stays valid for a while, and an older one ends. */
function update(fleet: FleetView, command: Decided<'UpdateWebhook'>): ReturnType<typeof base.decide.UpdateWebhook> {
  const before = command.secret === undefined ? undefined : fleet.get(webhookKey, command.id);
  return base.decide.UpdateWebhook(
    fleet,
    before === undefined ? command : { ...command, former_secret: before.secret },
  );
}

function remove(
  fleet: FleetView,
  command: Decided<'DeleteWebhook'> & Partial<Pick<WebhookRun, 'cursor'>>,
): ReturnType<typeof base.decide.DeleteWebhook> {
  const decision = base.decide.DeleteWebhook(fleet, command);
  if (!decision.ok || command.cursor === undefined) return decision;
  const { cursor } = command;
  return ok(
    decision.value.map((event) =>
      event.type === 'WebhookDeleted' ? { ...event, data: { ...event.data, cursor } } : event,
    ),
  );
}

function stop(fleet: FleetView, { id, tries_since, cursor, reason }: StopWebhook): Decision<WebhookStopped> {
  const webhook = fleet.get(webhookKey, id);
  if (webhook?.enabled !== true || webhook.stopped !== null || webhook.tries_since !== tries_since) return ok([]);
  return ok([{ type: 'WebhookStopped', data: { webhook_id: id, cursor, reason } }]);
}

function resume(fleet: FleetView, command: ResumeWebhook): Decision<WebhookResumed> {
  const found = existing(fleet, webhookKey, command);
  if (!found.ok) return err(found.error);
  const { id, name, enabled, stopped } = found.value;
  const { after, failing } = command;
  if (!enabled) return refuse('conflict', `the webhook "${name}" is disabled; enable it instead`);
  if (stopped === null && !failing && after === null) {
    return refuse('conflict', `the webhook "${name}" delivers; to send items again, say after`);
  }
  return ok([{ type: 'WebhookResumed', data: { webhook_id: id, after, was_stopped: stopped !== null } }]);
}

function evolve(state: WebhookState | undefined, event: WebhookEvent, context: EventContext): WebhookState | undefined {
  const { at, revision } = context;
  switch (event.type) {
    case 'WebhookStopped': {
      if (state === undefined) return undefined;
      const { cursor, reason } = event.data;
      return nextVersion({ ...state, stopped: reason, cursor, since: revision, since_at: at }, at);
    }
    case 'WebhookResumed': {
      if (state === undefined) return undefined;
      const { after } = event.data;
      const begins = after === null ? {} : { cursor: after, since: revision, since_at: at };
      return nextVersion({ ...state, ...begins, stopped: null, tries_since: revision }, at);
    }
    default: {
      const next = base.evolve(state, event, context);
      if (next === undefined) return undefined;
      if (state === undefined) return { ...next, since: revision, since_at: at, tries_since: revision };
      // What failed may work now.
      const anew = next.url !== state.url || (next.enabled && !state.enabled);
      return anew ? { ...next, stopped: null, tries_since: revision } : next;
    }
  }
}

const shown = (path: string, value: Json): Json => {
  if (path === 'url' && typeof value === 'string') return schemeAndHost(value);
  return path === 'secret' && value !== null ? masked : value;
};

/** Changes without secrets, such as the path of a URL. */
function withoutSecrets(changes: readonly AuditChange[]): readonly AuditChange[] {
  return changes
    .filter(({ path }) => !path.startsWith('former_secret'))
    .map(({ path, before, after }) => ({ path, before: shown(path, before), after: shown(path, after) }));
}

const definition = (data: WebhookDefinition): object => pick(data, [...open, 'secret']);
const created = ({ data }: { readonly data: WebhookDefinition }): EventAudit =>
  eventAudit('create', withoutSecrets(addedFields(definition(data))));

export const webhook = {
  ...base,
  decide: {
    ...base.decide,
    UpdateWebhook: update,
    DeleteWebhook: remove,
    StopWebhook: stop,
    ResumeWebhook: resume,
  },
  evolve,
  events: {
    ...base.events,
    WebhookCreated: { ...base.events.WebhookCreated, audit: created },
    WebhookUpdated: {
      ...base.events.WebhookUpdated,
      audit({ data: { changes } }) {
        const rotated = changes['secret'] !== undefined;
        const because = rotated ? 'a secret can be replaced by another one, not taken back' : null;
        return eventAudit('update', withoutSecrets(fieldChanges(changes)), because);
      },
      undo: (event) => ({ ...lifecycleUndo(base.type, base.noun, base.singular).updated(event), shown }),
    },
    WebhookDeleted: {
      ...base.events.WebhookDeleted,
      audit: ({ data }) => eventAudit('delete', withoutSecrets(removedFields(definition(data)))),
    },
    WebhookRestored: { ...base.events.WebhookRestored, audit: created },
    WebhookStopped: {
      audit: ({ data: { reason } }) =>
        eventAudit(
          'stop',
          [
            { path: 'state', before: 'failing', after: 'stopped' },
            { path: 'reason', before: null, after: reason },
          ],
          'a stopped webhook is resumed, not reverted',
        ),
      ...onRecord,
    },
    WebhookResumed: {
      audit: ({ data: { after, was_stopped } }) =>
        eventAudit(
          'resume',
          [
            { path: 'state', before: was_stopped ? 'stopped' : null, after: 'ok' },
            ...(after === null ? [] : [{ path: 'cursor', before: null, after }]),
          ],
          'what was sent cannot be taken back',
        ),
      ...onRecord,
    },
  } satisfies EventDeclarations<WebhookEvent>,
};
