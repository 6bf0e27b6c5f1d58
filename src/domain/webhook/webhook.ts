/**
 * A webhook: which items of the event feed are sent to which URL. It adds nothing to snapshots. `cursors.ts` records its
 * progress, and `src/webhooks/` delivers. Implements `docs/contract/automation.md#webhooks`.
 */
import type { ResourceKey } from '../resource/fleet-view.js';
import type { IfMatch } from '../resource/refusal.js';
import type { ResourceMeta } from '../resource/meta.js';
import type { SealedSecret } from '../secret/sealed.js';
import { jsonEqual, type Json } from '../../kernel/json.js';

/** The types of items that can be sent, all of which are in the log. */
export const webhookTypes = ['command', 'sign_in', 'session', 'apply', 'status', 'rollout'] as const;
export type WebhookType = (typeof webhookTypes)[number];

export const webhookFilterNames = ['resource_type', 'resource_id', 'node_id', 'actor', 'statuses'] as const;

/** Formats for people; `standard` is for programs. */
export const chatFormats = ['slack', 'mattermost', 'discord', 'telegram', 'teams', 'ntfy', 'email'] as const;
export type ChatFormat = (typeof chatFormats)[number];
export const webhookFormats = ['standard', ...chatFormats] as const;
export type WebhookFormat = (typeof webhookFormats)[number];

/** The values of a webhook that does not say otherwise. */
export const webhookDefaults = { format: 'standard', chat_id: null, group_secs: 0, console_links: true } as const;

/** The filters of the feed; an absent one lets everything through. */
export type WebhookFilters = { readonly [F in (typeof webhookFilterNames)[number]]?: readonly string[] | undefined };

export interface WebhookDefinition {
  readonly name: string;
  readonly url: string;
  readonly types: readonly WebhookType[];
  readonly filters: WebhookFilters;
  readonly enabled: boolean;
  readonly format: WebhookFormat;
  /** The chat of a telegram bot; null for every other format. */
  readonly chat_id: string | null;
  /** How long items gather for one message, in seconds; 0 for `standard`. */
  readonly group_secs: number;
  /** Whether messages for people end with the address in the console. */
  readonly console_links: boolean;
  /** The signing key, 32 bytes. */
  readonly secret: SealedSecret | null;
  /** Signs too until `former_secret_until`; null for none. */
  readonly former_secret: SealedSecret | null;
  /** RFC 3339. */
  readonly former_secret_until: string | null;
}

/** The part of a webhook's state besides its definition. */
export interface WebhookRun {
  /** Where delivery begins: after this cursor of the feed, `start`, or null for after the event that set it. */
  readonly cursor: string | null;
  /** The revision of the event that set the cursor. Progress for an earlier one no longer counts. */
  readonly since: number;
  /** The time of that event, RFC 3339. */
  readonly since_at: string;
  /** The revision of the newest event that restarts the schedule with a try at once. */
  readonly tries_since: number;
  /** Why it was stopped; null while it is not. */
  readonly stopped: string | null;
}

export interface WebhookState extends ResourceMeta, WebhookDefinition, WebhookRun {}

export interface WebhookStopped {
  readonly type: 'WebhookStopped';
  readonly data: {
    readonly webhook_id: string;
    /** The position after the last delivered item. */
    readonly cursor: string | null;
    readonly reason: string;
  };
}

export interface WebhookResumed {
  readonly type: 'WebhookResumed';
  readonly data: {
    readonly webhook_id: string;
    /** Where to continue: a cursor or `start`; null for where it was. */
    readonly after: string | null;
    readonly was_stopped: boolean;
  };
}

/** Does nothing if the webhook has changed since the last try failed. */
export interface StopWebhook {
  readonly type: 'StopWebhook';
  readonly id: string;
  readonly tries_since: number;
  readonly cursor: string | null;
  readonly reason: string;
}

export interface ResumeWebhook {
  readonly type: 'ResumeWebhook';
  readonly id: string;
  readonly ifMatch: IfMatch;
  readonly after: string | null;
  /** Whether the last try failed, which only the deliverer knows. */
  readonly failing: boolean;
}

/** A mail address without a name, quotes or an encoding. */
export const plainMailAddress = /^[A-Za-z0-9.!$&'*+=^_{|}~-]{1,64}@(?=.{1,253}$)[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*$/;

const sent = ['url', 'types', 'filters', 'format', 'chat_id', 'group_secs', 'console_links'] as const;

/** Whether two states of a webhook send the same messages to the same receiver. */
export function sendsAlike(a: WebhookState, b: WebhookState): boolean {
  return a === b || sent.every((field) => jsonEqual(a[field] as Json, b[field] as Json));
}

export const webhookKey: ResourceKey<WebhookState> = { type: 'webhook' };

/**
 * The part of a URL that may be shown, since the rest is often a secret: `https://hooks.example:8443`. For mail, the
 * number of receivers.
 */
export function schemeAndHost(url: string): string {
  const { protocol, host, pathname } = new URL(url);
  if (protocol !== 'mailto:') return `${protocol}//${host}`;
  const addresses = pathname.split(',').length;
  return `mailto: ${addresses} ${addresses === 1 ? 'address' : 'addresses'}`;
}

/** Why a webhook's settings do not go together, as a sentence that names the field; undefined if they do. */
export function webhookMismatch(
  webhook: Pick<WebhookDefinition, 'url' | 'format' | 'chat_id' | 'group_secs'>,
): string | undefined {
  const { url, format, chat_id, group_secs } = webhook;
  if ((format === 'email') !== url.startsWith('mailto:'))
    return `url: expected ${format === 'email' ? 'mailto: with 1 to 16 addresses' : 'https or http'} with the format ${format}`;
  if ((format === 'telegram') !== (chat_id !== null))
    return `chat_id: expected ${format === 'telegram' ? 'the id of a chat' : 'null'} with the format ${format}`;
  if (format === 'standard' && group_secs !== 0) return 'group_secs: expected 0 with the format standard';
  return undefined;
}
