import { embeddedHarness } from './contract/embedded-harness.js';
import { eventStoreContract } from './contract/event-store.contract.js';

eventStoreContract('embedded', () => embeddedHarness(({ eventStore }) => eventStore));
