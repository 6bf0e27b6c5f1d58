/**
 * Delivers one webhook, on the instance that holds its lease: reads the feed behind the webhook's place, sends one item at a
 * time, and moves the place when the item was answered. Its loop ends with the lease, with the webhook, or when it is closed.
 * Implements `docs/contract/automation.md#webhooks`.
 */
import type { WebhookState } from '../domain/webhook/webhook.js';
import { matcherOf } from '../feed/filters.js';
import type { Feed, FeedItem, FeedPlace } from '../feed/port.js';
import { sleep } from '../kernel/background.js';
import type { Clock } from '../kernel/clock.js';
import { errorText, ServiceError, unreachable } from '../kernel/errors.js';
import { limits } from '../kernel/limits.js';
import type { Logger } from '../kernel/logger.js';
import { backoff, storeRetry } from '../kernel/retry.js';
import type { Places, Tries } from './places.js';
import type { Beginning, BeginningOf } from './beginnings.js';
import type { Messages } from './messages.js';
import { nextAfter } from './schedule.js';
import { tuning } from './tuning.js';

export interface DelivererDeps {
  readonly id: string;
  /** As it is now; undefined once deleted. */
  webhook(): WebhookState | undefined;
  /** Whether the lease is this instance's. */
  holds(): boolean;
  readonly feed: Pick<Feed, 'read' | 'wait'>;
  readonly places: Places;
  readonly beginningOf: BeginningOf;
  readonly send: Messages['sendItem'];
  /** Stops the webhook, unless it was changed since. @throws ServiceError */
  stop(webhook: WebhookState, cursor: string | null, reason: string): Promise<void>;
  /** `now` is the same on every instance. */
  readonly clock: Clock;
  readonly logger: Logger;
}

export interface Deliverer {
  /** The webhook may have changed, or the lease: the loop looks at once. */
  look(): void;
  /** True once its loop has ended. */
  readonly done: boolean;
  /** What it knows to the item; undefined before it has begun. */
  known(): { readonly since: number; readonly place: FeedPlace; readonly failing: boolean } | undefined;
  /** Stores a place that moved without a delivery, and writes the fact when it is due. @throws ServiceError */
  keep(): Promise<void>;
  /** Waits a while for the answer to what was sent. */
  close(): Promise<void>;
}

/** The items that a webhook gets. */
export const selectionOf = ({ types, filters }: WebhookState) => matcherOf({ types, ...filters });

interface Loaded {
  readonly since: number;
  place: FeedPlace;
  /** The place that the read store has. */
  stored: FeedPlace;
  tries: Tries;
}

