/**
 * Measures the time from the offer of a snapshot until the agent has applied it or a newer one. It starts with the oldest offer
 * that is not applied, so a stream of edits that an agent cannot keep up with shows as one long wait. A reject ends the wait.
 */
import { Histogram } from 'prom-client';

/** Snapshots offered to one session and neither applied nor rejected, oldest first. */
export type Offers = { readonly generation: number; readonly at: number }[];

/** If more are outstanding, the newest replaces the one before it. */
const offersMax = 8;
const buckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

export type TimeToApplied = ReturnType<typeof createTimeToApplied>;

export function createTimeToApplied() {
  const seconds = new Histogram({
    name: 'svc_delivery_time_to_applied_seconds',
    help: 'Time from the offer of a snapshot until the agent has applied it, or a newer one.',
    buckets,
    registers: [],
  });
  /** Removes offers up to the generation. @returns when the oldest of them was made */
  const settle = (offers: Offers, generation: number): number | undefined => {
    const settled = offers.filter((offer) => offer.generation <= generation);
    for (const offer of settled) offers.splice(offers.indexOf(offer), 1);
    return settled[0]?.at;
  };
  return {
    /** @param at milliseconds of the monotonic clock, as in the other functions */
    offered(offers: Offers, generation: number, at: number): void {
      if (offers.some((offer) => offer.generation === generation)) return;
      if (offers.length >= offersMax) offers.pop();
      offers.push({ generation, at });
    },
    applied(offers: Offers, generation: number, at: number): void {
      const since = settle(offers, generation);
      if (since !== undefined) seconds.observe((at - since) / 1000);
    },
    rejected(offers: Offers, generation: number): void {
      settle(offers, generation);
    },
    /** For `/metrics`. */
    seconds,
  };
}
