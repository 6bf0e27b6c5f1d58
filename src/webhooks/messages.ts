/**
 * Sends an item or a ping as a signed message, or a notice as a chat or a mail takes it, and records the try. Implements
 * `docs/contract/automation.md#webhooks` and `docs/contract/notices.md#webhooks-for-people`.
 */
import type { WebhookState } from '../domain/webhook/webhook.js';
import type { FeedItem } from '../feed/port.js';
import { timestamp, type Clock } from '../kernel/clock.js';
import { streams } from '../kernel/event.js';
import type { Ids } from '../kernel/ids.js';
import { render, type Rendered } from '../notices/formats.js';
import { pingNotice } from '../notices/notice.js';
import type { Keyring } from '../security/keyring.js';
import type { SealedValue } from '../security/sealing.js';
import type { Mailer } from './mail.js';
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

/** Something to send, made once: each try sends the same. */
export type Message = Pick<FeedItem, 'type' | 'cursor'> &
  ({ readonly kind: 'item'; readonly body: string } | { readonly kind: 'notice'; readonly rendered: Rendered });

export interface Messages {
  /** @param attempt counts from 1 @throws Error if the secret cannot be opened, as `ping` */
  send(webhook: WebhookState, message: Message, attempt: number, signal: AbortSignal): Promise<Tried>;
  ping(webhook: WebhookState, signal: AbortSignal): Promise<Tried>;
  /** Tries since the start, by outcome. */
  outcomes(): ReadonlyMap<string, number>;
}

export interface MessagesDeps {
  readonly sender: Pick<Sender, 'send'>;
  /** Undefined without a server for mail. */
  readonly mailer: Mailer | undefined;
  readonly keyring: Pick<Keyring, 'open'>;
  /** `now` is the same on every instance. */
  readonly clock: Clock;
  readonly ids: Ids;
}

export function createMessages({ sender, mailer, keyring, clock, ids }: MessagesDeps): Messages {
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

  /** @param make what is sent, given the time */
  async function tried(
    about: Pick<Delivery, 'type' | 'cursor' | 'message_id'>,
    attempt: number,
    make: (now: number) => Promise<Answer>,
  ): Promise<Tried> {
    const [now, began] = [clock.now(), clock.monotonic()];
    const answer = await make(now);
    const { status, error } = answer;
    const outcome = error === null ? 'delivered' : 'failed';
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
    const duration_ms = Math.round(clock.monotonic() - began);
    return { answer, delivery: { at: timestamp(now), ...about, status, duration_ms, attempt, error } };
  }

  function post(webhook: WebhookState, id: string, body: string, now: number, signal: AbortSignal): Promise<Answer> {
    const headers = signedHeaders(id, Math.floor(now / 1000), body, secretsOf(webhook));
    return sender.send({ url: webhook.url, headers: { ...headers, 'content-type': 'application/json' }, body }, signal);
  }

  function sendRendered(webhook: WebhookState, id: string, rendered: Rendered, signal: AbortSignal): Promise<Answer> {
    const { url } = webhook;
    const { headers, body, subject } = rendered;
    if (!url.startsWith('mailto:')) return sender.send({ url, headers, body }, signal);
    if (mailer === undefined) {
      return Promise.resolve({ status: null, error: 'SVC_SMTP_URL is not set', retryAfterMs: null });
    }
    return mailer.send(
      { id: `${id}.${webhook.id}`, to: new URL(url).pathname.split(','), subject, text: body },
      signal,
    );
  }

  return {
    send(webhook, message, attempt, signal) {
      const { type, cursor } = message;
      return tried({ type, cursor, message_id: cursor }, attempt, (now) =>
        message.kind === 'item'
          ? post(webhook, cursor, message.body, now, signal)
          : sendRendered(webhook, cursor, message.rendered, signal),
      );
    },
    ping(webhook, signal) {
      const { format, chat_id: chatId, name } = webhook;
      const about = { type: 'ping', cursor: null, message_id: `ping_${ids.next()}` } as const;
      return tried(about, 1, (now) =>
        format === 'standard'
          ? post(webhook, about.message_id, JSON.stringify({ type: 'ping', at: timestamp(now) }), now, signal)
          : sendRendered(webhook, about.message_id, render(format, pingNotice(name), { chatId }), signal),
      );
    },
    outcomes: () => outcomes,
  };
}

/** An item as programs get it. */
export function itemMessage({ type, cursor, at, json }: FeedItem): Message {
  // The data is already JSON, shared by all readers.
  return { kind: 'item', type, cursor, body: `${JSON.stringify({ type, at, cursor }).slice(0, -1)},"data":${json}}` };
}
