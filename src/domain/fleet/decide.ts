/** One `decide` for the whole fleet: hands a command to its resource. Refuses what would make a snapshot too large. */
import { unreachable } from '../../kernel/errors.js';
import { limits } from '../../kernel/limits.js';
import { ok } from '../../kernel/result.js';
import { decideChain } from '../chain/decide.js';
import { snapshotSize } from '../compile/size.js';
import { decideNode } from '../node/decide.js';
import type { Decision, Refusal } from '../resource/refusal.js';
import { refuse } from '../resource/refusal.js';
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
    case 'LowerCompilerVersion':
      return lowerCompiler(fleet.compilerVersion.value, command.version);
    default:
      return unreachable(command);
  }
}

/** Never to 0, which stands for a log that no release has compiled yet, and never to where it is or above. */
function lowerCompiler(from: number, to: number): Decision<FleetEvent> {
  if (!Number.isSafeInteger(to) || to < 1) {
    return refuse('invalid_request', `version: expected a whole number from 1, got ${to}`);
  }
  if (to >= from) return refuse('conflict', `the log is at compiler version ${from}, and ${to} is not lower`);
  return ok([{ type: 'CompilerVersionLowered', data: { version: { from, to } } }]);
}

/** The refusal of a command, already applied, that made a touched node's snapshot too large (`docs/contract/domain.md`, Scale). */
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
