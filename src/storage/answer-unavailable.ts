/**
 * Translates failures into the ones that the read store's port promises: library errors become `unavailable`, and
 * errors the caller made stay as they are. Does not retry. Implements `read-store.ts`.
 */
import { timedOut, withDeadline } from '../kernel/background.js';
import { ServiceError } from '../kernel/errors.js';
import type { Collection, CollectionSpec, Fields, Leases, ReadStore } from './read-store.js';

/** Wraps a method so that it fails only with the port's errors. */
export function answerUnavailable<A extends readonly unknown[], T>(
  method: (...args: A) => Promise<T>,
): (...args: A) => Promise<T> {
  return async (...args) => {
    try {
      return await method(...args);
    } catch (error) {
      if (error instanceof ServiceError || error instanceof RangeError) throw error;
      throw new ServiceError('unavailable', 'The read store cannot be used now.', { cause: error });
    }
  };
}

/** Wraps a method so that it gives up after `ms`. For reads, and for writes whose outcome does not matter. */
export function answeredWithin<A extends readonly unknown[], T>(
  ms: number,
  method: (...args: A) => Promise<T>,
): (...args: A) => Promise<T> {
  return async (...args) => {
    const answer = await withDeadline(method(...args), ms);
    if (answer === timedOut) throw new ServiceError('unavailable', 'The read store does not answer.');
    return answer;
  };
}

/** A collection whose reads give up after `ms`. */
export function impatientCollection(collection: Collection, ms: number): Collection {
  return {
    ...collection,
    get: answeredWithin(ms, collection.get),
    getMany: answeredWithin(ms, collection.getMany),
    list: answeredWithin(ms, collection.list),
    find: answeredWithin(ms, collection.find),
    count: answeredWithin(ms, collection.count),
  };
}

/** Leases whose reads give up after `ms`. */
export function impatientLeases(leases: Leases, ms: number): Leases {
  return { ...leases, get: answeredWithin(ms, leases.get), list: answeredWithin(ms, leases.list) };
}

export function answeringCollection(collection: Collection): Collection {
  return {
    spec: collection.spec,
    get: answerUnavailable(collection.get),
    getMany: answerUnavailable(collection.getMany),
    list: answerUnavailable(collection.list),
    find: answerUnavailable(collection.find),
    count: answerUnavailable(collection.count),
    write: answerUnavailable(collection.write),
    set: answerUnavailable(collection.set),
    insert: answerUnavailable(collection.insert),
    remove: answerUnavailable(collection.remove),
    purgeTombstones: answerUnavailable(collection.purgeTombstones),
  };
}

/**
 * Makes the port's `collection` from an adapter's function that opens one. The caller asserts the type of the fields: a
 * store does not check them.
 */
export function answeringCollections(open: (spec: CollectionSpec) => Promise<Collection>): ReadStore['collection'] {
  const answering = answerUnavailable(open);
  return async <F extends Fields>(spec: CollectionSpec) => (await answering(spec)) as unknown as Collection<F>;
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
