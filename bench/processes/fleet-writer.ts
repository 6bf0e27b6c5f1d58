/** A separate process, for its own memory, that writes the log of a fleet of a given size into a new data folder. */
import { answerParent } from '../child.js';
import { writeAgentFleetLog, writeFleetLog, type FleetShape } from '../fleet-log.js';
import { withInstallation } from '../installation.js';

const [dataDir = ''] = process.argv.slice(2);

export type WrittenFleet =
  /** Only its creation and deployment, without later edits. */
  | { readonly shape: FleetShape }
  /** Nodes for agents; this many of them have an upstream of their own. */
  | { readonly nodes: number; readonly own: number };

answerParent({
  write: (fleet: WrittenFleet) =>
    withInstallation(dataDir, (log) => {
      if (!('shape' in fleet)) return writeAgentFleetLog(log, fleet.nodes, fleet.own);
      const { nodes, upstreams, chains } = fleet.shape;
      return writeFleetLog(log, 1 + nodes + upstreams + 2 * chains, fleet.shape);
    }),
});
