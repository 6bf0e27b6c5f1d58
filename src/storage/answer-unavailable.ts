/**
 * Translates failures into the ones that the read store's port promises: library errors become `unavailable`, and
 * errors that the caller caused pass through unchanged. Does not retry. Implements `read-store.ts`.
 */
import { timedOut, withDeadline } from '../kernel/background.js';
import { ServiceError } from '../kernel/errors.js';
import type { Collection, CollectionSpec, Fields, ReadStore } from './read-store.js';
import { isDiskFull } from './store-access.js';

/** Wraps a method so that it fails only with the port's errors. */
export function answerUnavailable<A extends readonly unknown[], T>(
  method: (...args: A) => Promise<T>,
): (...args: A) => Promise<T> {
  return async (...args) => {
    try {
      return await method(...args);
    } catch (error) {
      if (error instanceof ServiceError || error instanceof RangeError) throw error;
      const message = isDiskFull(error) ? 'The disk of the read store is full.' : 'The read store cannot be used now.';
      throw new ServiceError('unavailable', message, { cause: error });
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

type Method = (...args: readonly unknown[]) => Promise<unknown>;

/** The object with its methods wrapped, all of them or those named. */
function wrapped<T extends object>(target: T, wrap: (method: Method) => Method, names?: readonly string[]): T {
  const isWrapped = (name: string, value: unknown): value is Method =>
    typeof value === 'function' && names?.includes(name) !== false;
  return Object.fromEntries(
    Object.entries(target).map(([name, value]) => [name, isWrapped(name, value) ? wrap(value) : value]),
  ) as T;
}

/** The methods of collections and leases that only read. */
const reads: readonly string[] = ['get', 'getMany', 'list', 'find', 'count'];

/** A store as an adapter makes it. The caller asserts the type of the fields: a store does not check them. */
export interface UntypedReadStore extends Omit<ReadStore, 'collection'> {
  collection(spec: CollectionSpec): Promise<Collection>;
}

/**
 * A store that fails only with the port's errors.
 * @param readMs after which reads of documents and leases give up
 */
export function answering(store: UntypedReadStore, readMs?: number): ReadStore {
  const part = <T extends object>(target: T): T => {
    const answered = wrapped(target, answerUnavailable);
    return readMs === undefined ? answered : wrapped(answered, (method) => answeredWithin(readMs, method), reads);
  };
  const { collection, ...others } = wrapped(store, answerUnavailable);
  return {
    ...others,
    collection: async <F extends Fields>(spec: CollectionSpec) => part(await collection(spec)) as Collection<F>,
    leases: part(store.leases),
    close: store.close,
  };
}
