/** Which resource a fleet event is about: for idempotent answers, versions and the audit. */
import { unreachable } from '../../kernel/errors.js';
import type { FleetEvent } from './events.js';

export type FleetResourceType = 'node' | 'l4_upstream' | 'l4_chain' | 'connectivity' | 'service';

export function resourceOf(event: FleetEvent): { readonly type: FleetResourceType; readonly id: string } {
  switch (event.type) {
    case 'NodeCreated':
    case 'NodeUpdated':
    case 'NodeDeleted':
    case 'NodePskIssued':
    case 'NodeConfigRefreshed':
    case 'NodeReportedAddressChanged':
    case 'NodeGenerationRaised':
    case 'NodeCommandQueued':
      return { type: 'node', id: event.data.node_id };
    case 'UpstreamCreated':
    case 'UpstreamUpdated':
    case 'UpstreamDeleted':
      return { type: 'l4_upstream', id: event.data.upstream_id };
    case 'ChainCreated':
    case 'ChainUpdated':
    case 'ChainDeleted':
    case 'ChainDeployed':
      return { type: 'l4_chain', id: event.data.chain_id };
    case 'ConnectivityUpdated':
      return { type: 'connectivity', id: 'connectivity' };
    case 'CompilerVersionRaised':
    case 'CompilerVersionLowered':
      return { type: 'service', id: 'compiler' };
    default:
      return unreachable(event);
  }
}
