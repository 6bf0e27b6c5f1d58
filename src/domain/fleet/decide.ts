/** One `decide` for the whole fleet: hands a command to its resource. Refuses what would make a snapshot too large. */
import { unreachable } from '../../kernel/errors.js';
import { limits } from '../../kernel/limits.js';
import { ok } from '../../kernel/result.js';
import { decideChain } from '../chain/decide.js';
import { snapshotSize } from '../compile/size.js';
import { decideNode } from '../node/decide.js';
import type { Decision, Refusal } from '../refusal.js';
import { decideSettings } from '../settings/decide.js';
import { decideUpstream } from '../upstream/decide.js';
import type { FleetCommand, FleetEvent } from './events.js';
import type { Fleet } from './fleet.js';

/** The events that a command is, or why it is refused. An empty list is an accepted no-change. */
export function decideFleet(fleet: Fleet, command: FleetCommand): Decision<FleetEvent> {
  switch (command.type) {
    case 'CreateNode':
    case 'UpdateNode':
    case 'DeleteNode':
    case 'IssueNodePsk':
    case 'RefreshNodeConfig':
    case 'ReportNodeAddress':
    case 'RaiseNodeGeneration':
    case 'QueueNodeCommand':
      return decideNode(fleet, command);
    case 'CreateUpstream':
    case 'UpdateUpstream':
    case 'DeleteUpstream':
      return decideUpstream(fleet, command);
    case 'CreateChain':
    case 'UpdateChain':
    case 'DeleteChain':
    case 'DeployChain':
      return decideChain(fleet, command);
    case 'UpdateConnectivity':
      return decideSettings(fleet, command);
    case 'RaiseCompilerVersion': {
      const from = fleet.compilerVersion.value;
      if (command.version <= from) return ok([]);
      return ok([{ type: 'CompilerVersionRaised', data: { version: { from, to: command.version } } }]);
    }
    default:
      return unreachable(command);
  }
}

/** The refusal of a command, already applied, that made a touched node's snapshot too large (`domain.md`, Scale). */
export function oversizedSnapshot(fleet: Fleet, touched: ReadonlySet<string>): Refusal | undefined {
  for (const nodeId of touched) {
    const bytes = snapshotSize(fleet, nodeId);
    if (bytes <= limits.fleet.snapshotBytes) continue;
    const name = fleet.nodes.get(nodeId)?.name ?? nodeId;
    return {
      code: 'conflict',
      message: `the configuration of node "${name}" would be ${bytes} bytes, more than the ${limits.fleet.snapshotBytes} that one snapshot may have`,
    };
  }
  return undefined;
}
