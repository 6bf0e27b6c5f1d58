/** What an error of an unordered insert says about the documents. The driver's own error class, without a server. */
import { MongoBulkWriteError } from 'mongodb';
import { expect, it } from 'vitest';
import { duplicatesIn } from '../../../src/storage/mongodb/failures.js';

/** An error with these write errors, and perhaps one of the write concern. */
function bulkError(codes: readonly number[], concern = false): MongoBulkWriteError {
  const result = { insertedCount: 3, getWriteConcernError: () => (concern ? { code: 64 } : undefined) };
  const error = new MongoBulkWriteError(
    { message: 'a bulk error', code: 11_000, writeErrors: codes.map((code) => ({ code })) } as never,
    result as never,
  );
  return Object.assign(error, { writeErrors: codes.map((code, at) => ({ code, index: 2 * at })) });
}

it('documents that existed already are no failure, and are named by their index', () => {
  expect(duplicatesIn(bulkError([11_000, 11_000]))).toEqual([0, 2]);
});

it('a write that a majority has not confirmed is one, whatever else is said', () => {
  const unconfirmed = bulkError([11_000], true);
  expect(() => duplicatesIn(unconfirmed)).toThrow(unconfirmed);
});

it('any other error, and one without a reason, is a failure too', () => {
  for (const codes of [[11_000, 121], []]) expect(() => duplicatesIn(bulkError(codes))).toThrow('a bulk error');
  expect(() => duplicatesIn(new Error('away'))).toThrow('away');
});
