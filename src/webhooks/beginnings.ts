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

/** @throws ServiceError `unavailable`, or `conflict` for a place that this log does not have */
export type BeginningOf = (webhook: WebhookState) => Promise<Beginning>;

export function beginningsOf(
  feed: Pick<Feed, 'behind' | 'resolve' | 'resolveMoved'>,
  places: Pick<Places, 'get' | 'fact'>,
): BeginningOf {
  function own({ cursor, since }: WebhookState): Promise<FeedPlace> {
    if (cursor === null) return feed.behind(streams.fleet, since);
    return cursor === 'start' ? feed.resolve('start') : feed.resolveMoved(cursor);
  }

  return async (webhook) => {
    const { place, tries } = await places.get(webhook);
    if (place !== undefined) return { place, tries };
    const event = await feed.behind(streams.fleet, webhook.since);
    // The read store may be emptied while the service runs, so the fact is looked for now.
    const fact = await places.fact(webhook, event.position);
    if (fact !== undefined) {
      const recorded = { fact_cursor: fact.cursor, fact_at: fact.at };
      return { place: await feed.resolveMoved(fact.cursor), tries: { ...tries, ...recorded } };
    }
    const begin = await own(webhook);
    // Its own events say so in the log.
    const recorded = { fact_cursor: begin.cursor, fact_at: Date.parse(webhook.updated_at) };
    return { place: begin, tries: { ...tries, ...recorded } };
  };
}