export function startDeliverer(deps: DelivererDeps): Deliverer {
  const { id, feed, places, clock, logger } = deps;
  const sending = new AbortController();
  let wake = new AbortController();
  let closed = false;
  let done = false;
  let loaded: Loaded | undefined;

  const ended = (): boolean => closed || !deps.holds();

  /** Where it begins; a webhook whose place this log does not have is stopped. @throws ServiceError */
  async function placeOf(webhook: WebhookState): Promise<Beginning> {
    try {
      return await deps.beginningOf(webhook);
    } catch (error) {
      const lost = error instanceof ServiceError && error.code === 'conflict' && webhook.stopped === null;
      if (lost && webhook.enabled) await deps.stop(webhook, webhook.cursor, `${error.message} (resume)`);
      throw error;
    }
  }

  async function begin(webhook: WebhookState): Promise<Loaded> {
    if (loaded?.since === webhook.since) return loaded;
    const { place, tries } = await placeOf(webhook);
    loaded = { since: webhook.since, place, stored: place, tries };
    await places.savePlace(webhook, place);
    return loaded;
  }

  async function saveTries(at: Loaded, changes: Partial<Tries>): Promise<void> {
    at.tries = { ...at.tries, ...changes };
    await places.saveTries(id, at.tries);
  }

  /** Moves the place behind an item that was answered: without that no other item is sent. */
  async function moveBehind(webhook: WebhookState, at: Loaded, item: FeedItem): Promise<void> {
    at.place = { position: item.position, cursor: item.cursor };
    for (let attempt = 0; !ended() || attempt === 0; attempt += 1) {
      try {
        await places.savePlace(webhook, at.place);
        at.stored = at.place;
        return;
      } catch (error) {
        if (attempt === 0)
          logger.warn({ webhook_id: id, error: errorText(error) }, 'a webhook waits for the read store');
        await sleep(backoff(storeRetry, attempt), wake.signal);
      }
    }
  }

  /** @returns whether the next item may follow */
  async function deliver(webhook: WebhookState, at: Loaded, item: FeedItem): Promise<boolean> {
    const { failures } = at.tries;
    const { answer, delivery } = await deps.send(webhook, item, failures + 1, sending.signal);
    const next = nextAfter(answer, failures);
    if (next.kind === 'delivered') await moveBehind(webhook, at, item);
    // An answer that did not come because this instance ends is no failure of the receiver.
    else if (ended()) return false;
    await places.addDelivery(id, delivery).catch((error: unknown) => {
      logger.warn({ webhook_id: id, error: errorText(error) }, 'a delivery was not recorded');
    });
    switch (next.kind) {
      case 'delivered':
        if (failures > 0) await saveTries(at, { failures: 0, next_at: 0 });
        return true;
      case 'retry':
        await saveTries(at, { failures: failures + 1, next_at: clock.now() + next.waitMs });
        return false;
      case 'stop':
        // If the stop cannot be written, the item is tried once more.
        at.tries = { ...at.tries, next_at: clock.now() + tuning.failureMs };
        await deps.stop(webhook, at.place.cursor, next.reason);
        return false;
      default:
        return unreachable(next);
    }
  }

  async function turn(webhook: WebhookState, signal: AbortSignal): Promise<void> {
    const at = await begin(webhook);
    if (!webhook.enabled || webhook.stopped !== null) return sleep(tuning.waitMs, signal);
    if (at.tries.tries_since !== webhook.tries_since) {
      await saveTries(at, { tries_since: webhook.tries_since, failures: 0, next_at: 0 });
    }
    const waitMs = at.tries.next_at - clock.now();
    if (waitMs > 0) return sleep(Math.min(waitMs, tuning.waitMs), signal);
    const select = selectionOf(webhook);
    const [maxItems, maxBytes] = [tuning.readItems, tuning.readBytes];
    const { items, place, caughtUp } = await feed.read(at.place, { maxItems, maxBytes, select, signal });
    for (const item of items) {
      if (signal.aborted || ended() || !(await deliver(webhook, at, item))) return;
    }
    at.place = place;
    if (!caughtUp) return;
    await feed.wait(place, tuning.waitMs, signal);
    if (items.length === 0) await sleep(tuning.gatherMs, signal);
  }

  async function run(): Promise<void> {
    let complaint = '';
    while (!ended()) {
      const { signal } = wake;
      const webhook = deps.webhook();
      if (webhook === undefined) return;
      try {
        await turn(webhook, signal);
      } catch (error) {
        if (errorText(error) !== complaint) logger.warn({ webhook_id: id, error: errorText(error) }, 'a webhook waits');
        complaint = errorText(error);
        await sleep(tuning.failureMs, signal);
      }
    }
  }

  const look = (): void => {
    wake.abort();
    wake = new AbortController();
  };
  const running = run().finally(() => {
    done = true;
  });

  return {
    look,
    get done() {
      return done;
    },
    known() {
      if (loaded === undefined) return undefined;
      const { since, place, tries } = loaded;
      return { since, place, failing: tries.failures > 0 };
    },
    async keep() {
      const [webhook, at] = [deps.webhook(), loaded];
      if (webhook === undefined || at === undefined || at.since !== webhook.since || ended()) return;
      const { place } = at;
      if (place !== at.stored) {
        await places.savePlace(webhook, place);
        at.stored = place;
      }
      const { fact_cursor, fact_state, fact_at, failures } = at.tries;
      const state = failures > 0 ? 'failing' : 'ok';
      const moved = place.cursor !== fact_cursor || state !== fact_state;
      const due = fact_at + (moved ? limits.webhooks.factEveryMs : tuning.factAgeMs);
      if (place.cursor === null || clock.now() < due) return;
      const now = clock.now();
      await places.record({ webhook_id: id, since: at.since, cursor: place.cursor, state }, now);
      await saveTries(at, { fact_cursor: place.cursor, fact_state: state, fact_at: now });
    },
    async close() {
      closed = true;
      look();
      const late = setTimeout(() => sending.abort(), tuning.closeMs);
      await running;
      clearTimeout(late);
    },
  };
}
