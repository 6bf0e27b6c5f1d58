/**
 * Other instances that write to the log but hold no lease in this read store: they use another read store, and what needs
 * one, messages and nodes' statuses for example, happens on each side by itself.
 */
import type { Clock } from '../kernel/clock.js';

/** How long one must have written without a lease: one that has just ended holds none either. */
const afterMs = 20_000;
/** How long after its last sign one still counts. */
const keptMs = 60 * 60_000;
/** An older fact is read while catching up, and an older check was made before the read store went away. */
const freshMs = 10_000;

/** The caller says what it reads in the log and in the read store. @param instanceId of this instance */
export function watchSharing(instanceId: string, clock: Clock) {
  /** When each was first and last seen in the log since it was last seen to hold a lease, monotonic milliseconds. */
  const seen = new Map<string, { readonly first: number; readonly last: number }>();
  let apart: readonly string[] = [];
  let checkedAt = Number.NEGATIVE_INFINITY;
  return {
    /** An instance has written a fact. @param at RFC 3339 */
    wrote(id: string, at: string): void {
      const last = clock.monotonic();
      if (id === instanceId || Date.parse(at) < clock.now() - freshMs || checkedAt < last - freshMs) return;
      seen.set(id, { first: seen.get(id)?.first ?? last, last });
    },
    /** @param live the instances that hold a lease now @returns those that are known to stand apart since this check */
    check(live: readonly string[]): readonly string[] {
      checkedAt = clock.monotonic();
      for (const id of live) seen.delete(id);
      for (const [id, { last }] of seen) if (last < checkedAt - keptMs) seen.delete(id);
      const before = apart;
      apart = [...seen].filter(([, { first, last }]) => last - first >= afterMs).map(([id]) => id);
      return apart.filter((id) => !before.includes(id));
    },
    /** A sentence for each. */
    problems: (): readonly string[] => apart.map(sentenceAbout),
  };
}

/** For readiness and the log, without a full stop. */
export const sentenceAbout = (id: string): string =>
  `the instance ${id} writes to this log, but holds no lease in this read store: give all instances the same SVC_MONGODB_URL`;
