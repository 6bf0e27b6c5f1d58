/**
 * How far webhooks have delivered, as facts in the log. An instance that takes over a webhook starts at its newest fact, or
 * where the webhook's own events say if it has none. Later progress is in the memory of deliverers (`deliverer.ts`). Implements `docs/contract/automation.md#webhooks`, "the log is the outbox".
 */
import { proposedFact, serviceActor } from '../domain/log/fact.js';
import { readEvent } from '../domain/log/upcast.js';
import { webhookCursor, type WebhookCursorMoved, type WebhookTries } from '../domain/webhook/cursors.js';
import type { WebhookState } from '../domain/webhook/webhook.js';
import type { Feed, FeedPlace } from '../feed/port.js';
import { isOfFuture, timestamp, type Clock } from '../kernel/clock.js';
import { ServiceError } from '../kernel/errors.js';
import { isForeign, streams } from '../kernel/event.js';
import type { Ids } from '../kernel/ids.js';
import type { EventStore } from '../storage/event-store.js';
import { tuning } from './tuning.js';

export interface WebhookFact {
  readonly revision: number;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly data: WebhookCursorMoved['data'];
}

/** How far a webhook is, and its failed tries since. */
export interface Checkpoint {
  readonly place: FeedPlace;
  readonly tries: WebhookTries;
}

export interface Cursors {
  /** Reads new facts. @throws ServiceError `unavailable` */
  refresh(): Promise<void>;
  /** The newest valid fact as of the last `refresh`. */
  newest(webhook: WebhookState): WebhookFact | undefined;
  /** According to that fact. @throws ServiceError `unavailable`; `conflict` if this log does not have or know the place */
  checkpoint(webhook: WebhookState): Promise<Checkpoint>;
  /** Writes a fact. @throws ServiceError `unavailable` */
  record(data: WebhookCursorMoved['data']): Promise<void>;
}

export interface CursorsDeps {
  readonly eventStore: Pick<EventStore, 'append' | 'read'>;
  readonly feed: Pick<Feed, 'behind' | 'resolve' | 'resolveMoved'>;
  readonly ids: Ids;
  readonly clock: Pick<Clock, 'now'>;
  /** All webhooks of the fleet. */
  all(): readonly WebhookState[];
}

/** The tries of a webhook without a failure. */
export const noTries = ({ tries_since }: Pick<WebhookState, 'tries_since'>): WebhookTries => ({
  tries_since,
  failures: 0,
  failing_since: null,
  next_at: null,
});

const newestFirst = { direction: 'backward', from: 'end', maxCount: Number.MAX_SAFE_INTEGER } as const;

export function createCursors({ eventStore, feed, ids, clock, all }: CursorsDeps): Cursors {
  const facts = new Map<string, WebhookFact>();
  /** Webhooks whose facts up to this revision are known. */
  let known: ReadonlySet<string> = new Set();
  let read = -1;

  const placeAt = (cursor: string): Promise<FeedPlace> =>
    cursor === 'start' ? feed.resolve('start') : feed.resolveMoved(cursor);

  /** When facts of a webhook begin; 0, for any time, if the clock was ahead when it was created. */
  function createdAt(created: string): number {
    const at = Date.parse(created);
    return isOfFuture(at, clock.now()) ? 0 : at;
  }

  function newest({ id, since }: WebhookState): WebhookFact | undefined {
    const fact = facts.get(id);
    return fact?.data.since === since ? fact : undefined;
  }

  return {
    async refresh() {
      const webhooks = all();
      const missing = new Map(
        webhooks.filter(({ id }) => !known.has(id)).map(({ id, created_at }) => [id, createdAt(created_at)]),
      );
      const from = known.size === 0 ? Number.POSITIVE_INFINITY : read;
      let head = read;
      for await (const event of eventStore.read(streams.webhooks, newestFirst)) {
        head = Math.max(head, event.revision);
        if (isForeign(event)) continue;
        const { revision, metadata } = event;
        const at = Date.parse(metadata.occurred_at);
        // Facts of a webhook are newer than the webhook.
        if (revision <= from && [...missing.values()].every((created) => at < created - tuning.clocksApartMs)) break;
        const { data } = webhookCursor(readEvent(event));
        missing.delete(data.webhook_id);
        if ((facts.get(data.webhook_id)?.revision ?? -1) < revision) facts.set(data.webhook_id, { revision, at, data });
      }
      known = new Set(webhooks.map(({ id }) => id));
      read = Math.max(read, head);
      for (const id of facts.keys()) if (!known.has(id)) facts.delete(id);
    },
    newest,
    async checkpoint(webhook) {
      const fact = newest(webhook);
      if (fact !== undefined) {
        const { cursor, tries_since, failures, failing_since, next_at } = fact.data;
        return { place: await placeAt(cursor), tries: { tries_since, failures, failing_since, next_at } };
      }
      if (clock.now() - Date.parse(webhook.since_at) > tuning.factAgeMs)
        throw new ServiceError('conflict', 'the log does not say how far it has delivered');
      const { cursor, since } = webhook;
      const place = await (cursor === null ? feed.behind(streams.fleet, since) : placeAt(cursor));
      return { place, tries: noTries(webhook) };
    },
    async record(data) {
      const context = { actor: serviceActor, requestId: 'webhooks', at: timestamp(clock.now()) };
      const event = proposedFact({ type: 'WebhookCursorMoved', data }, ids, context);
      const outcome = await eventStore.append(streams.webhooks, 'any', [event]);
      if (outcome.kind !== 'appended')
        throw new ServiceError('unavailable', `a cursor was not recorded: ${outcome.kind}`);
    },
  };
}
