import { hostileReadStore } from '../support/hostile.js';
import { embeddedHarness } from './contract/embedded-harness.js';
import { readStoreContract } from './contract/read-store.contract.js';

let seed = 1;
readStoreContract(
  'hostile',
  () => embeddedHarness(({ readStore }) => hostileReadStore(readStore, (seed += 1))),
  // Queries are passed on as they are.
  12,
);
