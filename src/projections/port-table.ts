/**
 * Held in memory, from the committed fleet. The port table: which listeners each node is to have, with their routes and
 * policies, and which ports nothing claims. What agents say of them is in `src/reports/`. Implements
 * `docs/contract/rest.md#port-management`.
 */
import type { Fleet } from '../domain/fleet/fleet.js';
import { freePorts } from '../domain/listeners/free-ports.js';
import { portRows } from '../domain/port-table/port-table.js';
import type { FleetQueries } from './port.js';

export function portTable(fleet: () => Fleet): Pick<FleetQueries, 'portRows' | 'freePorts'> {
  return {
    portRows: (nodeId) => portRows(fleet(), nodeId),
    freePorts: (nodeId, transport) => freePorts(fleet(), nodeId, transport),
  };
}
