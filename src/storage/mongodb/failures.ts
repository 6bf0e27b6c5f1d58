/** What the driver's errors mean to this adapter. `../answer-unavailable.ts` turns them into the port's answers. */
import { MongoBulkWriteError, MongoServerError } from 'mongodb';

const duplicateKey = 11_000;
const namespaceNotFound = 26;

const hasCode = (error: unknown, code: number): boolean => error instanceof MongoServerError && error.code === code;

/** True when a document of that id exists already. */
export const isDuplicate = (error: unknown): boolean =>
  !(error instanceof MongoBulkWriteError) && hasCode(error, duplicateKey);

export const isMissing = (error: unknown): boolean => hasCode(error, namespaceNotFound);

/**
 * @returns how many documents an unordered insert inserted, when all the others existed already
 * @throws the error itself in any other case
 */
export function insertedDespite(error: unknown): number {
  if (!(error instanceof MongoBulkWriteError)) throw error;
  const failures = Array.isArray(error.writeErrors) ? error.writeErrors : [error.writeErrors];
  // A write that a majority has not confirmed is a failure too.
  const others = error.result.getWriteConcernError() !== undefined || failures.length === 0;
  if (others || failures.some(({ code }) => code !== duplicateKey)) throw error;
  return error.insertedCount;
}
