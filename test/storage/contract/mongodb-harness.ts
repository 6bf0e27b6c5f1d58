/** Opens the MongoDB read store for tests, each time in a database of its own that is dropped afterwards. */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { MongoClient } from 'mongodb';
import { afterAll, describe, expect } from 'vitest';
import { ServiceError } from '../../../src/kernel/errors.js';
import { silentLogger } from '../../../src/kernel/logger.js';
import { openMongoDb } from '../../../src/storage/mongodb/open-mongodb.js';
import type { ReadStore } from '../../../src/storage/read-store.js';
import { ferretDbBuilt, startFerretDb, type FerretDb } from '../../servers/ferretdb-process.js';
import type { ReadStoreHarness } from './read-store.contract.js';

export const codeOf = (error: unknown): unknown => (error instanceof ServiceError ? error.code : error);

/** Repeats a call while it is `unavailable`; any other failure fails the test. */
export async function persist<T>(call: () => Promise<T>): Promise<T> {
  for (const until = performance.now() + 20_000; ;) {
    try {
      return await call();
    } catch (error) {
      expect(codeOf(error)).toBe('unavailable');
      if (performance.now() > until) throw error;
      await delay(20);
    }
  }
}

/** The URL with another database. */
export function withDatabase(url: string, database: string): string {
  const [, server = url, options = ''] = /^(mongodb(?:\+srv)?:\/\/[^/?]+)(?:\/[^?]*)?(\?.*)?$/.exec(url) ?? [];
  return `${server}/${database}${options}`;
}

const freshDatabase = (): string => `svc_test_${randomUUID().replaceAll('-', '')}`;

/**
 * Runs the tests on FerretDB, or skips them when it was not built, and on the server that
 * SVC_TEST_MONGODB_URL names, if any. `server` returns a URL with any database; `kill` crashes that server and starts
 * it again, where the tests started it.
 */
export function onMongoServers(
  suite: string,
  tests: (server: () => Promise<string>, kill?: () => Promise<void>) => void,
): void {
  describe.skipIf(!ferretDbBuilt())(`${suite} on FerretDB`, () => {
    let started: Promise<FerretDb> | undefined;
    afterAll(async () => {
      await (await started)?.close();
    });
    tests(
      async () => (await (started ??= startFerretDb())).url,
      async () => (await started)?.restart(),
    );
  });
  const named = process.env['SVC_TEST_MONGODB_URL'];
  if (named !== undefined && named !== '') {
    describe(`${suite} on the server of SVC_TEST_MONGODB_URL`, () => tests(async () => named));
  }
}

export interface MongoDatabase {
  /** Opens a store with a client of its own, like another instance of the service. */
  open(): Promise<ReadStore>;
  /** Closes all stores and drops the database. */
  close(): Promise<void>;
}

export function mongoDatabase(server: string): MongoDatabase {
  const url = withDatabase(server, freshDatabase());
  const opened: ReadStore[] = [];
  return {
    async open() {
      const store = await openMongoDb({ url, logger: silentLogger });
      opened.push(store);
      return store;
    },
    async close() {
      await Promise.all(opened.map((store) => store.close()));
      const client = new MongoClient(url);
      await client.db().dropDatabase();
      await client.close();
    },
  };
}

export async function mongoDbHarness(server: string, kill?: () => Promise<void>): Promise<ReadStoreHarness> {
  const database = mongoDatabase(server);
  let store = await database.open();
  const reopen = async (): Promise<void> => {
    await store.close();
    store = await database.open();
  };
  return {
    store: () => store,
    reopen,
    ...(kill && {
      async kill() {
        await kill();
        await reopen();
      },
    }),
    close: database.close,
  };
}
