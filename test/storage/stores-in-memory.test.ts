/** The stores in memory of `test/support` answer as real ones do, as far as the tests that use them ask. */
import { storesInMemory } from '../support/stores-in-memory.js';
import { eventStoreContract } from './contract/event-store.contract.js';
import { readStoreContract } from './contract/read-store.contract.js';

eventStoreContract('in memory', async () => {
  const { eventStore } = storesInMemory();
  return { store: () => eventStore, reopen: async () => undefined, close: async () => undefined };
});
readStoreContract('in memory', async () => {
  const { readStore } = storesInMemory();
  return { store: () => readStore, reopen: async () => undefined, close: async () => undefined };
});
