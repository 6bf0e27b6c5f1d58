import { embeddedHarness } from './contract/embedded-harness.js';
import { readStoreContract } from './contract/read-store.contract.js';

readStoreContract('embedded', () => embeddedHarness(({ readStore }) => readStore));
