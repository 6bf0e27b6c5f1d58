import { describe, it } from 'vitest';
import { claimBatchPath } from '../../src/storage/eventstoredb/batch-path.js';
import { eventStoreContract } from './contract/event-store.contract.js';
import { hostileServer, realServerHarness, testServerHarness } from './contract/eventstoredb-harness.js';

eventStoreContract('EventStoreDB over the wire, public client', () => testServerHarness(undefined, 'public'));

let seed = 1;
eventStoreContract('EventStoreDB over the wire, fast client, hostile', () =>
  testServerHarness(hostileServer((seed += 1))),
);

// A second store of the same process uses the classic call.
eventStoreContract('EventStoreDB over the wire, classic appends, hostile', async () => {
  const batchPath = claimBatchPath();
  const harness = await testServerHarness(hostileServer((seed += 1), 0.1));
  return {
    ...harness,
    async close() {
      await harness.close();
      batchPath.release();
    },
  };
});

const url = process.env['SVC_TEST_EVENTSTORE_URL'];
if (url !== undefined && url !== '') {
  eventStoreContract('a real EventStoreDB', () => realServerHarness(url));
} else {
  const notice = 'NOT RUN against a real EventStoreDB: SVC_TEST_EVENTSTORE_URL is not set';
  process.stderr.write(`\n*** event store contract: ${notice} ***\n`);
  describe.skip(`event store contract: ${notice}`, () => {
    it.skip(notice);
  });
}
