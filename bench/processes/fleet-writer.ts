/** A separate process, for its own memory, that writes the log of a fleet of a given size into a data folder. */
import { systemClock } from '../../src/kernel/clock.js';
import { silentLogger } from '../../src/kernel/logger.js';
import type { EventStore } from '../../src/storage/event-store.js';
import { openEmbedded } from '../../src/storage/embedded/open-embedded.js';
import { answerParent } from '../child.js';
import { writeAgentFleetLog, writeFleetLog } from '../fleet-log.js';

const [dataDir = ''] = process.argv.slice(2);

export interface AgentFleet {
  readonly nodes: number;
  /** How many of them have an upstream of their own. */
  readonly own: number;
}

async function withStore(use: (store: EventStore) => Promise<void>): Promise<void> {
  const stores = await openEmbedded({ dataDir, clock: systemClock, logger: silentLogger });
  try {
    await use(stores.eventStore);
  } finally {
    await stores.close();
  }
}

answerParent({
  /** Each node has a chain to the next one, and each chain an upstream of its own. */
  async write(nodes: number) {
    const events = 1 + 4 * nodes;
    await withStore((store) => writeFleetLog(store, events, { nodes, upstreams: nodes, chains: nodes }));
    return events;
  },
  agents: ({ nodes, own }: AgentFleet) => withStore((store) => writeAgentFleetLog(store, nodes, own)),
});
