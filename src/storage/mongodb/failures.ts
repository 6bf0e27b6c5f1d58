/** Interprets the driver's errors. `../answer-unavailable.ts` turns them into the port's answers. */
import { MongoBulkWriteError, MongoServerError } from 'mongodb';
import { StoreAccessError, textsOf, tlsError } from '../store-access.js';

const duplicateKey = 11_000;
const namespaceNotFound = 26;

const hasCode = (error: unknown, code: number): boolean => error instanceof MongoServerError && error.code === code;

const store = { name: 'MongoDB', variable: 'SVC_MONGODB_URL' } as const;

/**
 * A fault that an operator must correct before the server can be used; undefined for a server that is merely away. When
 * no server is found in time, the error's text names the last reason.
 */
export function troubleOf(error: unknown): StoreAccessError | undefined {
  const text = textsOf(error);
  if (/Authentication failed|auth(entication)? fail|bad auth/i.test(text)) {
    return new StoreAccessError(
      `MongoDB does not accept the user name or password in ${store.variable}: correct one of the two sides`,
      error,
    );
  }
  if (/not authorized on|requires authentication|not allowed to do action/i.test(text)) {
    return new StoreAccessError(
      `the user in ${store.variable} has too few permissions in MongoDB: give it readWrite on the database`,
      error,
    );
  }
  return tlsError(error, store);
}

/** True when a document with that id already exists. */
export const isDuplicate = (error: unknown): boolean =>
  !(error instanceof MongoBulkWriteError) && hasCode(error, duplicateKey);

export const isMissing = (error: unknown): boolean => hasCode(error, namespaceNotFound);

/**
 * @returns the indexes of the documents that an unordered insert left out, if all of them already existed
 * @throws the error itself in any other case
 */
export function duplicatesIn(error: unknown): readonly number[] {
  if (!(error instanceof MongoBulkWriteError)) throw error;
  const failures = Array.isArray(error.writeErrors) ? error.writeErrors : [error.writeErrors];
  // A write that a majority has not confirmed is a failure too.
  const others = error.result.getWriteConcernError() !== undefined || failures.length === 0;
  if (others || failures.some(({ code }) => code !== duplicateKey)) throw error;
  return failures.map(({ index }) => index);
}
