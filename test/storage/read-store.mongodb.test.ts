import { mongoDbHarness, onMongoServers } from './contract/mongodb-harness.js';
import { readStoreContract } from './contract/read-store.contract.js';

onMongoServers('the read store contract on MongoDB', (server, kill) => {
  readStoreContract('MongoDB', async () => mongoDbHarness(await server(), kill));
});
