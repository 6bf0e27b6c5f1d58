import { hostileEventStore } from '../support/hostile.js';
import { embeddedHarness } from './contract/embedded-harness.js';
import { eventStoreContract } from './contract/event-store.contract.js';

let seed = 1;
eventStoreContract('hostile', () => embeddedHarness(({ eventStore }) => hostileEventStore(eventStore, (seed += 1))));
