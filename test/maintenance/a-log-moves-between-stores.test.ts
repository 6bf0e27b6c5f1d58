/** An installation moves from embedded stores to EventStoreDB and MongoDB and back, with its log and generations. */
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { streams } from '../../src/kernel/event.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { checkReadModels } from '../../src/projections/rebuild/check.js';
import { startProjections } from '../../src/projections/projections.js';
import { rebuildReadModels } from '../../src/projections/rebuild/rebuild.js';
import type { EventStore } from '../../src/storage/event-store.js';
import { openEventStoreDb } from '../../src/storage/eventstoredb/open.js';
import { verifyArchive } from '../../src/storage/log-archive/verify-log.js';
import type { ReadStore } from '../../src/storage/read-store.js';
import { logCheck } from '../../src/backups/archive-scope.js';
import { startEventStoreDb } from '../servers/eventstoredb/server.js';
import { mongoDatabase, onMongoServers, type MongoDatabase } from '../storage/contract/mongodb-harness.js';
import {
  appendFacts,
  contents,
  createInstallations,
  exportTo,
  fill,
  fleetBytes,
  importFrom,
  wholeLog,
  type Installations,
} from '../support/installations.js';
import { caughtUp } from '../support/read-side.js';

const signal = new AbortController().signal;
const verify = (path: string) => verifyArchive(path, { check: logCheck, signal, onProgress: () => undefined });
/** Without positions, which each store counts its own way. */
const generations = (bytes: string): string => bytes.replaceAll(/"position":\d+/g, '"position":0');

onMongoServers('moving an installation between stores', (server) => {
  let installations: Installations;
  let database: MongoDatabase;
  let closing: (() => Promise<void>)[];
  let eventStore: EventStore;
  let readStore: ReadStore;
  let esdb: Awaited<ReturnType<typeof startEventStoreDb>>;
  beforeEach(async () => {
    installations = createInstallations();
    database = mongoDatabase(await server());
    esdb = await startEventStoreDb();
    eventStore = openEventStoreDb({ url: esdb.url, logger: silentLogger });
    readStore = await database.open();
    closing = [() => eventStore.close(), () => esdb.close(), () => database.close(), () => installations.close()];
  });
  afterEach(async () => {
    for (const close of closing) await close();
  });

  it('keeps everything, there and back, while subscriptions drop and answers are lost', async () => {
    const source = await installations.open();
    await fill(source, 51);
    await appendFacts(source.eventStore, 3000, true);
    const before = await wholeLog(source.eventStore);
    const there = join(installations.folder, 'there.jsonl');
    await exportTo(there, source);

    const external = { eventStore, readStore };
    let blocks = 0;
    const stop = new AbortController();
    const onProgress = (): void => {
      blocks += 1;
      if (blocks === 2) stop.abort();
    };
    expect(await importFrom(there, external, { signal: stop.signal, onProgress })).toBeUndefined();
    // Another process continues, and its connections are cut.
    const again = openEventStoreDb({ url: esdb.url, logger: silentLogger });
    closing.unshift(() => again.close());
    let cuts = 0;
    const report = await importFrom(
      there,
      { eventStore: again, readStore },
      {
        onProgress: () => {
          cuts += 1;
          if (cuts === 3) esdb.cut();
        },
      },
    );
    expect(report?.skipped).toBeGreaterThan(900);
    const moved = await wholeLog(eventStore);
    expect(contents(moved)).toEqual(contents(before));
    expect(generations(fleetBytes(moved))).toBe(generations(fleetBytes(before)));

    const back = join(installations.folder, 'back.jsonl');
    let dropped = 0;
    await exportTo(back, external, {
      onProgress(events) {
        if (events > 1000 && dropped === 0) dropped += esdb.dropSubscriptions('too_slow');
      },
    });
    const [one, two] = [await verify(there), await verify(back)];
    expect(two.problems).toEqual([]);
    expect(two.log.contentSha256).toBe(one.log.contentSha256);
    const target = await installations.open();
    await importFrom(back, target);
    const after = await wholeLog(target.eventStore);
    expect(contents(after)).toEqual(contents(before));
    expect(fleetBytes(after)).toBe(fleetBytes(before));
  });

  it('leaves read models that can be rebuilt and compared', async () => {
    const source = await installations.open();
    await fill(source, 52);
    await appendFacts(source.eventStore, 200, true);
    const path = join(installations.folder, 'archive.jsonl');
    await exportTo(path, source);
    await importFrom(path, { eventStore, readStore });
    const clock = source.clock;
    const options = { eventStore, readStore, clock, logger: silentLogger };
    const audit = async () => {
      const projections = await startProjections({ ...options, deletionTime: () => undefined });
      await caughtUp(projections);
      const entries = await projections.audit.list({ page: 1, pageSize: 500, includeAccounts: true });
      await projections.close();
      return entries;
    };
    const entries = await audit();
    expect(entries.total).toBeGreaterThan(0);
    const rebuilding = { ...options, signal, onProgress: () => undefined };
    expect(await rebuildReadModels(rebuilding)).toMatchObject({ kind: 'done', dropped: true });
    expect(await audit()).toEqual(entries);
    const scratch = await installations.open();
    const compared = await checkReadModels({ ...rebuilding, scratch: scratch.readStore });
    expect(compared).toMatchObject({ differences: [], behind: 0 });
    expect(compared?.documents).toBeGreaterThan(20);
    expect((await wholeLog(eventStore)).some(({ stream }) => stream === streams.fleet)).toBe(true);
  });
});
