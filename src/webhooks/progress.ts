/**
 * How far webhooks are, for answers: from the deliverers of this instance, else from the read store, else as it was answered
 * last, so that a GET works while a store is away. Implements `docs/contract/automation.md#webhooks`.
 */
import type { WebhookState } from '../domain/webhook/webhook.js';
import type { Feed, FeedPlace } from '../feed/port.js';
import type { Clock } from '../kernel/clock.js';
import { ServiceError } from '../kernel/errors.js';
import type { BeginningOf } from './beginnings.js';
import type { Deliverer } from './deliverer.js';
import type { Places } from './places.js';
import type { WebhookProgress } from './port.js';

export interface Standing {
  readonly place: FeedPlace;
  /** Whether the last try failed. */
  readonly failing: boolean;
}

export interface Progress {
  of(webhooks: readonly WebhookState[]): Promise<readonly WebhookProgress[]>;
  /** @throws ServiceError `unavailable` */
  standing(webhook: WebhookState): Promise<Standing>;
  /** How far a place of a webhook is behind the log. @throws ServiceError `unavailable` */
  lag(id: string, place: FeedPlace): Promise<WebhookProgress['lag']>;
  forget(id: string): void;
}

export interface ProgressDeps {
  readonly feed: Pick<Feed, 'lag'>;
  readonly places: Pick<Places, 'deliveries'>;
  readonly beginningOf: BeginningOf;
  readonly clock: Pick<Clock, 'now'>;
  /** The deliverer of a webhook on this instance. */
  deliverer(id: string): Deliverer | undefined;
  readStoreAway(): boolean;
}

export function createProgress(deps: ProgressDeps): Progress {
  const { feed, places, beginningOf, clock, deliverer, readStoreAway } = deps;
  const last = new Map<string, WebhookProgress>();
  /** When the first item behind a cursor happened: it stays the first. */
  const waiting = new Map<string, { readonly cursor: string | null; readonly at: number }>();

  async function standing(webhook: WebhookState): Promise<Standing> {
    const known = deliverer(webhook.id)?.known();
    if (known?.since === webhook.since) return known;
    if (readStoreAway()) throw new ServiceError('unavailable', 'the read store is out of reach');
    const { place, tries } = await beginningOf(webhook);
    return { place, failing: tries.tries_since === webhook.tries_since && tries.failures > 0 };
  }

  async function lag(id: string, place: FeedPlace): Promise<WebhookProgress['lag']> {
    const known = waiting.get(id);
    if (known?.cursor === place.cursor) return behindSince(known.at);
    const found = await feed.lag(place);
    if (found.caught_up) waiting.delete(id);
    else waiting.set(id, { cursor: place.cursor, at: clock.now() - found.seconds * 1000 });
    return found;
  }

  const behindSince = (at: number): WebhookProgress['lag'] => ({
    seconds: Math.max(0, Math.round(clock.now() - at)) / 1000,
    caught_up: false,
  });

  async function lastDelivery(id: string): Promise<WebhookProgress['last_delivery']> {
    if (readStoreAway()) return last.get(id)?.last_delivery ?? null;
    const [newest = null] = await places.deliveries(id, 1);
    return newest;
  }

  async function progressOf(webhook: WebhookState): Promise<WebhookProgress> {
    const { id } = webhook;
    const before = last.get(id);
    const unlessAway = <T>(value: Promise<T>, instead: T): Promise<T> =>
      value.catch((error: unknown) => {
        if (error instanceof ServiceError) return instead;
        throw error;
      });
    const own = { position: -1, cursor: before?.cursor ?? (webhook.cursor === 'start' ? null : webhook.cursor) };
    const [{ place, failing }, last_delivery] = await Promise.all([
      unlessAway(standing(webhook), { place: own, failing: before?.state === 'failing' }),
      unlessAway(lastDelivery(id), before?.last_delivery ?? null),
    ]);
    const found =
      place === own ? undefined : await unlessAway<WebhookProgress['lag'] | undefined>(lag(id, place), undefined);
    const progress: WebhookProgress = {
      state: stateOf(webhook, failing),
      cursor: place.cursor,
      lag: found ?? before?.lag ?? behindSince(Date.parse(webhook.updated_at)),
      last_delivery,
    };
    last.set(id, progress);
    return progress;
  }

  return {
    of: (webhooks) => Promise.all(webhooks.map(progressOf)),
    standing,
    lag,
    forget(id) {
      last.delete(id);
      waiting.delete(id);
    },
  };
}

export function stateOf({ enabled, stopped }: WebhookState, failing: boolean): WebhookProgress['state'] {
  if (!enabled) return 'disabled';
  if (stopped !== null) return 'stopped';
  return failing ? 'failing' : 'ok';
}
