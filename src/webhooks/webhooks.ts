/**
 * The webhooks of an instance: a deliverer for each whose lease it holds, pings, and what answers show of all of them.
 * Implements `docs/contract/automation.md#webhooks`.
 */
import { webhookStateOf, webhookStates } from '../domain/webhook/cursors.js';
import type { WebhookState } from '../domain/webhook/webhook.js';
import type { Feed, FeedItem } from '../feed/port.js';
import { sleep, startLoop } from '../kernel/background.js';
import type { Clock } from '../kernel/clock.js';
import { errorText, ServiceError } from '../kernel/errors.js';
import type { Ids } from '../kernel/ids.js';
import { limits } from '../kernel/limits.js';
import type { Logger } from '../kernel/logger.js';
import type { Keyring } from '../security/keyring.js';
import type { EventStore } from '../storage/event-store.js';
import type { ReadStore } from '../storage/read-store.js';
import { addressJudge } from './addresses.js';
import type { Standing } from './cursors.js';
import { createCursors, noTries } from './cursors.js';
import type { Deliverer } from './deliverer.js';
import { selectionOf, startDeliverer } from './deliverer.js';
import { openDeliveries } from './deliveries.js';
import { createDeliveryLeases } from './leases.js';
import { createMessages } from './messages.js';
import type { Webhooks } from './port.js';
import { createProgress } from './progress.js';
import { createSender } from './send.js';
import type { SenderDeps } from './send.js';
import { tuning } from './tuning.js';

export interface WebhooksDeps {
  readonly eventStore: Pick<EventStore, 'append' | 'read'>;
  readonly readStore: Pick<ReadStore, 'collection' | 'leases'>;
  readonly feed: Feed;
  readonly keyring: Pick<Keyring, 'open'>;
  readonly ids: Ids;
  /** `now` is the same on every instance. */
  readonly clock: Clock;
  readonly logger: Logger;
  readonly instanceId: string;
  /** See `DeliveryLeasesDeps`. */
  readonly station: string | undefined;
  /** CIDRs of `SVC_WEBHOOK_ALLOW`. */
  readonly allow: readonly string[];
  /** All of the fleet. */
  all(): readonly WebhookState[];
  webhook(id: string): WebhookState | undefined;
  /** Calls back when the fleet has changed. @returns how to stop */
  onChange(listener: () => void): () => void;
  /** Why this instance may not act now. */
  readOnly(): string | undefined;
  readStoreAway(): boolean;
  /** For tests: instead of the system's. */
  readonly lookup?: SenderDeps['lookup'] | undefined;
  /** Stops a webhook. @throws ServiceError */
  stop(webhook: WebhookState, cursor: string | null, reason: string): Promise<void>;
}

export interface WebhookService extends Webhooks {
  /** @throws ServiceError `unavailable` */
  standing(webhook: WebhookState): Promise<Standing>;
  /** The first item behind the place of a webhook that its filters let through. @throws ServiceError `unavailable` */
  nextItem(webhook: WebhookState): Promise<FeedItem | undefined>;
  /** The webhooks that are delivered here, by state. */
  states(): ReadonlyMap<string, number>;
  /** Tries since the start, by outcome. */
  outcomes(): ReadonlyMap<string, number>;
  /** The largest lag of those that are delivered here, in seconds, without stopped and disabled ones. */
  lagSeconds(): number;
  close(): Promise<void>;
}

