/**
 * What the port promises of failures, for every adapter of the read store: whatever a library throws is answered as
 * `unavailable`, a caller's fault stays as it is. Not a retry. Implements `read-store.ts`.
 */
import { ServiceError } from '../kernel/errors.js';
import type { Collection, Leases } from './read-store.js';

/** The method, with its failures as the port has them. */
export function answerUnavailable<A extends readonly unknown[], T>(
  method: (...args: A) => Promise<T>,
): (...args: A) => Promise<T> {
  return async (...args) => {
    try {
      return await method(...args);
    } catch (error) {
      if (error instanceof ServiceError || error instanceof RangeError) throw error;
      throw new ServiceError('unavailable', 'The read store can not be used now.', { cause: error });
    }
  };
}

export function answeringCollection(collection: Collection): Collection {
  return {
    spec: collection.spec,
    get: answerUnavailable(collection.get),
    getMany: answerUnavailable(collection.getMany),
    find: answerUnavailable(collection.find),
    count: answerUnavailable(collection.count),
    write: answerUnavailable(collection.write),
    set: answerUnavailable(collection.set),
    insert: answerUnavailable(collection.insert),
    updateIf: answerUnavailable(collection.updateIf),
    remove: answerUnavailable(collection.remove),
    purgeTombstones: answerUnavailable(collection.purgeTombstones),
  };
}

export function answeringLeases(leases: Leases): Leases {
  return {
    take: answerUnavailable(leases.take),
    acquire: answerUnavailable(leases.acquire),
    renew: answerUnavailable(leases.renew),
    release: answerUnavailable(leases.release),
    get: answerUnavailable(leases.get),
    list: answerUnavailable(leases.list),
    purge: answerUnavailable(leases.purge),
  };
}
