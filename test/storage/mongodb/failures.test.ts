/** What the driver's errors mean: what an operator has to correct, a server that is away, documents that existed already. */
import { MongoBulkWriteError, MongoServerError, MongoServerSelectionError } from 'mongodb';
import { describe, expect, it } from 'vitest';
import { ServiceError } from '../../../src/kernel/errors.js';
import { duplicatesIn, troubleOf } from '../../../src/storage/mongodb/failures.js';

const answered = (code: number, errmsg: string): Error =>
  new ServiceError('unavailable', 'The read store cannot be used now.', {
    cause: new MongoServerError({ ok: 0, code, errmsg }),
  });
const notFound = (message: string, servers = ['a:27017']): Error =>
  new MongoServerSelectionError(message, {
    servers: new Map(servers.map((server) => [server, {}])),
  } as ConstructorParameters<typeof MongoServerSelectionError>[1]);

describe('an error of MongoDB', () => {
  it.each([
    [answered(18, 'Authentication failed.'), /user name or password in SVC_MONGODB_URL/],
    [answered(8000, 'bad auth : authentication failed'), /user name or password in SVC_MONGODB_URL/],
    [answered(13, 'not authorized on svc to execute command { find: "nodes" }'), /readWrite on the database/],
    [answered(13, 'Command find requires authentication'), /readWrite on the database/],
    [notFound('self-signed certificate in certificate chain'), /tlsCAFile in SVC_MONGODB_URL/],
    [notFound('unable to verify the first certificate'), /tlsCAFile in SVC_MONGODB_URL/],
    [notFound("Hostname/IP does not match certificate's altnames: Host: a. is not in the cert"), /another name/],
    [
      new Error("EACCES: permission denied, open '/etc/ssl/private/ca.pem'"),
      /file that SVC_MONGODB_URL names cannot be read \(EACCES\)/,
    ],
    [notFound('Server selection timed out after 3000 ms', []), /no server in SVC_MONGODB_URL .*: correct replicaSet/],
  ])('says what to do: %s', (error, sentence) => {
    expect(troubleOf(error)?.message).toMatch(sentence);
  });

  it.each([
    notFound('connect ECONNREFUSED 127.0.0.1:27017'),
    notFound('connect ENOENT /run/mongodb.sock'),
    notFound('Server selection timed out after 3000 ms'),
    answered(10_107, 'not primary'),
    answered(11_600, 'interrupted at shutdown'),
  ])('is a server that is away: %s', (error) => {
    expect(troubleOf(error)).toBeUndefined();
  });
});

describe('an error of an unordered insert', () => {
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
});
