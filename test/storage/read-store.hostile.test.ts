import { hostileReadStore } from '../support/hostile.js';
import { embeddedHarness } from './contract/embedded-harness.js';
import { readStoreContract } from './contract/read-store.contract.js';

let seed = 1;
readStoreContract(
  'hostile',
  async () => {
    const harness = await embeddedHarness(({ readStore }) => hostileReadStore(readStore, (seed += 1)));
    return { ...harness, settled: () => harness.store().settled() };
  },
  // Queries are passed on as they are.
  12,
);
