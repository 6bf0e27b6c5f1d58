/**
 * The webhooks of an instance: a deliverer for each held lease, pings, and the progress of all webhooks.
 * Implements `docs/contract/automation.md#webhooks`.
 */
import { webhookStateOf, webhookStates } from '../domain/webhook/cursors.js';
import type { WebhookState } from '../domain/webhook/webhook.js';
import type { Feed } from '../feed/port.js';
import { sleep, startLoop } from '../kernel/background.js';
import type { Clock } from '../kernel/clock.js';
import { errorText, ServiceError } from '../kernel/errors.js';
import type { Ids } from '../kernel/ids.js';
import { limits } from '../kernel/limits.js';
import { logsWarning, type Logger } from '../kernel/logger.js';
import type { Keyring } from '../security/keyring.js';
import type { EventStore } from '../storage/event-store.js';
import type { ReadStore } from '../storage/read-store.js';
import { addressJudge } from './addresses.js';
import { createCursors, noTries, type Checkpoint } from './cursors.js';
import { startDeliverer, type Deliverer } from './deliverer.js';
import { openDeliveries, type Deliveries } from './deliveries.js';
import { createDeliveryLeases, type DeliveryLeases } from './leases.js';
import { createMailer, type MailServer } from './mail.js';
import { createMessages, type Messages } from './messages.js';
import type { Webhooks } from './port.js';
import { createProgress, type Progress } from './progress.js';
import { createSender, type SenderDeps } from './send.js';
import { nextShipments } from './shipments.js';
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
  readonly slot: string | undefined;
  /** CIDRs of `SVC_WEBHOOK_ALLOW`. */
  readonly allow: readonly string[];
  /** `SVC_SMTP_URL`; undefined: no mail is sent. */
  readonly mail: MailServer | undefined;
  /** `SVC_PUBLIC_URL`. */
  readonly publicUrl: string | null;
  /** All webhooks of the fleet. */
  all(): readonly WebhookState[];
  webhook(id: string): WebhookState | undefined;
  /** Calls back when the fleet has changed. @returns how to stop */
  onChange(listener: () => void): () => void;
  /** Why this instance may not act now; undefined if it may. */
  readOnly(): string | undefined;
  readStoreAway(): boolean;
  /** For tests. */
  readonly lookup?: SenderDeps['lookup'] | undefined;
  /** Stops a webhook. @throws ServiceError */
  stop(webhook: WebhookState, cursor: string | null, reason: string): Promise<void>;
}

export interface WebhookService extends Webhooks {
  /** @throws ServiceError `unavailable` */
  checkpoint(webhook: WebhookState): Promise<Checkpoint>;
  /**
   * The cursor behind the message of a webhook that failed last, else behind its next one; null if there is none.
   * @throws ServiceError `unavailable`
   */
  behindNext(webhook: WebhookState): Promise<string | null>;
  /** Webhooks delivered here, by state. */
  states(): ReadonlyMap<string, number>;
  /** Tries since the start, by outcome. */
  outcomes(): ReadonlyMap<string, number>;
  /** The largest lag of the running webhooks delivered here, in seconds. */
  lagSeconds(): number;
  close(): Promise<void>;
}

/** Starts and ends deliverers as leases come and go, until closed. */
function superviseDeliverers(deps: WebhooksDeps, leases: DeliveryLeases, start: (id: string) => Deliverer) {
  const { all, logger } = deps;
  const running = new Map<string, Deliverer>();
  const ending = new AbortController();
  let wake = new AbortController();

  async function turn(): Promise<void> {
    await leases.turn(all().map(({ id }) => id));
    const over = [...running].filter(([id, deliverer]) => deliverer.done || !leases.holds(id));
    for (const [id] of over) running.delete(id);
    // Together, because other leases could expire meanwhile.
    await Promise.all(over.map(([, deliverer]) => deliverer.close()));
    for (const { id } of all()) if (leases.holds(id) && !running.has(id)) running.set(id, start(id));
  }

  async function lead(): Promise<void> {
    while (!ending.signal.aborted) {
      wake = new AbortController();
      try {
        if (deps.readOnly() === undefined) await turn();
      } catch (error) {
        logger.warn({ error: errorText(error) }, 'the leases of webhooks could not be updated');
      }
      await sleep(tuning.leaseEveryMs, wake.signal);
    }
  }
  const leading = lead();

  let seen = all();
  const stopListening = deps.onChange(() => {
    const now = all();
    if (now.length === seen.length && now.every((webhook, index) => webhook === seen[index])) return;
    seen = now;
    for (const deliverer of running.values()) deliverer.look();
    wake.abort();
  });

  return {
    running: running as ReadonlyMap<string, Deliverer>,
    async close(): Promise<void> {
      ending.abort();
      wake.abort();
      stopListening();
      await leading;
      await Promise.all([...running.values()].map((deliverer) => deliverer.close()));
    },
  };
}

