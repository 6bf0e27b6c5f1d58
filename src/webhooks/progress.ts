/**
 * The progress of webhooks for answers: from the deliverers of this instance, or else from the newest fact read so far, so that
 * a GET works while a store is away. Implements `docs/contract/automation.md#webhooks`.
 */
import { webhookStateOf } from '../domain/webhook/cursors.js';
import type { WebhookState } from '../domain/webhook/webhook.js';
import type { Feed, FeedPlace } from '../feed/port.js';
import type { Clock } from '../kernel/clock.js';
import { ServiceError } from '../kernel/errors.js';
import { limits } from '../kernel/limits.js';
import { createLru } from '../kernel/lru.js';
import { noTries, type Cursors, type Checkpoint } from './cursors.js';
import type { Deliveries } from './deliveries.js';
import type { Delivery, WebhookProgress } from './port.js';

export interface Progress {
  of(webhooks: readonly WebhookState[]): Promise<readonly WebhookProgress[]>;
  /** @throws ServiceError `unavailable` */
  checkpoint(webhook: WebhookState): Promise<Checkpoint>;
  /** How far a place of a webhook is behind the log. @throws ServiceError `unavailable` */
  lag(id: string, place: FeedPlace): Promise<WebhookProgress['lag']>;
}

export interface ProgressDeps {
  readonly feed: Pick<Feed, 'lag'>;
  readonly cursors: Pick<Cursors, 'refresh' | 'newest' | 'checkpoint'>;
  readonly deliveries: Pick<Deliveries, 'newest'>;
  readonly clock: Pick<Clock, 'now'>;
  /** From the webhook's deliverer, if it is on this instance. */
  local(webhook: WebhookState): Checkpoint | undefined;
  readStoreAway(): boolean;
}

export function createProgress(deps: ProgressDeps): Progress {
  const { feed, cursors, deliveries, clock, local, readStoreAway } = deps;
  // Those of deleted webhooks are dropped for those of others.
  const lastShown = createLru<Delivery>(limits.webhooks.inAll);
  /** When the first item after a cursor happened, which never changes. */
  const waiting = createLru<{ readonly cursor: string | null; readonly at: number }>(limits.webhooks.inAll);

  const behindSince = (at: number): WebhookProgress['lag'] => ({
    seconds: Math.max(0, Math.round(clock.now() - at)) / 1000,
    caught_up: false,
  });

  async function lag(id: string, place: FeedPlace): Promise<WebhookProgress['lag']> {
    const known = waiting.get(id);
    if (known?.cursor === place.cursor) return behindSince(known.at);
    const found = await feed.lag(place);
    if (found.caught_up) waiting.delete(id);
    else waiting.set(id, { cursor: place.cursor, at: clock.now() - found.seconds * 1000 });
    return found;
  }

  async function lastDelivery(id: string): Promise<Delivery | null> {
    if (readStoreAway()) return lastShown.get(id) ?? null;
    const [newest = null] = await deliveries.newest(id, 1);
    if (newest === null) lastShown.delete(id);
    else lastShown.set(id, newest);
    return newest;
  }

  async function progressOf(webhook: WebhookState): Promise<WebhookProgress> {
    const fact = cursors.newest(webhook);
    const read = fact?.data.cursor ?? webhook.cursor;
    const checkpoint = local(webhook) ?? (await unlessAway(cursors.checkpoint(webhook), undefined));
    const [found, last_delivery] = await Promise.all([
      checkpoint && unlessAway(lag(webhook.id, checkpoint.place), undefined),
      unlessAway(lastDelivery(webhook.id), lastShown.get(webhook.id) ?? null),
    ]);
    return {
      state: webhookStateOf(webhook, checkpoint?.tries ?? fact?.data ?? noTries(webhook)),
      cursor: checkpoint === undefined ? (read === 'start' ? null : read) : checkpoint.place.cursor,
      lag: found ?? behindSince(fact?.at ?? Date.parse(webhook.updated_at)),
      last_delivery,
    };
  }

  return {
    async of(webhooks) {
      if (!webhooks.every(local)) await unlessAway(cursors.refresh(), undefined);
      return Promise.all(webhooks.map(progressOf));
    },
    async checkpoint(webhook) {
      const known = local(webhook);
      if (known === undefined) await cursors.refresh();
      return known ?? cursors.checkpoint(webhook);
    },
    lag,
  };
}

async function unlessAway<T>(value: Promise<T>, instead: T): Promise<T> {
  try {
    return await value;
  } catch (error) {
    if (error instanceof ServiceError) return instead;
    throw error;
  }
}
