/** What the driver's errors mean to this adapter. What the port answers is `answer-unavailable.ts`. */
import { MongoBulkWriteError, MongoServerError } from 'mongodb';

const duplicateKey = 11_000;
const namespaceNotFound = 26;

const hasCode = (error: unknown, code: number): boolean => error instanceof MongoServerError && error.code === code;

/** A document of that id is there already. */
export const isDuplicate = (error: unknown): boolean =>
  !(error instanceof MongoBulkWriteError) && hasCode(error, duplicateKey);

export const isMissing = (error: unknown): boolean => hasCode(error, namespaceNotFound);

/**
 * How many documents an unordered insert put, when all that it did not put were there already.
 * @throws the error, when there is more to it
 */
export function insertedDespite(error: unknown): number {
  if (!(error instanceof MongoBulkWriteError)) throw error;
  const failures = Array.isArray(error.writeErrors) ? error.writeErrors : [error.writeErrors];
  // A write that no majority has taken yet is no success either.
  const others = error.result.getWriteConcernError() !== undefined || failures.length === 0;
  if (others || failures.some(({ code }) => code !== duplicateKey)) throw error;
  return error.insertedCount;
}
