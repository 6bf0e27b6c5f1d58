/**
 * Bounds how many reads, subscriptions and appends the whole process has open at a time. The connection to a server
 * carries 100 streams, and further calls hang without an error.
 */
import { ServiceError } from '../../kernel/errors.js';
import { createSemaphore } from '../../kernel/semaphore.js';
import { tuning } from './tuning.js';

export interface Places {
  /**
   * @returns a function that gives the place back; calling it again does nothing
   * @throws ServiceError `unavailable` when no place became free in time
   */
  take(): Promise<() => void>;
  taken(): number;
}

/** @internal exported for tests */
export function createPlaces(count: number, waitMs: number, what: string): Places {
  const semaphore = createSemaphore({ places: count, waitMs });
  return {
    taken: () => semaphore.taken,
    async take() {
      const leave = await semaphore.enter();
      if (leave !== undefined) return leave;
      throw new ServiceError('unavailable', `The event store has ${count} open ${what}, and none of them has ended.`);
    },
  };
}

const { reads, subscriptions, appendsAtOnce, placeWaitMs } = tuning;
export const readPlaces = createPlaces(reads, placeWaitMs, 'reads');
export const subscriptionPlaces = createPlaces(subscriptions, placeWaitMs, 'subscriptions');
export const appendPlaces = createPlaces(appendsAtOnce, placeWaitMs, 'appends');