/** @returns sends a ping now, a bounded number at a time @throws ServiceError `not_found`, `rate_limited` */
function createPing(
  { webhook: find, logger }: WebhooksDeps,
  messages: Messages,
  deliveries: Deliveries,
  signal: AbortSignal,
): WebhookService['ping'] {
  let pings = 0;
  return async (id) => {
    const webhook = find(id);
    if (webhook === undefined) throw new ServiceError('not_found', `there is no webhook ${id}`);
    if (pings >= tuning.pings) {
      const hints = { retryAfterSeconds: limits.webhooks.tryMs / 1000 };
      throw new ServiceError('rate_limited', `at most ${tuning.pings} pings at a time; try again later`, { hints });
    }
    pings += 1;
    try {
      const { delivery } = await messages.ping(webhook, signal);
      await deliveries.add(id, delivery).catch(logsWarning(logger, 'a ping was not recorded', { webhook_id: id }));
      return delivery;
    } finally {
      pings -= 1;
    }
  };
}

/** Measures the largest lag of the running webhooks, until closed. */
function watchLag(
  { webhook: find, clock, logger }: WebhooksDeps,
  deliverers: ReadonlyMap<string, Deliverer>,
  lagOf: Progress['lag'],
) {
  let seconds = 0;
  async function measure(): Promise<void> {
    let largest = 0;
    for (const [id, deliverer] of deliverers) {
      const webhook = find(id);
      if (webhook?.enabled !== true || webhook.stopped !== null) continue;
      const checkpoint = deliverer.checkpoint(webhook);
      // A webhook whose place cannot be read is late by at least the time since its deliverer started.
      const triedSeconds = (clock.monotonic() - deliverer.startedAt) / 1000;
      const late = checkpoint === undefined ? triedSeconds : (await lagOf(id, checkpoint.place)).seconds;
      largest = Math.max(largest, late);
    }
    seconds = largest;
  }
  const loop = startLoop(tuning.measureEveryMs, measure, logsWarning(logger, 'the lag of webhooks cannot be measured'));
  return { seconds: () => seconds, close: loop.close };
}

/** Starts delivering. @throws ServiceError `unavailable` */
export async function createWebhooks(deps: WebhooksDeps): Promise<WebhookService> {
  const { eventStore, readStore, feed, keyring, ids, clock, logger, instanceId, slot, all, webhook: find } = deps;
  const mayDial = addressJudge(deps.allow);
  const cursors = createCursors({ eventStore, feed, ids, clock, all });
  const deliveries = await openDeliveries(readStore, ids, clock);
  const leases = createDeliveryLeases({ leases: readStore.leases, instanceId, slot, clock });
  const sender = createSender({ mayDial, clock, lookup: deps.lookup });
  const mailer = deps.mail && createMailer(deps.mail);
  const messages = createMessages({ sender, mailer, keyring, clock, ids });
  const shipping = { feed, clock, publicUrl: deps.publicUrl };
  const progress = createProgress({
    feed,
    cursors,
    deliveries,
    clock,
    local: (webhook) => deliverers.get(webhook.id)?.checkpoint(webhook),
    readStoreAway: deps.readStoreAway,
  });
  const ending = new AbortController();

  const start = (id: string): Deliverer =>
    startDeliverer({
      id,
      webhook: () => find(id),
      holds: () => leases.holds(id) && deps.readOnly() === undefined,
      feed,
      cursors,
      deliveries,
      send: messages.send,
      next: (webhook, from, signal) => nextShipments(shipping, webhook, from, signal),
      stop: deps.stop,
      clock,
      logger,
    });

  const { running: deliverers, ...supervision } = superviseDeliverers(deps, leases, start);

  const lag = watchLag(deps, deliverers, progress.lag);
  const removing = startLoop(
    tuning.removeGoneEveryMs,
    () => deliveries.removeGone((id) => deps.readOnly() === undefined && find(id) === undefined),
    logsWarning(logger, 'deliveries of deleted webhooks could not be removed'),
  );

  return {
    mayDial,
    progress: progress.of,
    checkpoint: progress.checkpoint,
    deliveries: (id) => deliveries.newest(id, limits.webhooks.deliveries),
    async behindNext(webhook) {
      let { place } = await progress.checkpoint(webhook);
      const tries = await deliveries.newest(webhook.id, limits.webhooks.deliveries).catch(() => []);
      // Of a window, earlier messages may have been delivered. A ping has no cursor.
      const tried = tries.find(({ cursor }) => cursor !== null)?.cursor;
      for (;;) {
        const next = await nextShipments(shipping, webhook, place, ending.signal);
        const [first] = next.shipments;
        if (first !== undefined) {
          const failed = first.messages.findIndex(({ cursor }) => cursor === tried);
          return (first.behindEach[Math.max(0, failed)] ?? first.behind).cursor;
        }
        if (next.caughtUp || ending.signal.aborted) return null;
        place = next.place;
      }
    },
    ping: createPing(deps, messages, deliveries, ending.signal),
    states() {
      const states = new Map<string, number>(webhookStates.map((state) => [state, 0]));
      for (const [id, deliverer] of deliverers) {
        const webhook = find(id);
        if (webhook === undefined) continue;
        const state = webhookStateOf(webhook, deliverer.checkpoint(webhook)?.tries ?? noTries(webhook));
        states.set(state, (states.get(state) ?? 0) + 1);
      }
      return states;
    },
    outcomes: messages.outcomes,
    lagSeconds: lag.seconds,
    async close() {
      ending.abort();
      await Promise.all([supervision.close(), lag.close(), removing.close()]);
      await leases.close().catch(logsWarning(logger, 'the leases of webhooks could not be released'));
      sender.close();
    },
  };
}
