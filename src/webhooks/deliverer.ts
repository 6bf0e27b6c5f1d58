/**
 * Delivers one webhook on the instance that holds its lease: reads the feed after the webhook's checkpoint, sends one item at a
 * time, and advances the checkpoint after each success. The checkpoint is in memory; before the next item is sent, it becomes a
 * fact in the log if that is due. The loop ends with the lease, with the webhook, or with `close`.
 * Implements `docs/contract/automation.md#webhooks`.
 */
import { isDeepStrictEqual } from 'node:util';
import { webhookStateOf, type WebhookCursorMoved } from '../domain/webhook/cursors.js';
import { sendsAlike, type WebhookState } from '../domain/webhook/webhook.js';
import type { Feed, FeedPlace } from '../feed/port.js';
import { sleep } from '../kernel/background.js';
import { isOfFuture, timestamp, type Clock } from '../kernel/clock.js';
import { errorText, ServiceError, unreachable } from '../kernel/errors.js';
import { streams } from '../kernel/event.js';
import { limits } from '../kernel/limits.js';
import { logsWarning, type Logger } from '../kernel/logger.js';
import { noTries, type Cursors, type Checkpoint, type WebhookFact } from './cursors.js';
import type { Deliveries } from './deliveries.js';
import type { Message, Messages } from './messages.js';
import { nextAfter } from './schedule.js';
import type { Shipment, Shipments } from './shipments.js';
import { tuning } from './tuning.js';

export interface DelivererDeps {
  readonly id: string;
  /** The webhook's current state; undefined once deleted. */
  webhook(): WebhookState | undefined;
  /** Whether this instance holds the lease. */
  holds(): boolean;
  readonly feed: Pick<Feed, 'behind' | 'wait'>;
  readonly cursors: Cursors;
  readonly deliveries: Pick<Deliveries, 'add' | 'forget'>;
  readonly send: Messages['send'];
  /** See `nextShipments`. */
  next(webhook: WebhookState, from: FeedPlace, signal: AbortSignal): Promise<Shipments>;
  /** Stops the webhook, unless it has changed since. @throws ServiceError */
  stop(webhook: WebhookState, cursor: string | null, reason: string): Promise<void>;
  /** `now` is the same on every instance. */
  readonly clock: Clock;
  readonly logger: Logger;
}

export interface Deliverer {
  /** Wakes the loop, because the webhook or the lease may have changed. */
  look(): void;
  /** True once its loop has ended. */
  readonly done: boolean;
  /** When it started, monotonic. */
  readonly startedAt: number;
  /** Exact to the item; undefined before it is loaded. */
  checkpoint(webhook: WebhookState): Checkpoint | undefined;
  /** Waits a while for the answer in flight, and records the checkpoint. */
  close(): Promise<void>;
}

interface Current extends Checkpoint {
  readonly since: number;
  place: FeedPlace;
  tries: Checkpoint['tries'];
  /** The newest fact. */
  recorded: Omit<WebhookFact, 'revision'> | undefined;
  /** What is being sent, for which state of the webhook, and how many of its messages were answered. */
  sending: { readonly shipment: Shipment; readonly as: WebhookState; answered: number } | undefined;
  /**
   * Until when (monotonic) a window gathers items, and for which state of the webhook: the window is read when it ends,
   * not before.
   */
  gathering?: { readonly until: number; readonly as: WebhookState };
}

/** Loads the checkpoint of a webhook. Stops the webhook if the log does not have it. @throws ServiceError */
async function loadCheckpoint({ cursors, feed, stop }: DelivererDeps, webhook: WebhookState): Promise<Current> {
  const { since } = webhook;
  await cursors.refresh();
  try {
    return { since, ...(await cursors.checkpoint(webhook)), recorded: cursors.newest(webhook), sending: undefined };
  } catch (error) {
    if (error instanceof ServiceError && error.code === 'conflict' && webhook.enabled && webhook.stopped === null) {
      const cursor = webhook.cursor ?? (await feed.behind(streams.fleet, since)).cursor;
      await stop(webhook, cursor, `${error.message} (resume)`);
    }
    throw error;
  }
}

/**
 * Records the checkpoint as a fact if it is due: after a change of state, some time after a change of place, and before the last
 * fact expires.
 * @returns the longest wait before the next call
 * @throws ServiceError `unavailable`
 */
async function recordIfDue(
  { id, cursors, clock }: DelivererDeps,
  webhook: WebhookState,
  current: Current,
  movedMs: number = limits.webhooks.factEveryMs,
): Promise<number> {
  const [now, { place, tries, recorded, since }] = [clock.now(), current];
  const cursor = place.cursor ?? 'start';
  const state = webhookStateOf(webhook, tries);
  const data: WebhookCursorMoved['data'] = { webhook_id: id, since, cursor, state, ...tries };
  const isSame = recorded !== undefined && isDeepStrictEqual({ ...recorded.data, cursor }, data);
  const hasMoved = recorded?.data.cursor !== cursor;
  const dueMs =
    isSame && !isOfFuture(recorded.at, now) ? recorded.at + (hasMoved ? movedMs : tuning.factAgeMs) - now : 0;
  if (dueMs > 0) return Math.min(dueMs, tuning.waitMs);
  await cursors.record(data);
  current.recorded = { at: now, data };
  return tuning.waitMs;
}

/**
 * Tries messages, and keeps in the checkpoint what became of them.
 * @param signal ends a try @param ended whether this instance delivers no more
 * @returns sends the messages of a shipment that are not answered yet, and tells whether the next shipment may follow
 */
