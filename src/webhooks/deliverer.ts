/**
 * Delivers one webhook, on the instance that holds its lease: reads the feed behind the webhook's place, sends one item at a
 * time, and moves the place when the item was answered. The place is in memory; what of it is due becomes a fact in the log
 * before another item is sent. Its loop ends with the lease, with the webhook, or when it is closed.
 * Implements `docs/contract/automation.md#webhooks`.
 */
import { isDeepStrictEqual } from 'node:util';
import type { WebhookCursorMoved } from '../domain/webhook/cursors.js';
import { webhookStateOf } from '../domain/webhook/cursors.js';
import type { WebhookState } from '../domain/webhook/webhook.js';
import { matcherOf } from '../feed/filters.js';
import type { Feed, FeedItem, FeedPlace } from '../feed/port.js';
import { sleep } from '../kernel/background.js';
import type { Clock } from '../kernel/clock.js';
import { timestamp } from '../kernel/clock.js';
import { errorText, ServiceError, unreachable } from '../kernel/errors.js';
import { streams } from '../kernel/event.js';
import { limits } from '../kernel/limits.js';
import type { Logger } from '../kernel/logger.js';
import type { Cursors, Standing, WebhookFact } from './cursors.js';
import { noTries } from './cursors.js';
import type { Deliveries } from './deliveries.js';
import type { Messages } from './messages.js';
import { nextAfter } from './schedule.js';
import { tuning } from './tuning.js';

export interface DelivererDeps {
  readonly id: string;
  /** As it is now; undefined once deleted. */
  webhook(): WebhookState | undefined;
  /** Whether the lease is this instance's. */
  holds(): boolean;
  readonly feed: Pick<Feed, 'behind' | 'read' | 'wait'>;
  readonly cursors: Cursors;
  readonly deliveries: Pick<Deliveries, 'add' | 'forget'>;
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
  /** Where the webhook is, to the item; undefined before it has begun. */
  standing(webhook: WebhookState): Standing | undefined;
  /** Waits a while for the answer to what was sent, and writes down where it came. */
  close(): Promise<void>;
}

/** The items that a webhook gets. */
export const selectionOf = ({ types, filters }: WebhookState) => matcherOf({ types, ...filters });

interface Loaded extends Standing {
  readonly since: number;
  place: FeedPlace;
  tries: Standing['tries'];
  /** The newest fact. */
  recorded: Omit<WebhookFact, 'revision'> | undefined;
}

