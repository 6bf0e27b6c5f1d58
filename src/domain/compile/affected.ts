/**
 * Which nodes' configuration an event touches, seen from the fleet before it. Kept beside the compiler because it must
 * name every node whose output changes, and a property test holds it to that (`docs/contract/domain.md#generation`).
 */
import { unreachable } from '../../kernel/errors.js';
import type { ChainState } from '../chain/chain.js';
import { nodesOf, upstreamOf } from '../chain/status.js';
import type { Fleet } from '../fleet/fleet.js';
import type { FleetEvent } from '../fleet/events.js';
import { dialAddress, evolveNode } from '../node/evolve.js';
import { evolveSettings, nodesInReach } from '../settings/evolve.js';
import { effectiveMultiplex } from '../settings/settings.js';

/** Ids of the touched nodes. A deleted node is not among them: it has no configuration any more. */
export function affectedNodes(fleet: Fleet, event: FleetEvent, at: string): Iterable<string> {
  switch (event.type) {
    case 'NodeCreated':
    case 'NodeConfigRefreshed':
    case 'NodeGenerationRaised':
      return [event.data.node_id];
    case 'NodeDeleted':
    case 'NodePskIssued':
    case 'NodeCommandQueued':
      return [];
    case 'NodeUpdated':
    case 'NodeReportedAddressChanged':
      return diallersIfMoved(fleet, event, at);
    case 'UpstreamCreated':
    case 'UpstreamDeleted':
      return [];
    case 'UpstreamUpdated':
      return lastHopsInto(fleet, event.data.upstream_id);
    case 'ChainCreated':
      return [];
    case 'ChainUpdated':
      return chainUpdate(fleet.chains.get(event.data.chain_id), event.data.changes);
    case 'ChainDeleted':
      return liveNodes(fleet.chains.get(event.data.chain_id));
    case 'ChainDeployed':
      return nodesOf(event.data.definition.from, event.data.definition.to);
    case 'ConnectivityUpdated': {
      const before = fleet.settings.value;
      const after = evolveSettings(before, event, at);
      return [...nodesInReach(event.data.changes, fleet.nodes.ids())].filter((id) => {
        const [from, to] = [effectiveMultiplex(before, id), effectiveMultiplex(after, id)];
        return from.multiplex !== to.multiplex || from.multiplex_port !== to.multiplex_port;
      });
    }
    case 'CompilerVersionRaised':
    case 'CompilerVersionLowered':
      return [...fleet.nodes.ids()];
    default:
      return unreachable(event);
  }
}

function liveNodes(chain: ChainState | undefined): readonly string[] {
  return chain === undefined || !chain.enabled ? [] : nodesOf(chain.deployed);
}

/** Only `enabled` and the name, which rules carry as their origin, are live without a deploy. */
function chainUpdate(chain: ChainState | undefined, changes: { readonly [field: string]: unknown }): readonly string[] {
  if (chain === undefined) return [];
  if (changes['enabled'] !== undefined) return nodesOf(chain.deployed);
  return changes['name'] === undefined ? [] : liveNodes(chain);
}

function lastHopsInto(fleet: Fleet, upstreamId: string): Set<string> {
  const touched = new Set<string>();
  for (const owner of fleet.references.get(`l4_upstream/${upstreamId}`)) {
    const chain = fleet.chains.get(owner.slice(owner.indexOf('/') + 1));
    if (chain?.enabled !== true || chain.deployed === null || upstreamOf(chain.deployed) !== upstreamId) continue;
    const last = chain.deployed.hops.at(-1);
    if (last !== undefined) touched.add(last.node_id);
  }
  return touched;
}

/** Live chains that dial a node by its own address, with the hop that dials: those without a `dial_addr` of their own. */
export function liveDiallers(fleet: Fleet, nodeId: string): readonly { chain: ChainState; diallerId: string }[] {
  const found: { chain: ChainState; diallerId: string }[] = [];
  for (const chainId of fleet.deployedOn.get(nodeId)) {
    const chain = fleet.chains.get(chainId);
    if (chain?.enabled !== true || chain.deployed === null) continue;
    const { hops } = chain.deployed;
    const index = hops.findIndex((hop) => hop.node_id === nodeId);
    const previous = hops[index - 1];
    if (previous !== undefined && hops[index]?.dial_addr === undefined) {
      found.push({ chain, diallerId: previous.node_id });
    }
  }
  return found;
}

function diallersIfMoved(
  fleet: Fleet,
  event: Extract<FleetEvent, { type: 'NodeUpdated' | 'NodeReportedAddressChanged' }>,
  at: string,
): readonly string[] {
  // Most edits are of names and labels: nobody dials those.
  if (event.type === 'NodeUpdated' && event.data.changes['address'] === undefined) return [];
  const before = fleet.nodes.get(event.data.node_id);
  const after = evolveNode(before, event, at, '');
  if (before === undefined || after === undefined || dialAddress(before) === dialAddress(after)) return [];
  return liveDiallers(fleet, before.id).map((dialler) => dialler.diallerId);
}