function createTries(deps: DelivererDeps, signal: AbortSignal, ended: () => boolean) {
  const { id, deliveries, clock, logger } = deps;

  async function deliver(webhook: WebhookState, at: Current, shipment: Shipment): Promise<boolean> {
    const { messages, behind } = shipment;
    if (at.sending?.shipment !== shipment) at.sending = { shipment, as: webhook, answered: 0 };
    const sent = at.sending;
    for (const message of messages.slice(sent.answered)) {
      const isDelivered = await send(webhook, at, message, () => {
        sent.answered += 1;
        if (sent.answered < messages.length) return;
        at.place = behind;
        at.sending = undefined;
      });
      if (!isDelivered || ended()) return false;
    }
    return true;
  }

  /** @param delivered called on success, before it is recorded @returns whether the message was delivered */
  async function send(webhook: WebhookState, at: Current, message: Message, delivered: () => void): Promise<boolean> {
    const { failures, failing_since } = at.tries;
    const { answer, delivery } = await deps.send(webhook, message, failures + 1, signal);
    const next = nextAfter(answer, failures);
    if (next.kind === 'delivered') {
      delivered();
      at.tries = noTries(webhook);
    }
    // If this instance ends, a missing answer is not the receiver's failure.
    else if (ended()) return false;
    await deliveries.add(id, delivery).catch(logsWarning(logger, 'a delivery was not recorded', { webhook_id: id }));
    switch (next.kind) {
      case 'delivered':
        if (!ended()) await recordIfDue(deps, webhook, at);
        return true;
      case 'retry':
        at.tries = {
          tries_since: webhook.tries_since,
          failures: failures + 1,
          failing_since: failing_since ?? delivery.at,
          next_at: timestamp(clock.now() + next.waitMs),
        };
        return false;
      case 'stop': {
        // If the stop cannot be written, the item is tried again.
        at.tries = { ...at.tries, next_at: timestamp(clock.now() + tuning.failureMs) };
        // Of a window, earlier messages may have been answered.
        const { cursor } = at.sending?.shipment.behindEach[at.sending.answered - 1] ?? at.place;
        await deps.stop(webhook, cursor ?? 'start', next.reason);
        return false;
      }
      default:
        return unreachable(next);
    }
  }

  return deliver;
}

export function startDeliverer(deps: DelivererDeps): Deliverer {
  const { id, feed, deliveries, clock, logger } = deps;
  const tries = new AbortController();
  const startedAt = clock.monotonic();
  let wake = new AbortController();
  let closed = false;
  let done = false;
  let current: Current | undefined;

  const ended = (): boolean => closed || !deps.holds();
  const deliver = createTries(deps, tries.signal, ended);

  async function turn(webhook: WebhookState, signal: AbortSignal): Promise<void> {
    if (current?.since !== webhook.since) current = await loadCheckpoint(deps, webhook);
    const at = current;
    if (at.tries.tries_since !== webhook.tries_since) at.tries = noTries(webhook);
    const recordMs = await recordIfDue(deps, webhook, at);
    if (!webhook.enabled || webhook.stopped !== null) return sleep(recordMs, signal);
    const [nextAt, now] = [Date.parse(at.tries.next_at ?? ''), clock.now()];
    // A longer wait comes from a clock that was ahead.
    if (nextAt > now && !isOfFuture(nextAt, now + limits.webhooks.retryAfterMaxMs))
      return sleep(Math.min(nextAt - now, recordMs), signal);
    // What failed is sent again as it was, unless the webhook has changed.
    if (at.sending !== undefined && sendsAlike(at.sending.as, webhook)) {
      await deliver(webhook, at, at.sending.shipment);
      return;
    }
    const leftMs = at.gathering && sendsAlike(at.gathering.as, webhook) ? at.gathering.until - clock.monotonic() : 0;
    if (leftMs > 0) return sleep(Math.min(leftMs, recordMs), signal);
    const failed = at.sending?.shipment.messages[at.sending.answered]?.cursor;
    const { shipments, place, caughtUp, gatherMs } = await deps.next(webhook, at.place, signal);
    const next = shipments[0]?.messages[0]?.cursor;
    if (!signal.aborted && gatherMs === 0 && (next === undefined || (failed !== undefined && next !== failed))) {
      // The webhook has changed, and leaves out what failed.
      at.sending = undefined;
      at.tries = noTries(webhook);
    }
    for (const shipment of shipments) {
      if (signal.aborted || ended() || !(await deliver(webhook, at, shipment))) return;
    }
    if (gatherMs > 0) {
      at.gathering = { until: clock.monotonic() + gatherMs, as: webhook };
      return;
    }
    at.place = place;
    if (!caughtUp) return;
    await feed.wait(place, await recordIfDue(deps, webhook, at), signal);
    if (shipments.length === 0) await sleep(tuning.gatherMs, signal);
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
    if (deps.holds() && current?.since === webhook.since) await recordIfDue(deps, webhook, current, 0);
  }

  const look = (): void => {
    wake.abort();
    wake = new AbortController();
  };
  const running = run()
    .catch(logsWarning(logger, 'the last state of a webhook was not recorded', { webhook_id: id }))
    .finally(() => {
      done = true;
    });

  return {
    look,
    startedAt,
    get done() {
      return done;
    },
    checkpoint: ({ since }) => (current?.since === since ? current : undefined),
    async close() {
      closed = true;
      look();
      const late = setTimeout(() => tries.abort(), tuning.closeMs);
      await running;
      clearTimeout(late);
    },
  };
}
