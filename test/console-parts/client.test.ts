/** What the client makes of an answer that is none. */
import { expect, test } from 'vitest';
import { dataOf, Refusal } from '../../console/src/shared/api/client.js';

test('given an answer that breaks off half way, it is a refusal that forms and pages can show', async () => {
  const failure = await dataOf(Promise.reject(new TypeError('network error'))).catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(Refusal);
  expect(failure).toMatchObject({ status: 0, sentence: 'the service does not answer', requestId: null });
});
