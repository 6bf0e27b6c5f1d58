/**
 * The read store on MongoDB: a replica set, a standalone server or one that speaks its protocol. The only door into this
 * folder. Implements `docs/architecture.md` ("No home-made engine", "Read models need no transactions").
 *
 * Every write is acknowledged by a majority, with its journal, and every read is of what a majority has, from the
 * primary: what was answered survives an election. Used of the server: documents changed one at a time, unique ids,
 * indexes. Not used: transactions, change streams, TTL or partial indexes, updates by pipeline, renaming.
 */
import { MongoClient, ReadConcern, type MongoClientOptions } from 'mongodb';
import { ServiceError } from '../../kernel/errors.js';
import type { Logger } from '../../kernel/logger.js';
import { answeredWithin, answerUnavailable, answeringLeases, impatientLeases } from '../answer-unavailable.js';
import type { ReadStore } from '../read-store.js';
import { createCollections } from './collections.js';
import { ensureIndexes } from './indexes.js';
import { createLeases, leaseIndexes, type MongoLease } from './leases.js';
import { createProgress, type MongoCheckpoint, type MongoPointer } from './progress.js';
import { reviveSilentClient } from './silent-driver.js';
import { tuning } from './tuning.js';

export interface MongoDbOptions {
  /** `mongodb://…/database`; may hold a password, and is never logged. */
  readonly url: string;
  readonly logger: Logger;
}

/** Given to the database too: there, unlike at the client, they hold whatever the URL says. */
const concerns = {
  writeConcern: { w: 'majority', journal: true, wtimeoutMS: tuning.majorityMs },
  readConcern: new ReadConcern('majority'),
  readPreference: 'primary',
} as const;

const clientOptions: MongoClientOptions = {
  appName: 'gateway-control-service',
  ...concerns,
  retryReads: true,
  retryWrites: true,
  serverSelectionTimeoutMS: tuning.selectionMs,
  connectTimeoutMS: tuning.connectMs,
  socketTimeoutMS: tuning.answerMs,
  waitQueueTimeoutMS: tuning.answerMs,
  heartbeatFrequencyMS: tuning.heartbeatMs,
  maxPoolSize: tuning.connections,
};

/** Read models have no dot in their names. */
const ownCollections = { leases: 'svc.leases', checkpoints: 'svc.checkpoints', pointers: 'svc.pointers' } as const;

/** @throws RangeError, without the password, when the URL does not name a database. */
function assertNamesDatabase(url: string): void {
  if (!/^mongodb(\+srv)?:\/\/[^/]+\/[^/?]+/.test(url)) {
    throw new RangeError('the MongoDB URL is mongodb://host:port/database');
  }
}

/** Says once that the server is away, and once that it is back. */
function tellOutages(client: MongoClient, logger: Logger): void {
  let usable = true;
  client.on('topologyDescriptionChanged', ({ newDescription }) => {
    const now = [...newDescription.servers.values()].some(({ isWritable }) => isWritable);
    if (now === usable) return;
    usable = now;
    if (now) logger.info({}, 'MongoDB can be used again');
    else logger.warn({}, 'MongoDB cannot be used: no server that takes writes is reached');
  });
}

/**
 * Connects, makes the indexes of the adapter's own collections and returns the store. It outlives outages and elections:
 * calls are `unavailable` meanwhile.
 * @throws RangeError when the URL is not one of a database.
 * @throws ServiceError `unavailable` when the server cannot be reached or used now: try again.
 */
export async function openMongoDb({ url, logger }: MongoDbOptions): Promise<ReadStore> {
  assertNamesDatabase(url);
  const client = new MongoClient(url, clientOptions);
  const db = client.db(undefined, concerns);
  const leases = db.collection<MongoLease>(ownCollections.leases);
  const prepare = answerUnavailable(async () => {
    await client.connect();
    await ensureIndexes(leases, leaseIndexes);
  });
  try {
    await prepare();
  } catch (error) {
    await client.close();
    throw error;
  }
  tellOutages(client, logger);
  const revival = reviveSilentClient(client, logger);
  const ping = answeredWithin(tuning.pingMs, () => db.command({ ping: 1 }));
  let closing: Promise<void> | undefined;
  const progress = createProgress(
    db.collection<MongoCheckpoint>(ownCollections.checkpoints),
    db.collection<MongoPointer>(ownCollections.pointers),
  );
  return {
    ...createCollections(db),
    loadCheckpoint: answerUnavailable(progress.loadCheckpoint),
    saveCheckpoint: answerUnavailable(progress.saveCheckpoint),
    deleteCheckpoint: answerUnavailable(progress.deleteCheckpoint),
    activeVersion: answerUnavailable(progress.activeVersion),
    activate: answerUnavailable(progress.activate),
    leases: impatientLeases(answeringLeases(createLeases(db, leases)), tuning.readMs),
    ping: answerUnavailable(async () => {
      if (closing !== undefined) throw new ServiceError('unavailable', 'The read store is closed.');
      await ping();
    }),
    close() {
      closing ??= revival.close().then(() => client.close());
      return closing;
    },
  };
}
