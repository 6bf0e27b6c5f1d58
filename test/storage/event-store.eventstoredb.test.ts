import { describe, it } from 'vitest';
import { eventStoreContract } from './contract/event-store.contract.js';
import { hostileServer, realServerHarness, testServerHarness } from './contract/eventstoredb-harness.js';

eventStoreContract('EventStoreDB over the wire', () => testServerHarness());

let seed = 1;
eventStoreContract('EventStoreDB over the wire, hostile', () => testServerHarness(hostileServer((seed += 1))));

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
