/**
 * The facts of `svc-webhooks`, the only place of cursors: how far a webhook has delivered, and the tries of a failing item.
 * Neither audit nor feed shows them. Implements `docs/contract/automation.md#webhooks`, "the cursor".
 */
import { eventOf, streams, type RecordedEvent } from '../../kernel/event.js';
import type { EventSchemas } from '../resource/declaration.js';
import type { WebhookState } from './webhook.js';

export const webhookStates = ['ok', 'failing', 'stopped', 'disabled'] as const;
export type WebhookStateName = (typeof webhookStates)[number];

/** The tries of the item after the cursor. */
export type WebhookTries = {
  /** `tries_since` of the webhook when they were made. */
  readonly tries_since: number;
  readonly failures: number;
  /** RFC 3339; null while the last try did not fail. */
  readonly failing_since: string | null;
  /** The time of the next try, RFC 3339; null for at once. */
  readonly next_at: string | null;
};

export interface WebhookCursorMoved {
  readonly type: 'WebhookCursorMoved';
  readonly data: WebhookTries & {
    readonly webhook_id: string;
    /** `since` of the webhook when it was at the cursor. */
    readonly since: number;
    /** A cursor of the feed, or `start`. */
    readonly cursor: string;
    readonly state: WebhookStateName;
  };
}

export const webhookCursorEvents: EventSchemas<WebhookCursorMoved> = { WebhookCursorMoved: {} };

/** A recorded event as a fact of webhooks. */
export const webhookCursor = (event: RecordedEvent): WebhookCursorMoved => eventOf(streams.webhooks, event);

export function webhookStateOf(
  { enabled, stopped, tries_since }: WebhookState,
  tries: Pick<WebhookTries, 'tries_since' | 'failures'>,
): WebhookStateName {
  if (!enabled) return 'disabled';
  if (stopped !== null) return 'stopped';
  return tries.tries_since === tries_since && tries.failures > 0 ? 'failing' : 'ok';
}