export function startDeliverer(deps: DelivererDeps): Deliverer {
  const { id, feed, cursors, deliveries, clock, logger } = deps;
  const sending = new AbortController();
  let wake = new AbortController();
  let closed = false;
  let done = false;
  let loaded: Loaded | undefined;

  const ended = (): boolean => closed || !deps.holds();

  async function begin(webhook: WebhookState): Promise<Loaded> {
    const { since } = webhook;
    if (loaded?.since === since) return loaded;
    await cursors.refresh();
    try {
      loaded = { since, ...(await cursors.standing(webhook)), recorded: cursors.newest(webhook) };
      return loaded;
    } catch (error) {
      if (error instanceof ServiceError && error.code === 'conflict' && webhook.enabled && webhook.stopped === null) {
        const cursor = webhook.cursor ?? (await feed.behind(streams.fleet, since)).cursor;
        await deps.stop(webhook, cursor, `${error.message} (resume)`);
      }
      throw error;
    }
  }

  /**
   * Writes the fact if it is due: at a change of state, for a place that has moved after a while, and before it expires.
   * @returns how long to wait at most before the next call
   * @throws ServiceError `unavailable`
   */
  async function record(
    webhook: WebhookState,
    at: Loaded,
    movedMs: number = limits.webhooks.factEveryMs,
  ): Promise<number> {
    const [now, { place, tries, recorded, since }] = [clock.now(), at];
    const cursor = place.cursor ?? 'start';
    const data: WebhookCursorMoved['data'] = {
      webhook_id: id,
      since,
      cursor,
      state: webhookStateOf(webhook, tries),
      ...tries,
    };
    const same = recorded !== undefined && isDeepStrictEqual({ ...recorded.data, cursor }, data);
    const moved = recorded?.data.cursor !== cursor;
    const dueMs = same ? recorded.at + (moved ? movedMs : tuning.factAgeMs) - now : 0;
    if (dueMs <= 0) {
      await cursors.record(data);
      at.recorded = { at: now, data };
    }
    return dueMs > 0 ? Math.min(dueMs, tuning.waitMs) : tuning.waitMs;
  }

  /** @returns whether the next item may follow */
  async function deliver(webhook: WebhookState, at: Loaded, item: FeedItem): Promise<boolean> {
    const { failures, failing_since } = at.tries;
    const { answer, delivery } = await deps.send(webhook, item, failures + 1, sending.signal);
    const next = nextAfter(answer, failures);
    if (next.kind === 'delivered') {
      at.place = { position: item.position, cursor: item.cursor };
      at.tries = noTries(webhook);
    }
    // An answer that did not come because this instance ends is no failure of the receiver.
    else if (ended()) return false;
    await deliveries.add(id, delivery).catch((error: unknown) => {
      logger.warn({ webhook_id: id, error: errorText(error) }, 'a delivery was not recorded');
    });
    const failed = (waitMs: number) => ({
      tries_since: webhook.tries_since,
      failures: failures + 1,
      failing_since: failing_since ?? delivery.at,
      next_at: timestamp(clock.now() + waitMs),
    });
    switch (next.kind) {
      case 'delivered':
        if (!ended()) await record(webhook, at);
        return true;
      case 'retry':
        at.tries = failed(next.waitMs);
        return false;
      case 'stop':
        // If the stop cannot be written, the item is tried once more.
        at.tries = { ...at.tries, next_at: timestamp(clock.now() + tuning.failureMs) };
        await deps.stop(webhook, at.place.cursor, next.reason);
        return false;
      default:
        return unreachable(next);
    }
  }

  async function turn(webhook: WebhookState, signal: AbortSignal): Promise<void> {
    const at = await begin(webhook);
    if (at.tries.tries_since !== webhook.tries_since) at.tries = noTries(webhook);
    const recordMs = await record(webhook, at);
    if (!webhook.enabled || webhook.stopped !== null) return sleep(recordMs, signal);
    const waitMs = Date.parse(at.tries.next_at ?? '') - clock.now();
    if (waitMs > 0) return sleep(Math.min(waitMs, recordMs), signal);
    const select = selectionOf(webhook);
    const [maxItems, maxBytes] = [tuning.readItems, tuning.readBytes];
    const { items, place, caughtUp } = await feed.read(at.place, { maxItems, maxBytes, select, signal });
    for (const item of items) {
      if (signal.aborted || ended() || !(await deliver(webhook, at, item))) return;
    }
    at.place = place;
    if (!caughtUp) return;
    await feed.wait(place, await record(webhook, at), signal);
    if (items.length === 0) await sleep(tuning.gatherMs, signal);
  }

  async function run(): Promise<void> {
    let complaint = '';
    let webhook = deps.webhook();
    for (; webhook !== undefined && !ended(); webhook = deps.webhook()) {
      const { signal } = wake;
      try {
        await turn(webhook, signal);
      } catch (error) {
        if (errorText(error) !== complaint) logger.warn({ webhook_id: id, error: errorText(error) }, 'a webhook waits');
        complaint = errorText(error);
        await sleep(tuning.failureMs, signal);
      }
    }
    if (webhook === undefined) return deliveries.forget(id);
    if (deps.holds() && loaded?.since === webhook.since) await record(webhook, loaded, 0);
  }

  const look = (): void => {
    wake.abort();
    wake = new AbortController();
  };
  const running = run()
    .catch((error: unknown) => {
      logger.warn({ webhook_id: id, error: errorText(error) }, 'what is stored of a webhook is not as it ended');
    })
    .finally(() => {
      done = true;
    });

  return {
    look,
    get done() {
      return done;
    },
    standing: ({ since }) => (loaded?.since === since ? loaded : undefined),
    async close() {
      closed = true;
      look();
      const late = setTimeout(() => sending.abort(), tuning.closeMs);
      await running;
      clearTimeout(late);
    },
  };
}
