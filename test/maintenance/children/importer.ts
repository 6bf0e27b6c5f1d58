/** A process that imports an archive and prints its progress until it is killed. Arguments: archive, data folder. */
import { writeSync } from 'node:fs';
import { systemClock } from '../../../src/kernel/clock.js';
import { silentLogger } from '../../../src/kernel/logger.js';
import { openEmbedded } from '../../../src/storage/embedded/open-embedded.js';
import { importFrom } from '../../support/installations.js';

const [path = '', dataDir = ''] = process.argv.slice(2);
const stores = await openEmbedded({ dataDir, clock: systemClock, logger: silentLogger });
await importFrom(path, stores, {
  onProgress: (_bytes, events, skipped) => void writeSync(1, `handled ${events} ${skipped}\n`),
});
writeSync(1, 'done\n');
