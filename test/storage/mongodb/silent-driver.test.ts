/** A driver that has stopped monitoring its server recovers without a restart. */
import { once } from 'node:events';
import { MongoClient } from 'mongodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../../../scripts/stack/process.js';
import { silentLogger } from '../../../src/kernel/logger.js';
import { reviveSilentClient } from '../../../src/storage/mongodb/open-mongodb.js';
import { ferretDbBuilt, startFerretDb, type FerretDb } from '../../servers/ferretdb-process.js';

describe.skipIf(!ferretDbBuilt())('a MongoDB driver that went silent', () => {
  let server: FerretDb;
  beforeAll(async () => {
    server = await startFerretDb();
  });
  afterAll(() => server.close());

  it('finds its server again', async () => {
    const client = new MongoClient(`${server.url}/x`, {
      serverSelectionTimeoutMS: 500,
      heartbeatFrequencyMS: 500,
      monitorCommands: true,
    });
    await client.connect();
    const revival = reviveSilentClient(client, silentLogger, { heartbeatMs: 500, silentHeartbeats: 5 });
    try {
      const insert = () => client.db().collection('c').insertOne({});
      await insert();
      stopAsking(client);
      // Cut while the driver waits for an answer: only then does it consider the server gone.
      await server.freeze();
      const sent = once(client, 'commandStarted');
      const cut = insert().then(
        () => 'answered',
        () => 'cut',
      );
      await sent;
      await server.kill();
      expect(await cut).toBe('cut');
      await server.restart();
      await expect(insert(), 'and nobody asks after it').rejects.toThrow();
      await eventually('the server is found again', insert, 60_000, 500);
    } finally {
      await revival.close();
      await client.close();
    }
  });
});

/** Reproduces what was observed from outside: the monitor of the server never runs again. */
function stopAsking(client: MongoClient): void {
  const { topology } = client as unknown as {
    topology: { s: { servers: Map<string, { monitor: { monitorId: { stop(): void; wake(): void } } }> } };
  };
  for (const { monitor } of topology.s.servers.values()) {
    monitor.monitorId.stop();
    monitor.monitorId.wake = () => undefined;
  }
}
