/**
 * The counts of the dashboard that follow from the fold, for callers who may ask often: made in pieces, once for all who
 * wait, and again only when the fold has moved on or a second has passed, as certificates end with time.
 * Implements `docs/contract/rest.md#dashboard`.
 */
import type { ResourceCounts } from '../../domain/fleet/counts.js';
import { countResources } from '../../domain/fleet/counts.js';
import type { Fleet } from '../../domain/fleet/fleet.js';
import { yieldToEventLoop } from '../../kernel/background.js';
import type { Clock } from '../../kernel/clock.js';
import { createShared } from '../../kernel/shared.js';
import { tuning } from '../tuning.js';

export interface FleetCountsDeps {
  fleet(): Fleet;
  readonly clock: Clock;
}

/** @returns a function that gives counts which hold all that the fold holds at the call */
export function createFleetCounts({ fleet, clock }: FleetCountsDeps): () => Promise<ResourceCounts> {
  const count = async (): Promise<ResourceCounts> => {
    const counting = countResources(fleet(), clock.now());
    for (;;) {
      const step = counting.next();
      if (step.done === true) return step.value;
      await yieldToEventLoop();
    }
  };
  return createShared(count, {
    stamp: () => fleet().revision.value,
    isFresh: ({ stamp, begunAt }) =>
      stamp === fleet().revision.value && clock.monotonic() - begunAt < tuning.countsReuseMs,
    now: clock.monotonic,
  });
}
