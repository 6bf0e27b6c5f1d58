import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Logger } from '../../../src/kernel/logger.js';
import { openMongoDb } from '../../../src/storage/mongodb/open-mongodb.js';
import type { Collection, ReadStore } from '../../../src/storage/read-store.js';
import { ferretDbBuilt, startFerretDb, type FerretDb } from '../../servers/ferretdb-process.js';
import { codeOf, persist, withDatabase } from '../contract/mongodb-harness.js';

describe.skipIf(!ferretDbBuilt())('an outage of MongoDB', () => {
  let server: FerretDb;
  let store: ReadStore;
  let collection: Collection;
  const said: string[] = [];
  const logger: Logger = {
    debug: () => undefined,
    info: (_, message) => void said.push(message),
    warn: (_, message) => void said.push(message),
    error: (_, message) => void said.push(message),
  };

  beforeAll(async () => {
    server = await startFerretDb();
    store = await openMongoDb({ url: withDatabase(server.url, 'outage'), logger });
    collection = await store.collection({ name: 'kept', version: 1, index: { group: 'in', order: 'at' } });
  });
  afterAll(async () => {
    await store?.close();
    await server?.close();
  });

  it('makes every call unavailable, and ends without a new client', async () => {
    await collection.write([{ id: 'a', position: 1, fields: { n: 1 } }]);
    said.length = 0;
    await server.kill();
    const claim = { name: 'n', holder: 'h', ttlMs: 1000, data: null };
    const calls = [
      store.ping(),
      collection.get('a'),
      collection.list(undefined, 1),
      collection.write([{ id: 'a', position: 2, fields: {} }]),
      collection.insert([{ id: 'b', fields: {} }]),
      collection.set([{ id: 'c', fields: { n: 2 } }]),
      store.leases.acquire('k', claim),
      store.leases.renew('k', [claim]),
      store.saveCheckpoint('p', 1, { commit: 1, prepare: 1, anchors: [] }),
      store.collection({ name: 'other', version: 1 }),
    ];
    const outcomes = await Promise.allSettled(calls);
    expect(outcomes.map((outcome) => (outcome.status === 'rejected' ? codeOf(outcome.reason) : 'answered'))).toEqual(
      calls.map(() => 'unavailable'),
    );
    await expect.poll(() => said, { timeout: 15_000 }).toHaveLength(1);
    await server.restart();
    await persist(() => store.ping());
    expect((await collection.get('a'))?.fields).toEqual({ n: 1 });
    await collection.write([{ id: 'a', position: 2, fields: { n: 2 } }]);
    expect((await collection.get('a'))?.fields).toEqual({ n: 2 });
    expect(said).toEqual([
      'MongoDB cannot be used: no server that accepts writes can be reached',
      'MongoDB can be used again',
    ]);
  });

  it('is noticed by a ping when the server hangs', async () => {
    await server.freeze();
    try {
      expect(await store.ping().then(() => 'answered', codeOf)).toBe('unavailable');
    } finally {
      server.thaw();
    }
    await persist(() => store.ping());
  });

  it('loses no acknowledged write when the server is killed under load several times', async () => {
    const acknowledged = new Map<string, number>();
    const inserted: string[] = [];
    let checkpoint = 0;
    let failures = 0;
    let over = false;
    const attempt = async (call: () => Promise<void>): Promise<void> => {
      try {
        await call();
      } catch (error) {
        expect(codeOf(error)).toBe('unavailable');
        failures += 1;
        await delay(20);
      }
    };
    const writer = async (name: string): Promise<void> => {
      for (let position = 10; !over; position += 1) {
        const ids = [`${name}-hot`, `${name}-${position % 25}`];
        await attempt(async () => {
          await collection.write(ids.map((id) => ({ id, position, fields: { n: position } })));
          for (const id of ids) acknowledged.set(id, position);
        });
        await attempt(async () => {
          const id = `${name}-once-${position}`;
          inserted.push(...(await collection.insert([{ id, fields: { n: 0 } }])));
        });
      }
    };
    const saver = async (): Promise<void> => {
      for (let commit = 1; !over; commit += 1) {
        await attempt(async () => {
          await store.saveCheckpoint('load', 1, { commit, prepare: commit, anchors: [] });
          checkpoint = commit;
        });
      }
    };
    const load = Promise.all([writer('w1'), writer('w2'), writer('w3'), saver()]);
    for (let round = 0; round < 3; round += 1) {
      const before = inserted.length;
      await expect.poll(() => inserted.length - before, { timeout: 15_000 }).toBeGreaterThan(15);
      await server.kill();
      await delay(100);
      await server.restart();
    }
    over = true;
    await load;
    expect(failures).toBeGreaterThan(0);
    await persist(() => store.ping());
    const stored = new Map(
      (await collection.getMany([...acknowledged.keys(), ...inserted])).map((one) => [one.id, one]),
    );
    for (const [id, position] of acknowledged) {
      expect(stored.get(id)?.position).toBeGreaterThanOrEqual(position);
      expect(stored.get(id)?.fields).toEqual({ n: stored.get(id)?.position });
    }
    expect(inserted.filter((id) => !stored.has(id))).toEqual([]);
    expect((await store.loadCheckpoint('load', 1))?.commit).toBeGreaterThanOrEqual(checkpoint);
  });
});
