/** An installation in a data folder, as a first start of the service makes it: no service takes a log that is not chained under its key. */
import { openInstallation, type Installation } from '../src/app/installation/installation.js';
import { systemClock } from '../src/kernel/clock.js';
import { createClosers } from '../src/kernel/closers.js';
import { randomIds } from '../src/kernel/ids.js';
import { silentLogger } from '../src/kernel/logger.js';

/** Runs `use` with the installation of a folder, which is made if the folder is new. */
export async function withInstallation<T>(
  dataDir: string,
  use: (installation: Installation) => Promise<T>,
): Promise<T> {
  const closers = createClosers(silentLogger);
  try {
    const settings = { dataDir, eventStoreUrl: undefined, mongoUrl: undefined };
    const onTakenOver = (sentence: string): never => {
      throw new Error(sentence);
    };
    const deps = { clock: systemClock, ids: randomIds, logger: silentLogger, closers, onTakenOver };
    return await use(await openInstallation({ ...settings, masterKey: { inline: undefined, file: undefined } }, deps));
  } finally {
    await closers.closeAll();
  }
}
