/**
 * Where the delivery of a webhook begins: at the place that the read store has; if it was emptied, at the newest fact in the log;
 * without one, where the webhook's own events say. Implements `docs/contract/automation.md#webhooks`, "the log is the outbox".
 */
import type { WebhookState } from '../domain/webhook/webhook.js';
import type { Feed, FeedPlace } from '../feed/port.js';
import { streams } from '../kernel/event.js';
import type { Places, Tries } from './places.js';

export interface Beginning {
  readonly place: FeedPlace;
  readonly tries: Tries;
}

export interface Beginnings {
  /** @throws ServiceError `unavailable`, or `conflict` for a place that this log does not have */
  of(webhook: WebhookState): Promise<Beginning>;
  /** Where the webhook's own events say. @throws as the other */
  own(webhook: WebhookState): Promise<FeedPlace>;
}

type BeginningFeed = Pick<Feed, 'behind' | 'resolve' | 'resolveMoved'>;

/**
 * @param webhooks those of the start: of a later one, the read store has a place unless it has none yet
 * @throws ServiceError `unavailable`
 */
export async function readBeginnings(
  webhooks: readonly WebhookState[],
  feed: BeginningFeed,
  places: Pick<Places, 'get' | 'facts'>,
): Promise<Beginnings> {
  const stored = await Promise.all(webhooks.map(places.get));
  const missing = webhooks.filter((_, index) => stored[index]?.place === undefined);
  const began = await Promise.all(missing.map(({ since }) => feed.behind(streams.fleet, since)));
  const facts = await places.facts(missing, Math.min(...began.map(({ position }) => position)));

  function own({ cursor, since }: WebhookState): Promise<FeedPlace> {
    if (cursor === null) return feed.behind(streams.fleet, since);
    return cursor === 'start' ? feed.resolve('start') : feed.resolveMoved(cursor);
  }

  return {
    own,
    async of(webhook) {
      const { place, tries } = await places.get(webhook);
      if (place !== undefined) return { place, tries };
      const fact = facts.get(webhook.id);
      if (fact?.since !== webhook.since) return { place: await own(webhook), tries };
      const { cursor, at } = fact;
      return { place: await feed.resolveMoved(cursor), tries: { ...tries, fact_cursor: cursor, fact_at: at } };
    },
  };
}