/** Begins to deliver. @throws ServiceError `unavailable` */
export async function createWebhooks(deps: WebhooksDeps): Promise<WebhookService> {
  const { eventStore, readStore, feed, keyring, ids, clock, logger, instanceId, station, all, webhook: find } = deps;
  const mayDial = addressJudge(deps.allow);
  const cursors = createCursors({ eventStore, feed, ids, clock, all });
  const deliveries = await openDeliveries(readStore, ids);
  const leases = createDeliveryLeases({ leases: readStore.leases, instanceId, station, clock });
  const sender = createSender({ mayDial, clock, lookup: deps.lookup });
  const messages = createMessages({ sender, keyring, clock, ids });
  const deliverers = new Map<string, Deliverer>();
  const progress = createProgress({
    feed,
    cursors,
    deliveries,
    clock,
    delivered: (webhook) => deliverers.get(webhook.id)?.standing(webhook),
    readStoreAway: deps.readStoreAway,
  });
  const ending = new AbortController();
  let wake = new AbortController();

  const begin = (id: string): Deliverer =>
    startDeliverer({
      id,
      webhook: () => find(id),
      holds: () => leases.holds(id) && deps.readOnly() === undefined,
      feed,
      cursors,
      deliveries,
      send: messages.sendItem,
      stop: deps.stop,
      clock,
      logger,
    });

  /** Deliverers for what this instance holds, and for nothing else. */
  async function deliverHeld(): Promise<void> {
    await leases.turn(all().map(({ id }) => id));
    const over = [...deliverers].filter(([id, deliverer]) => deliverer.done || !leases.holds(id));
    for (const [id] of over) {
      deliverers.delete(id);
      progress.forget(id);
    }
    // All at once: the leases of the others would end meanwhile.
    await Promise.all(over.map(([, deliverer]) => deliverer.close()));
    for (const { id } of all()) if (leases.holds(id) && !deliverers.has(id)) deliverers.set(id, begin(id));
  }

  async function lead(): Promise<void> {
    while (!ending.signal.aborted) {
      wake = new AbortController();
      try {
        if (deps.readOnly() === undefined) await deliverHeld();
      } catch (error) {
        logger.warn({ error: errorText(error) }, 'the leases of webhooks wait for the read store');
      }
      await sleep(tuning.leaseEveryMs, AbortSignal.any([wake.signal, ending.signal]));
    }
  }
  const leading = lead();

  let seen = all();
  const stopListening = deps.onChange(() => {
    const now = all();
    if (now.length === seen.length && now.every((webhook, index) => webhook === seen[index])) return;
    seen = now;
    for (const deliverer of deliverers.values()) deliverer.look();
    wake.abort();
  });

  let lagSeconds = 0;
  const measuring = startLoop(
    tuning.measureEveryMs,
    async () => {
      let largest = 0;
      for (const [id, deliverer] of deliverers) {
        const webhook = find(id);
        const standing = webhook && deliverer.standing(webhook);
        if (standing === undefined || webhook?.enabled !== true || webhook.stopped !== null) continue;
        largest = Math.max(largest, (await progress.lag(id, standing.place)).seconds);
      }
      lagSeconds = largest;
    },
    (error) => logger.warn({ error: errorText(error) }, 'the lag of webhooks cannot be measured'),
  );

  let pings = 0;
  return {
    mayDial,
    progress: progress.of,
    standing: progress.standing,
    deliveries: (id) => deliveries.newest(id, limits.webhooks.deliveries),
    async nextItem(webhook) {
      let { place } = await progress.standing(webhook);
      for (;;) {
        const batch = await feed.read(place, { maxItems: 1, select: selectionOf(webhook), signal: ending.signal });
        const [item] = batch.items;
        if (item !== undefined || batch.caughtUp || ending.signal.aborted) return item;
        place = batch.place;
      }
    },
    async ping(id) {
      const webhook = find(id);
      if (webhook === undefined) throw new ServiceError('not_found', `there is no webhook ${id}`);
      if (pings >= tuning.pings) {
        const hints = { retryAfterSeconds: limits.webhooks.tryMs / 1000 };
        throw new ServiceError('rate_limited', `at most ${tuning.pings} pings at a time; try again later`, { hints });
      }
      pings += 1;
      try {
        const { delivery } = await messages.ping(webhook, ending.signal);
        // The answer has it, whether it could be stored or not.
        await deliveries.add(id, delivery).catch((error: unknown) => {
          logger.warn({ webhook_id: id, error: errorText(error) }, 'a ping was not recorded');
        });
        return delivery;
      } finally {
        pings -= 1;
      }
    },
    states() {
      const states = new Map<string, number>(webhookStates.map((state) => [state, 0]));
      for (const [id, deliverer] of deliverers) {
        const webhook = find(id);
        if (webhook === undefined) continue;
        const state = webhookStateOf(webhook, deliverer.standing(webhook)?.tries ?? noTries(webhook));
        states.set(state, (states.get(state) ?? 0) + 1);
      }
      return states;
    },
    outcomes: messages.outcomes,
    lagSeconds: () => lagSeconds,
    async close() {
      ending.abort();
      stopListening();
      await Promise.all([leading, measuring.close()]);
      await Promise.all([...deliverers.values()].map((deliverer) => deliverer.close()));
      await leases.close().catch((error: unknown) => {
        logger.warn({ error: errorText(error) }, 'the leases of webhooks end by themselves');
      });
      sender.close();
    },
  };
}
