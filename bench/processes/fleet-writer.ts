/** A separate process, for its own memory, that writes the log of a fleet of a given size into a new data folder. */
import { answerParent } from '../child.js';
import type { FleetShape } from '../fleet-log.js';
import { writeAgentFleetLog, writeFleetLog } from '../fleet-log.js';
import { withInstallation } from '../installation.js';

const [dataDir = ''] = process.argv.slice(2);

export interface AgentFleet {
  readonly nodes: number;
  /** How many of them have an upstream of their own. */
  readonly own: number;
}

answerParent({
  /** Each node has a chain to the next one, and each chain an upstream of its own. */
  async write(nodes: number) {
    const events = 1 + 4 * nodes;
    const shape = { nodes, upstreams: nodes, chains: nodes };
    await withInstallation(dataDir, (log) => writeFleetLog(log, events, shape));
    return events;
  },
  /** Only what creates and deploys it. */
  fleet(shape: FleetShape) {
    const events = 1 + shape.nodes + shape.upstreams + 2 * shape.chains;
    return withInstallation(dataDir, (log) => writeFleetLog(log, events, shape));
  },
  agents: ({ nodes, own }: AgentFleet) => withInstallation(dataDir, (log) => writeAgentFleetLog(log, nodes, own)),
});
