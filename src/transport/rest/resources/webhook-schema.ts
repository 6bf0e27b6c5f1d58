/** What requests and answers about webhooks hold, and their defaults. Implements `docs/contract/automation.md#webhooks`. */
import { z } from 'zod';
import type { NewWebhook } from '../../../commands/handlers-port.js';
import { auditedTypes } from '../../../domain/audit/describe.js';
import { webhookStates } from '../../../domain/webhook/cursors.js';
import { toldStatuses } from '../../../domain/status/status.js';
import {
  plainMailAddress,
  webhookDefaults,
  webhookFormats,
  webhookTypes,
  type WebhookFormat,
  type WebhookState,
} from '../../../domain/webhook/webhook.js';
import { limits } from '../../../kernel/limits.js';
import { literalIn } from '../../../webhooks/addresses.js';
import type { WebhookProgress } from '../../../webhooks/port.js';
import { component, documented, sample } from '../schemas/documented.js';
import { body, boolean, distinct, formedText, integer, list, name, object, oneOf, text } from '../schemas/fields.js';
import { idOf, timeOf, timestamps } from '../schemas/shared-schemas.js';

const sampleUrl = 'https://hooks.example/gateway';
const sampleSecret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';

/** Descriptions of fields that requests and answers share. */
const about = {
  name: 'Name, unique among webhooks',
  url: 'Where items are sent: https or http, without credentials; with the format email `mailto:a@example.com,b@example.com`',
  types: 'Types of items that are sent',
  filters: 'Filters of the event feed, as lists; an absent one passes everything',
  enabled: 'Whether it delivers; it continues where it was when it is enabled again',
  format: '`standard`: signed JSON for programs; any other: what a chat or a mailbox takes as it comes',
  chat_id: 'The chat of the bot, with the format telegram; null with every other',
  group_secs: 'How many seconds items gather for one message; 0 for `standard`',
  console_links: 'Whether messages for people end with the address in the console, where `SVC_PUBLIC_URL` is set',
};

