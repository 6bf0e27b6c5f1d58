/**
 * The facts of `svc-webhooks`: how far a webhook has delivered. They are in no audit and no feed; they are read when the read
 * store, which knows it to the item, was emptied. Implements `docs/contract/automation.md#webhooks`, "the cursor".
 */
import type { RecordedEvent } from '../../kernel/event.js';
import { streams } from '../../kernel/event.js';
import type { EventSchemas } from '../resource/declaration.js';

export interface WebhookCursorMoved {
  readonly type: 'WebhookCursorMoved';
  readonly data: {
    readonly webhook_id: string;
    /** `since` of the webhook when it was there. */
    readonly since: number;
    /** The feed's. */
    readonly cursor: string;
    readonly state: 'ok' | 'failing';
  };
}

export const webhookCursorEvents: EventSchemas<WebhookCursorMoved> = { WebhookCursorMoved: { schemaVersion: 1 } };

/** A recorded event as a fact of webhooks. Its type and shape must have passed `log/upcast.ts`. */
export function webhookCursor(event: RecordedEvent): WebhookCursorMoved {
  if (event.stream !== streams.webhooks) throw new Error(`${event.stream}@${event.revision} is no cursor of a webhook`);
  return event as unknown as WebhookCursorMoved;
}
