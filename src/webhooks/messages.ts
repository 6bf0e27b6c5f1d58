/** Sends an item or a ping as a signed message, and records the try. Implements `docs/contract/automation.md#webhooks`. */
import type { WebhookState } from '../domain/webhook/webhook.js';
import type { FeedItem } from '../feed/port.js';
import type { Clock } from '../kernel/clock.js';
import { timestamp } from '../kernel/clock.js';
import { streams } from '../kernel/event.js';
import type { Ids } from '../kernel/ids.js';
import type { Keyring } from '../security/keyring.js';
import type { SealedValue } from '../security/sealing.js';
import type { Delivery } from './port.js';
import type { Answer } from './schedule.js';
import type { Sender } from './send.js';
import { signedHeaders } from './signature.js';

/** The place to which both secrets of a webhook are sealed. */
export const secretPlace = (id: string) => ({ stream: streams.fleet, resourceId: id, field: 'secret' });

export interface Tried {
  readonly answer: Answer;
  readonly delivery: Delivery;
}

export interface Messages {
  /** @param attempt counts from 1 @throws Error if the secret cannot be opened, as `ping` */
  sendItem(webhook: WebhookState, item: FeedItem, attempt: number, signal: AbortSignal): Promise<Tried>;
  ping(webhook: WebhookState, signal: AbortSignal): Promise<Tried>;
  /** Tries since the start, by outcome. */
  outcomes(): ReadonlyMap<string, number>;
}

export interface MessagesDeps {
  readonly sender: Pick<Sender, 'send'>;
  readonly keyring: Pick<Keyring, 'open'>;
  /** `now` is the same on every instance. */
  readonly clock: Clock;
  readonly ids: Ids;
}

export function createMessages({ sender, keyring, clock, ids }: MessagesDeps): Messages {
  const outcomes = new Map([
    ['delivered', 0],
    ['failed', 0],
  ]);

  /** The valid secrets, newest first. */
  function secretsOf({ id, secret, former_secret, former_secret_until }: WebhookState): readonly Uint8Array[] {
    const former = former_secret_until !== null && Date.parse(former_secret_until) > clock.now() ? former_secret : null;
    return [secret, former].flatMap((sealed) => {
      if (sealed === null) return [];
      const opened = keyring.open(sealed satisfies SealedValue, secretPlace(id));
      if (opened.kind === 'opened') return [opened.plaintext];
      throw new Error(`the secret of the webhook ${id} cannot be opened: ${opened.reason}`);
    });
  }

  async function send(
    webhook: WebhookState,
    message: Pick<Delivery, 'type' | 'cursor' | 'message_id'>,
    attempt: number,
    bodyAt: (at: string) => string,
    signal: AbortSignal,
  ): Promise<Tried> {
    const [now, began] = [clock.now(), clock.monotonic()];
    const at = timestamp(now);
    const body = bodyAt(at);
    const headers = signedHeaders(message.message_id, Math.floor(now / 1000), body, secretsOf(webhook));
    const answer = await sender.send({ url: webhook.url, headers, body }, signal);
    const { status, error } = answer;
    const outcome = error === null ? 'delivered' : 'failed';
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
    const duration_ms = Math.round(clock.monotonic() - began);
    return { answer, delivery: { at, ...message, status, duration_ms, attempt, error } };
  }

  return {
    sendItem(webhook, { type, cursor, at, json }, attempt, signal) {
      // The data is already JSON, shared by all readers.
      const body = `${JSON.stringify({ type, at, cursor }).slice(0, -1)},"data":${json}}`;
      return send(webhook, { type, cursor, message_id: cursor }, attempt, () => body, signal);
    },
    ping(webhook, signal) {
      const message = { type: 'ping', cursor: null, message_id: `ping_${ids.next()}` } as const;
      return send(webhook, message, 1, (at) => JSON.stringify({ type: 'ping', at }), signal);
    },
    outcomes: () => outcomes,
  };
}
