/** Webhooks as REST sees them, without their commands. Types only. Implements `docs/contract/automation.md#webhooks`. */
import type { WebhookStateName } from '../domain/webhook/cursors.js';
import type { WebhookState, WebhookType } from '../domain/webhook/webhook.js';

/** One try. */
export interface Delivery {
  /** RFC 3339. */
  readonly at: string;
  readonly type: WebhookType | 'ping';
  /** The item's; null for a ping. */
  readonly cursor: string | null;
  /** The header `webhook-id`. */
  readonly message_id: string;
  readonly status: number | null;
  readonly duration_ms: number;
  /** Counts from 1 for each item. */
  readonly attempt: number;
  /** A sentence; null for a success. */
  readonly error: string | null;
}

export interface WebhookProgress {
  readonly state: WebhookStateName;
  /** After the last delivered item; null before the first event of the log. */
  readonly cursor: string | null;
  readonly lag: { readonly seconds: number; readonly caught_up: boolean };
  readonly last_delivery: Delivery | null;
}

export interface Webhooks {
  /** While a store is away, as last read. */
  progress(webhooks: readonly WebhookState[]): Promise<readonly WebhookProgress[]>;
  /** The newest tries, newest first. @throws ServiceError `unavailable` */
  deliveries(id: string): Promise<readonly Delivery[]>;
  /** Sends a ping now. @throws ServiceError `not_found`, or `rate_limited` while too many are in flight */
  ping(id: string): Promise<Delivery>;
  /** Whether an address in a URL may be dialled. */
  mayDial(address: string): boolean;
}
