/**
 * Opens the log of a data folder read-only, whether or not a service is writing to it: for exports and proofs. Takes no
 * lock, and sees what is committed at the time of each read. Implements `docs/how-to/back-up.md`.
 */
import { join, resolve } from 'node:path';
import type { Clock } from '../../kernel/clock.js';
import { errorText } from '../../kernel/errors.js';
import type { LogReader } from '../event-store.js';
import { createReads, openForReading, type ValueKind } from './lmdb.js';
import { createLogTime } from './log/log-time.js';
import { hasRetention, logDatabases, readCounters, type LogDatabase } from './log/layout.js';
import { readLog } from './log/reading.js';
import { createWakeUp } from './log/subscription.js';
import { checkMarker, DataFolderError } from './open-embedded.js';

/** @throws DataFolderError when the folder has no log, half of one, or one of a newer format */
export async function openLogForReading(
  dataDir: string,
  clock: Clock,
): Promise<LogReader & { close(): Promise<void> }> {
  const path = resolve(dataDir);
  await checkMarker(path);
  const kinds = new Map(Object.entries(logDatabases) as [LogDatabase, ValueKind][]);
  try {
    const { root, databases } = openForReading(join(path, 'log'), kinds);
    const environment = createReads<LogDatabase>((name) => {
      const database = databases.get(name);
      if (database === undefined) throw new Error(`the log has no ${name}`);
      // Only a new transaction sees the writer's later commits.
      root.resetReadTxn();
      return database;
    });
    if (readCounters(environment.get).position > 0 && !hasRetention(environment)) {
      throw new DataFolderError(
        `The log in ${path} is not whole: an import into it was not finished (run log:import with the same file again), or the first start of a service.`,
      );
    }
    const wakeUp = createWakeUp();
    const { now } = createLogTime(environment, clock);
    return {
      ...readLog({ environment, now, wakeUp }),
      async close() {
        wakeUp.close();
        await root.close();
      },
    };
  } catch (error) {
    if (error instanceof DataFolderError) throw error;
    throw new DataFolderError(`The log in ${path} cannot be read: ${errorText(error)}.`, { cause: error });
  }
}
