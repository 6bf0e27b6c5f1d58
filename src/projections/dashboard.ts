/**
 * Held in memory, from the committed fleet. How many there are of each resource, for the dashboard. How they are by what agents
 * tell, `src/reports/counts.ts` counts. Implements `docs/contract/rest.md#dashboard`.
 */
import type { ResourceCounts } from '../domain/fleet/counts.js';
import { countResources } from '../domain/fleet/counts.js';
import type { Fleet } from '../domain/fleet/fleet.js';
import type { Clock } from '../kernel/clock.js';
import { withPauses } from '../kernel/pieces.js';
import { createShared } from '../kernel/shared.js';
import type { FleetQueries } from './port.js';
import { tuning } from './tuning.js';

export interface DashboardDeps {
  fleet(): Fleet;
  readonly clock: Clock;
}

/** The counts hold all that the fold holds at the call. */
export function dashboard({ fleet, clock }: DashboardDeps): Pick<FleetQueries, 'resourceCounts'> {
  const count = (): Promise<ResourceCounts> => withPauses(countResources(fleet(), clock.now()));
  const resourceCounts = createShared(count, {
    stamp: () => fleet().revision.value,
    isFresh: ({ stamp, begunAt }) =>
      stamp === fleet().revision.value && clock.monotonic() - begunAt < tuning.countsReuseMs,
    now: clock.monotonic,
  });
  return { resourceCounts };
}
