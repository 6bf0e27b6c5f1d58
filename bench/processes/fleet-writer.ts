/**
 * A separate process, for its own memory, that writes the log of a fleet of a given size into a new data folder: with the keyring
 * of a first start, since no service takes a log that is not chained under its key.
 */
import { openInstallation } from '../../src/app/installation/installation.js';
import { systemClock } from '../../src/kernel/clock.js';
import { createClosers } from '../../src/kernel/closers.js';
import { randomIds } from '../../src/kernel/ids.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { answerParent } from '../child.js';
import type { BenchLog } from '../fleet-log.js';
import { writeAgentFleetLog, writeFleetLog } from '../fleet-log.js';

const [dataDir = ''] = process.argv.slice(2);

export interface AgentFleet {
  readonly nodes: number;
  /** How many of them have an upstream of their own. */
  readonly own: number;
}

async function withLog(use: (log: BenchLog) => Promise<void>): Promise<void> {
  const closers = createClosers(silentLogger);
  try {
    const masterKey = { inline: undefined, file: undefined };
    const settings = { dataDir, eventStoreUrl: undefined, mongoUrl: undefined, masterKey };
    const onTakenOver = (sentence: string): never => {
      throw new Error(sentence);
    };
    const deps = { clock: systemClock, ids: randomIds, logger: silentLogger, closers, onTakenOver };
    await use(await openInstallation(settings, deps));
  } finally {
    await closers.closeAll();
  }
}

answerParent({
  /** Each node has a chain to the next one, and each chain an upstream of its own. */
  async write(nodes: number) {
    const events = 1 + 4 * nodes;
    await withLog((log) => writeFleetLog(log, events, { nodes, upstreams: nodes, chains: nodes }));
    return events;
  },
  agents: ({ nodes, own }: AgentFleet) => withLog((log) => writeAgentFleetLog(log, nodes, own)),
});