/** @param mayDial checks literal addresses; names are checked when they are dialled */
function urlSchema(mayDial: (address: string) => boolean) {
  return formedText('a URL')
    .transform((sent, ctx) => {
      const refuse = (expected: string): never => {
        ctx.issues.push({ code: 'custom', message: expected, input: sent });
        return z.NEVER;
      };
      const url = URL.canParse(sent) ? new URL(sent) : undefined;
      if (url?.protocol === 'mailto:') {
        const addresses = sent.slice('mailto:'.length).split(',');
        if (addresses.length <= limits.webhooks.mailAddresses && addresses.every((one) => plainMailAddress.test(one)))
          return `mailto:${addresses.join(',')}`;
        return refuse(
          `expected mailto: and 1 to ${limits.webhooks.mailAddresses} plain addresses with commas between them`,
        );
      }
      if (url === undefined || !['https:', 'http:'].includes(url.protocol) || /\s/.test(sent))
        return refuse('expected a URL with https or http');
      if (url.username !== '' || url.password !== '') return refuse('expected a URL without credentials');
      url.hash = '';
      const host = literalIn(url);
      if (host !== undefined && !mayDial(host))
        return refuse(`expected a public address, or one in SVC_WEBHOOK_ALLOW; ${host} is neither`);
      const plain = url.pathname === '/' && url.search === '' && !sent.replace(/#.*$/s, '').endsWith('/');
      return plain ? url.href.slice(0, -1) : url.href;
    })
    .meta({ format: 'uri', maxLength: limits.rest.stringChars });
}

const filterValue = (entry: z.ZodType<string>, description: string, example: string) =>
  documented(list(entry, 1).optional(), description, [example]);

const filterText = text(1, limits.rest.stringChars);

const filters = object({
  resource_type: filterValue(
    oneOf(auditedTypes as [string, ...string[]]),
    'Only about resources of these types',
    'node',
  ),
  resource_id: filterValue(filterText, 'Only about these resources', sample.chain),
  node_id: filterValue(filterText, 'Only items that concern these nodes', sample.entryNode),
  actor: filterValue(filterText, 'Only commands of these actors, by id or user name', 'admin'),
  statuses: filterValue(
    oneOf(toldStatuses as [string, ...string[]]),
    'Of `status` items only those to these statuses',
    'offline',
  ),
}).meta({ id: 'WebhookFilters', description: about.filters });

const typesSchema = distinct(oneOf(webhookTypes), 1, 'type');

const defaults = { types: ['command', 'apply'], filters: {}, enabled: true } as const;

/** The defaults of a new webhook of a format. */
export const defaultsOf = (format: WebhookFormat): Omit<NewWebhook, 'name' | 'url'> =>
  format === 'standard'
    ? { ...webhookDefaults, ...defaults }
    : { ...webhookDefaults, ...defaults, types: ['status'], format, group_secs: limits.webhooks.groupSecs.default };

const forPeople = {
  format: documented(oneOf(webhookFormats).optional(), about.format, 'slack'),
  chat_id: documented(text(1, limits.rest.stringChars).nullable().optional(), about.chat_id, '-1001234567890'),
  group_secs: documented(integer(0, limits.webhooks.groupSecs.max).optional(), about.group_secs, 15),
  console_links: documented(boolean().optional(), about.console_links, true),
};

export function bodiesOf(mayDial: (address: string) => boolean) {
  const newName = documented(name, about.name, 'tickets');
  const url = documented(urlSchema(mayDial), about.url, sampleUrl);
  const withDefault = (field: keyof typeof defaults): string =>
    `${about[field]}; default \`${JSON.stringify(defaults[field])}\``;
  const create = body({
    name: newName,
    url,
    types: documented(typesSchema.optional(), withDefault('types'), ['command']),
    filters: documented(filters.optional(), withDefault('filters')),
    enabled: documented(boolean().optional(), withDefault('enabled'), true),
    ...forPeople,
  }).meta({
    id: 'NewWebhook',
    description: 'Create a webhook',
    examples: [{ name: 'tickets', url: sampleUrl, types: ['command'] }],
  });
  const update = body({
    name: newName.optional(),
    url: url.optional(),
    types: documented(typesSchema.optional(), about.types, ['command']),
    filters: documented(filters.optional(), about.filters),
    enabled: documented(boolean().optional(), about.enabled, true),
    ...forPeople,
    rotate_secret: documented(
      boolean().optional(),
      'With true, creates a new secret, shown only in the answer; the former one also signs for 24 hours',
      true,
    ),
  }).meta({
    id: 'WebhookChanges',
    description: 'Changes of a webhook. Omitted fields stay',
    examples: [{ enabled: false }],
  });
  return { create, update };
}

const cursorText = z.string().nullable();
export const deliverySchema = component('WebhookDelivery', 'One attempt to send an item', {
  at: timeOf('When it was sent'),
  type: documented(z.enum([...webhookTypes, 'ping']), 'Type of the item, or ping', 'command'),
  cursor: documented(cursorText, 'Cursor of the item; null for a ping', null),
  message_id: documented(z.string(), 'The header `webhook-id`', 'ping_01890a5d-ac96-774b-bcce-b302099a8057'),
  status: documented(z.int().nullable(), 'HTTP status of the answer; null when none came', 200),
  duration_ms: documented(z.int(), 'Milliseconds until the answer, or until it was given up', 38),
  attempt: documented(z.int(), 'Number of the attempt for this item, from 1', 1),
  error: documented(z.string().nullable(), 'Why it failed; null when it did not', null),
});

const shown = {
  id: idOf('Id, a UUID', sample.webhook),
  name: documented(z.string(), about.name, 'tickets'),
  url: documented(z.string(), about.url, sampleUrl),
  types: documented(z.array(z.enum(webhookTypes)), about.types, ['command']),
  filters: documented(
    component('ShownWebhookFilters', about.filters, {
      resource_type: documented(z.array(z.string()).optional(), 'Types of resources', ['node']),
      resource_id: documented(z.array(z.string()).optional(), 'Ids of resources', [sample.chain]),
      node_id: documented(z.array(z.string()).optional(), 'Ids of nodes', [sample.entryNode]),
      actor: documented(z.array(z.string()).optional(), 'Ids or user names', ['admin']),
      statuses: documented(z.array(z.string()).optional(), 'Statuses of `status` items', ['offline']),
    }),
    about.filters,
  ),
  enabled: documented(z.boolean(), about.enabled, true),
  format: documented(z.enum(webhookFormats), about.format, 'standard'),
  chat_id: documented(z.string().nullable(), about.chat_id, null),
  group_secs: documented(z.int(), about.group_secs, 0),
  console_links: documented(z.boolean(), about.console_links, true),
  state: documented(
    z.enum(webhookStates),
    '`failing`: the last attempt failed and others follow; `stopped`: nothing is sent until it is resumed',
    'ok',
  ),
  cursor: documented(cursorText, 'Resumes after the last delivered item', null),
  lag: documented(
    component('WebhookLag', 'How far it is behind', {
      seconds: documented(z.number(), 'Age of the first item that it has not processed', 0),
      caught_up: documented(z.boolean(), 'Whether it is at the end of the log', true),
    }),
    'How far it is behind',
  ),
  last_delivery: documented(deliverySchema.nullable(), 'The newest attempt; null before the first', null),
};

export const webhookSchema = component('Webhook', 'A URL that items of the event feed are sent to', {
  ...shown,
  ...timestamps,
});
export const createdSchema = component('CreatedWebhook', 'A new webhook with its secret', {
  ...shown,
  secret: documented(
    z.string().nullable(),
    'Signs every message; shown only once, null in a repeat and with every format but `standard`',
    sampleSecret,
  ),
  ...timestamps,
});
export const updatedSchema = component('UpdatedWebhook', 'A webhook, with its secret if it has a new one', {
  ...shown,
  secret: documented(z.string().optional(), 'The new secret, after `rotate_secret`; shown this once', sampleSecret),
  ...timestamps,
});

export const resumeBody = body({
  after: documented(
    text(1, limits.rest.stringChars).optional(),
    'Where to go on: behind a cursor, from the `start` of the log, or from `now`; absent: where it is',
    'now',
  ),
  skip: documented(
    z.literal(true, 'expected true, or to be left out').optional(),
    'Go on behind the item that failed',
    true,
  ),
})
  .superRefine(({ after, skip }, ctx) => {
    if (after === undefined || skip === undefined) return;
    ctx.addIssue({ code: 'custom', path: ['skip'], message: 'expected none beside after' });
  })
  .meta({ id: 'ResumeWebhook', description: 'Where a webhook goes on', examples: [{ after: 'now' }] });

export type WebhookView = Omit<WebhookState, 'secret' | 'former_secret' | 'cursor'> & WebhookProgress;

/** Without the sealed secrets; the schemas leave out other fields. */
export function viewOf(webhook: WebhookState, progress: WebhookProgress): WebhookView {
  const { secret: _secret, former_secret: _former, ...state } = webhook;
  return { ...state, ...progress };
}
