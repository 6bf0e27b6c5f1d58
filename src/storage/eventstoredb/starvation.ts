/**
 * Detects a subscription that is alive but starved: its server answers pings but has nothing more to send, because it
 * is cut off from the leader, which keeps writing. Compares the leader's heads of the streams with what has arrived;
 * `subscription.ts` replaces a starved subscription. Implements `event-store.ts` (subscribe).
 */
import { startLoop } from '../../kernel/background.js';
import type { Clock } from '../../kernel/clock.js';
import type { LogItem } from '../event-store.js';
import type { Connection } from './connection.js';
import { readHead, readHeadOf } from './read.js';

/** @returns position of the newest event of the streams, if it is above `position` @throws ServiceError `unavailable` */
export async function missingAfter(
  connection: Connection,
  streams: readonly string[],
  position: number,
): Promise<number | undefined> {
  // The streams are read only when the log has grown, which saves nearly all of these reads where nobody else writes.
  if ((await readHead(connection)) <= position) return undefined;
  const heads = await Promise.all(streams.map((stream) => readHeadOf(connection, stream)));
  const newest = Math.max(0, ...heads.map((head) => head ?? 0));
  return newest > position ? newest : undefined;
}

/**
 * Holds back the first `caught_up` of a subscription until everything that the leader has at that time is delivered: a
 * node that is cut off says `caught_up` too.
 * @param missing see `missingAfter`
 * @returns what to deliver for an item, given the position up to which everything is delivered by then
 */
export function guardCaughtUp(
  missing: (position: number) => Promise<number | undefined>,
): (item: LogItem, upTo: number) => Promise<readonly LogItem[]> {
  let owed: number | undefined;
  let heldBack = false;
  return async (item, upTo) => {
    if (item.kind === 'caught_up') {
      owed ??= (await missing(upTo)) ?? 0;
      heldBack = upTo < owed;
      return heldBack ? [] : [item];
    }
    if (!heldBack || upTo < (owed ?? 0)) return [item];
    heldBack = false;
    return [item, { kind: 'caught_up' }];
  };
}

/** The progress of a subscription. */
export interface Arrived {
  /** Counts everything the server sends. */
  readonly messages: number;
  /** Everything up to this position has arrived. */
  readonly position: number;
  /** The flow is paused because the consumer is slow. */
  readonly paused: boolean;
  /** The server has reported the end of the log. */
  readonly live: boolean;
}

export interface StarvationDeps {
  readonly clock: Pick<Clock, 'monotonic'>;
  arrived(): Arrived;
  /** See `missingAfter`. */
  missing(position: number): Promise<number | undefined>;
  readonly everyMs: number;
  /** How long it may be behind, live and while catching up. */
  readonly starvedMs: number;
  readonly starvedCatchingUpMs: number;
  /** @param position of an event that the leader has and that did not arrive. May be called repeatedly. */
  onStarved(position: number): void;
  onError(error: unknown): void;
}

/** Checks a subscription while nothing arrives. */
export function watchForStarvation(deps: StarvationDeps): { close(): Promise<void> } {
  const { clock, arrived, everyMs, starvedMs, starvedCatchingUpMs } = deps;
  let before = arrived().messages;
  let behindSince: number | undefined;

  async function look(): Promise<void> {
    const { messages, position, paused, live } = arrived();
    if (messages !== before || paused) {
      before = messages;
      behindSince = undefined;
      return;
    }
    const missing = await deps.missing(position);
    // The reads gave the network a turn, so an event that was only waiting to be read has arrived by now.
    if (missing === undefined || arrived().messages !== messages) {
      behindSince = undefined;
      return;
    }
    behindSince ??= clock.monotonic();
    if (clock.monotonic() - behindSince >= (live ? starvedMs : starvedCatchingUpMs)) deps.onStarved(missing);
  }

  return startLoop(Math.min(everyMs, starvedMs), look, deps.onError);
}
