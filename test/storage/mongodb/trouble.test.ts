/** What an operator has to correct before MongoDB can be used is told from a server that is away. */
import { MongoServerError, MongoServerSelectionError } from 'mongodb';
import { describe, expect, it } from 'vitest';
import { ServiceError } from '../../../src/kernel/errors.js';
import { troubleOf } from '../../../src/storage/mongodb/failures.js';

const answered = (code: number, errmsg: string): Error =>
  new ServiceError('unavailable', 'The read store cannot be used now.', {
    cause: new MongoServerError({ ok: 0, code, errmsg }),
  });
const notFound = (message: string): Error =>
  new MongoServerSelectionError(message, {} as ConstructorParameters<typeof MongoServerSelectionError>[1]);

describe('an error of MongoDB', () => {
  it.each([
    [answered(18, 'Authentication failed.'), /user name or password in SVC_MONGODB_URL/],
    [answered(8000, 'bad auth : authentication failed'), /user name or password in SVC_MONGODB_URL/],
    [answered(13, 'not authorized on svc to execute command { find: "nodes" }'), /readWrite on the database/],
    [answered(13, 'Command find requires authentication'), /readWrite on the database/],
    [notFound('self-signed certificate in certificate chain'), /tlsCAFile in SVC_MONGODB_URL/],
    [notFound('unable to verify the first certificate'), /tlsCAFile in SVC_MONGODB_URL/],
    [notFound("Hostname/IP does not match certificate's altnames: Host: a. is not in the cert"), /another name/],
  ])('says what to do: %s', (error, sentence) => {
    expect(troubleOf(error)?.message).toMatch(sentence);
  });

  it.each([
    notFound('connect ECONNREFUSED 127.0.0.1:27017'),
    notFound('Server selection timed out after 3000 ms'),
    answered(10_107, 'not primary'),
    answered(11_600, 'interrupted at shutdown'),
  ])('is a server that is away: %s', (error) => {
    expect(troubleOf(error)).toBeUndefined();
  });
});
