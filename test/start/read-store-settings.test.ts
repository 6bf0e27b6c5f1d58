/** Where the read models are: all instances of one log share one read store, unless there is only one instance. */
import { expect, test } from 'vitest';
import { readConfig } from '../../src/app/config/config.js';

const log = {
  SVC_EVENTSTORE_URL: 'esdb://127.0.0.1:2113',
  SVC_MASTER_KEY: Buffer.alloc(32, 5).toString('base64'),
};
const mongo = { SVC_MONGODB_URL: 'mongodb://127.0.0.1/svc' };

test('an external log without an external read store is refused, with what to do about it', () => {
  expect(() => readConfig(log)).toThrow(
    /^SVC_MONGODB_URL: required with SVC_EVENTSTORE_URL, .* for the only instance on that log, set SVC_READ_STORE=embedded$/,
  );
});

test('SVC_READ_STORE=embedded says that this is the only instance on that log', () => {
  expect(readConfig({ ...log, SVC_READ_STORE: 'embedded' }).readStoreHere).toBe(true);
  expect(readConfig({ ...log, ...mongo }).readStoreHere).toBe(false);
  expect(readConfig({ SVC_READ_STORE: 'embedded' }).readStoreHere).toBe(false);
});

test.each([
  ['another value', { ...log, SVC_READ_STORE: 'mongodb' }, 'SVC_READ_STORE: got "mongodb": expected embedded'],
  [
    'a database beside it',
    { ...log, ...mongo, SVC_READ_STORE: 'embedded' },
    'SVC_READ_STORE and SVC_MONGODB_URL: expected one of them',
  ],
])('%s is refused', (_, env, sentence) => {
  expect(() => readConfig(env)).toThrow(sentence);
});
