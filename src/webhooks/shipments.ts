/**
 * What a webhook sends next: one item after the other for programs; for people, the items of a window as few messages.
 * Reads the feed and sends nothing. Implements `docs/contract/notices.md#webhooks-for-people`, `group_secs`.
 */
import type { WebhookState } from '../domain/webhook/webhook.js';
import { matcherOf } from '../feed/filters.js';
import type { Feed, FeedItem, FeedPlace } from '../feed/port.js';
import { isOfFuture } from '../kernel/clock.js';
import { limits } from '../kernel/limits.js';
import { withPauses } from '../kernel/pieces.js';
import { render } from '../notices/formats.js';
import { noticesOf } from '../notices/notice.js';
import { itemMessage, type Message } from './messages.js';
import { tuning } from './tuning.js';

/** Messages that are sent in their order; then the checkpoint is `behind` them. */
export interface Shipment {
  readonly messages: readonly Message[];
  readonly behind: FeedPlace;
  /** By message: behind its items and those of earlier messages that come before those of any later one. */
  readonly behindEach: readonly FeedPlace[];
}

/** The message to send, and what follows it. */
export interface Shipments {
  readonly shipments: readonly Shipment[];
  /** After all of them and the items that the filters left out. */
  readonly place: FeedPlace;
  readonly caughtUp: boolean;
  /** How long the next message still gathers items, in milliseconds; 0 while nothing waits. */
  readonly gatherMs: number;
}

export interface ShipmentsDeps {
  readonly feed: Pick<Feed, 'read'>;
  /** The same on every instance. */
  readonly clock: { now(): number };
  /** Where people reach the console; null if not configured. */
  readonly publicUrl: string | null;
}

/** @throws ServiceError `unavailable` */
export async function nextShipments(
  deps: ShipmentsDeps,
  webhook: WebhookState,
  from: FeedPlace,
  signal: AbortSignal,
): Promise<Shipments> {
  const { format, types, filters } = webhook;
  const select = matcherOf({ types, ...filters });
  const options = { maxItems: tuning.readItems, maxBytes: tuning.readBytes, select, signal };
  if (format !== 'standard') return nextWindow(deps, { ...webhook, format }, from, options);
  const { items, place, caughtUp } = await deps.feed.read(from, options);
  return {
    shipments: items.map((item) => {
      const behind = placeOf(item);
      return { messages: [itemMessage(item)], behind, behindEach: [behind] };
    }),
    place,
    caughtUp,
    gatherMs: 0,
  };
}

const placeOf = ({ position, cursor }: FeedItem): FeedPlace => ({ position, cursor });

/** One window, once nothing can be added to it. @throws ServiceError `unavailable` */
async function nextWindow(
  { feed, clock, publicUrl }: ShipmentsDeps,
  webhook: WebhookState & { readonly format: Exclude<WebhookState['format'], 'standard'> },
  from: FeedPlace,
  options: Parameters<Feed['read']>[1],
): Promise<Shipments> {
  const { format, chat_id: chatId, group_secs, console_links } = webhook;
  const items: FeedItem[] = [];
  let [place, caughtUp, isFull, bytes, endsAt] = [from, false, false, 0, Number.POSITIVE_INFINITY];
  while (!caughtUp && !isFull) {
    const batch = await feed.read(place, options);
    for (const item of batch.items) {
      if (items.length === 0) endsAt = Date.parse(item.at) + group_secs * 1000;
      isFull =
        Date.parse(item.at) > endsAt || items.length === limits.webhooks.windowItems || bytes > limits.feed.pieceBytes;
      if (isFull) break;
      items.push(item);
      bytes += item.json.length;
    }
    const last = items.at(-1);
    place = isFull && last !== undefined ? placeOf(last) : batch.place;
    caughtUp = batch.caughtUp && !isFull;
    if (options.signal?.aborted === true) break;
  }
  if (items.length === 0) return { shipments: [], place, caughtUp, gatherMs: 0 };
  const now = clock.now();
  // If the first item is from a clock that was ahead, the window does not wait until then.
  const gathers = !isFull && !isOfFuture(endsAt, now + group_secs * 1000);
  const gatherMs = gathers ? Math.max(0, endsAt - now) : 0;
  if (gatherMs > 0 || options.signal?.aborted === true) return { shipments: [], place: from, caughtUp, gatherMs };
  const console = publicUrl === null || !console_links ? null : `${publicUrl}/console`;
  const notices = await withPauses(noticesOf(items, console));
  const messages = notices.map(({ first: { type, cursor }, ...notice }): Message => ({
    kind: 'notice',
    type,
    cursor,
    rendered: render(format, notice, { chatId }),
  }));
  const behindEach = notices.map((_, index) => {
    const later = notices[index + 1]?.first;
    const before = later && items[items.indexOf(later) - 1];
    return before === undefined ? place : placeOf(before);
  });
  return { shipments: [{ messages, behind: place, behindEach }], place, caughtUp, gatherMs: 0 };
}
