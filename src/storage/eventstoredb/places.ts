/**
 * A bounded number of places, with a queue that waits for a limited time. Reads, subscriptions and appends of the whole
 * process share theirs: the connection to one server carries 100 streams, and every further call on it hangs without an
 * error. Appends share one stream of the batch path, and there the client queues what its stream does not take at once,
 * 16 messages: when such a stream fails, what is queued becomes a rejection that nobody can handle.
 */
import { ServiceError } from '../../kernel/errors.js';
import { createSemaphore } from '../../kernel/semaphore.js';
import { tuning } from './tuning.js';

export interface Places {
  /**
   * Resolves with how to give the place back, which may be called more than once.
   * @throws ServiceError `unavailable` when none got free in time
   */
  take(): Promise<() => void>;
  taken(): number;
}

export function createPlaces(count: number, waitMs: number, what: string): Places {
  const semaphore = createSemaphore({ places: count, waitMs });
  return {
    taken: () => semaphore.taken,
    async take() {
      const leave = await semaphore.enter();
      if (leave !== undefined) return leave;
      throw new ServiceError('unavailable', `The event store has ${count} open ${what}, and none has ended.`);
    },
  };
}

const { reads, subscriptions, appendsAtOnce, placeWaitMs } = tuning;
export const readPlaces = createPlaces(reads, placeWaitMs, 'reads');
export const subscriptionPlaces = createPlaces(subscriptions, placeWaitMs, 'subscriptions');
export const appendPlaces = createPlaces(appendsAtOnce, placeWaitMs, 'appends');
