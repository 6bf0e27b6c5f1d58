/**
 * Opens the read store on MongoDB: a replica set, a standalone server, or a server that speaks its protocol. Code
 * outside this folder imports only this file. Implements `docs/architecture.md#storage`.
 *
 * Every write is acknowledged by a majority with its journal, and every read returns what a majority has, from the
 * primary, so acknowledged writes survive an election. Uses only single-document changes, unique ids and indexes; no
 * transactions, change streams, TTL or partial indexes, update pipelines or renames.
 */
import { MongoClient, ReadConcern, type MongoClientOptions } from 'mongodb';
import { errorText, ServiceError } from '../../kernel/errors.js';
import { logsWarning, type Logger } from '../../kernel/logger.js';
import { answeredWithin, answering, answerUnavailable, type UntypedReadStore } from '../answer-unavailable.js';
import type { ReadStore } from '../read-store.js';
import { createCollections } from './collections.js';
import { ensureIndexes } from './indexes.js';
import { troubleOf } from './failures.js';
import { createLeases, leaseIndexes, type MongoLease } from './leases.js';
import { createProgress, type MongoCheckpoint, type MongoPointer } from './progress.js';
import { timeOfServer } from './server-time.js';
import { tuning } from './tuning.js';
import { startLoop } from '../../kernel/background.js';

export interface MongoDbOptions {
  /** `mongodb://…/database`. May contain a password, so it is never logged. */
  readonly url: string;
  readonly logger: Logger;
}

/** Also set on the database, where the URL cannot override them, unlike on the client. */
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

/** Names with a dot, which names of read models cannot contain. */
const ownCollections = { leases: 'svc.leases', checkpoints: 'svc.checkpoints', pointers: 'svc.pointers' } as const;

/** @throws RangeError, without a secret, when the URL does not name a database or the driver cannot use it */
function clientOf(url: string): MongoClient {
  if (!/^mongodb(\+srv)?:\/\/[^/]+\/[^/?]+/.test(url)) {
    throw new RangeError('the MongoDB URL must look like mongodb://host:port/database');
  }
  try {
    return new MongoClient(url, clientOptions);
  } catch (error) {
    // With a second @, the driver may take a part of the password for a host or an option, and name it.
    const why = url.split('@').length > 2 ? '' : ` (${errorText(error)})`;
    throw new RangeError(`expected mongodb://host:port/database, with %25 for % and %40 for @ in a password${why}`);
  }
}

/** Logs once when no server accepts writes any more, and once when one does again. */
function logOutages(client: MongoClient, logger: Logger): void {
  let usable = true;
  client.on('topologyDescriptionChanged', ({ newDescription }) => {
    const now = [...newDescription.servers.values()].some(({ isWritable }) => isWritable);
    if (now === usable) return;
    usable = now;
    if (now) logger.info({}, 'MongoDB can be used again');
    else logger.warn({}, 'MongoDB cannot be used: no server that accepts writes can be reached');
  });
}

/**
 * Connects, creates the indexes of the adapter's own collections and returns the store. The store survives outages and
 * elections; meanwhile, calls are `unavailable`.
 * @throws RangeError when the URL cannot be used; ServiceError `unavailable` when the server cannot be
 *   reached or used now
 */
export async function openMongoDb({ url, logger }: MongoDbOptions): Promise<ReadStore> {
  const client = clientOf(url);
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
    throw troubleOf(error) ?? error;
  }
  logOutages(client, logger);
  const revival = reviveSilentClient(client, logger);
  const ping = answeredWithin(tuning.pingMs, () => db.command({ ping: 1 }));
  let closing: Promise<void> | undefined;
  const store: UntypedReadStore = {
    ...createCollections(db),
    ...createProgress(
      db.collection<MongoCheckpoint>(ownCollections.checkpoints),
      db.collection<MongoPointer>(ownCollections.pointers),
    ),
    leases: createLeases(db, leases),
    time: answeredWithin(tuning.pingMs, () => timeOfServer(db)),
    async ping() {
      if (closing !== undefined) throw new ServiceError('unavailable', 'The read store is closed.');
      await ping().catch((error: unknown) => {
        throw troubleOf(error) ?? error;
      });
    },
    close() {
      closing ??= revival.close().then(() => client.close());
      return closing;
    },
  };
  return answering(store, tuning.readMs);
}

/**
 * Reopens a connected client whose driver falls silent. Close it before the client.
 * @param patience how long the driver may be silent; tests pass less
 * @internal exported for tests
 */
export function reviveSilentClient(
  client: MongoClient,
  logger: Logger,
  patience: { readonly heartbeatMs: number; readonly silentHeartbeats: number } = tuning,
): { close(): Promise<void> } {
  /** Turns since the last report about a server, by address. Not time: the process itself may have been frozen. */
  const silence = new Map<string, number>();
  const heard = ({ connectionId }: { readonly connectionId: string }): void => void silence.set(connectionId, 0);
  client.on('serverHeartbeatStarted', heard);
  client.on('serverHeartbeatSucceeded', heard);
  client.on('serverHeartbeatFailed', heard);
  client.on('topologyDescriptionChanged', ({ newDescription: { servers } }) => {
    for (const address of silence.keys()) if (!servers.has(address)) silence.delete(address);
    for (const address of servers.keys()) if (!silence.has(address)) silence.set(address, 0);
  });
  return startLoop(
    patience.heartbeatMs,
    async () => {
      for (const [address, turns] of silence) silence.set(address, turns + 1);
      const silent = [...silence].filter(([, turns]) => turns > patience.silentHeartbeats);
      if (silent.length === 0) return;
      logger.error(
        { servers: silent.length },
        'the MongoDB driver has stopped monitoring a server; its client is being reopened',
      );
      silence.clear();
      await client.close();
      await client.connect();
    },
    // No retry: calls reopen the client too.
    logsWarning(logger, 'the MongoDB client was reopened, but no server can be reached yet'),
  );
}
