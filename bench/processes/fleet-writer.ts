/** A separate process, for its own memory, that writes the log of a fleet of a given size into a data folder. */
import { systemClock } from '../../src/kernel/clock.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { openEmbedded } from '../../src/storage/embedded/open-embedded.js';
import { answerParent } from '../child.js';
import { writeFleetLog } from '../fleet-log.js';

const [dataDir = ''] = process.argv.slice(2);

answerParent({
  /** Each node has a chain to the next one, and each chain an upstream of its own. */
  async write(nodes: number) {
    const stores = await openEmbedded({ dataDir, clock: systemClock, logger: silentLogger });
    try {
      const events = 1 + 4 * nodes;
      await writeFleetLog(stores.eventStore, events, { nodes, upstreams: nodes, chains: nodes });
      return events;
    } finally {
      await stores.close();
    }
  },
});
