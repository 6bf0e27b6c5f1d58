import { mongoDbHarness, onMongoServers } from './contract/mongodb-harness.js';
import { readStoreContract } from './contract/read-store.contract.js';

onMongoServers('the read store contract on MongoDB', (server, kill) => {
  // The adapter only translates queries, and every one of them is sent to a server.
  readStoreContract('MongoDB', async () => mongoDbHarness(await server(), kill), 12);
});
