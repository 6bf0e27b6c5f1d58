/**
 * The two store pairs of end-to-end tests: embedded, and EventStoreDB with MongoDB. The external ones are the test
 * servers, or real ones named by SVC_TEST_EVENTSTORE_URL and SVC_TEST_MONGODB_URL. Each installation gets a database of
 * its own; a log cannot be emptied, so a real EventStoreDB is used only while no service has written to it.
 */
import { randomUUID } from 'node:crypto';
import { MongoClient } from 'mongodb';
import { describe } from 'vitest';
import { streams } from '../../src/kernel/event.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { lastRevision } from '../../src/storage/event-store.js';
import { openEventStoreDb } from '../../src/storage/eventstoredb/open.js';
import { startEventStoreDb } from '../servers/eventstoredb/server.js';
import { ferretDbBuilt, startFerretDb } from '../servers/ferretdb-process.js';
import { withDatabase } from '../storage/contract/mongodb-harness.js';

/** Empty stores for one installation. */
export interface StorePair {
  /** Variables with which the service and the maintenance commands find them, in addition to the data folder. */
  readonly env: { readonly [name: string]: string };
  close(): Promise<void>;
}

export interface StoreKind {
  readonly name: string;
  readonly external: boolean;
  open(): Promise<StorePair>;
}

export const embeddedStores: StoreKind = {
  name: 'embedded stores',
  external: false,
  open: async () => ({ env: {}, close: async () => undefined }),
};

export const externalStores: StoreKind = { name: 'EventStoreDB and MongoDB', external: true, open: openExternal };

/** Whether tests on external stores can run. */
export const externalStoresBuilt = (): boolean => named('SVC_TEST_MONGODB_URL') !== undefined || ferretDbBuilt();

/** Runs the same tests on both pairs. */
export function onStorePairs(suite: string, tests: (stores: StoreKind) => void): void {
  describe(`${suite} on ${embeddedStores.name}`, () => tests(embeddedStores));
  describe.skipIf(!externalStoresBuilt())(`${suite} on ${externalStores.name}`, () => tests(externalStores));
}

function named(variable: string): string | undefined {
  const value = process.env[variable];
  return value === '' ? undefined : value;
}

interface Server {
  readonly url: string;
  close(): Promise<void>;
}

async function openExternal(): Promise<StorePair> {
  const [log, readModels] = await Promise.all([openLog(), openDatabase()]);
  return {
    env: {
      SVC_EVENTSTORE_URL: log.url,
      SVC_MONGODB_URL: readModels.url,
      SVC_MASTER_KEY: Buffer.alloc(32, 5).toString('base64'),
    },
    async close() {
      await readModels.close();
      await log.close();
    },
  };
}

async function openLog(): Promise<Server> {
  const url = named('SVC_TEST_EVENTSTORE_URL');
  if (url !== undefined) {
    const store = openEventStoreDb({ url, logger: silentLogger });
    const empty = await lastRevision(store, streams.service)
      .then((revision) => revision === undefined)
      .finally(() => store.close());
    if (empty) return { url, close: async () => undefined };
    process.stderr.write('\n!!!! The log of SVC_TEST_EVENTSTORE_URL is not empty: using the test server instead.\n\n');
  }
  return startEventStoreDb();
}

async function openDatabase(): Promise<Server> {
  const server = named('SVC_TEST_MONGODB_URL');
  const database = `svc_test_${randomUUID().replaceAll('-', '')}`;
  if (server === undefined) {
    const started = await startFerretDb();
    return { url: withDatabase(started.url, database), close: () => started.close() };
  }
  const url = withDatabase(server, database);
  return {
    url,
    async close() {
      const client = new MongoClient(url);
      await client.db().dropDatabase();
      await client.close();
    },
  };
}
