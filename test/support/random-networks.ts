/** Random L3 networks for histories: mostly acceptable, and sometimes with what is refused. */
import type { FleetCommand } from '../../src/domain/fleet/resources.js';
import type { Fleet } from '../../src/domain/fleet/fleet.js';
import type {
  NetworkState,
  RequestedMember,
  RequestedNetwork,
  RequestedTunnel,
} from '../../src/domain/l3-network/l3-network.js';
import type { IfMatch } from '../../src/domain/resource/refusal.js';
import { uuidFromName } from '../../src/kernel/ids.js';
import type { Dealer } from './dealer.js';

const ports = [443, 9000, 9001];
const listenAddrs = ['0.0.0.0', '0.0.0.0', '0.0.0.0', '::', '10.0.0.1', '10.0.0.2', 'fd00::1'];

/** Undefined while there is no REALITY credential or only one node. */
export function createNetwork(
  fleet: Fleet,
  deal: Dealer,
  id: string,
  name: string,
  nodes: readonly string[],
): FleetCommand | undefined {
  const identity = identityOf(fleet, deal);
  if (identity === undefined || nodes.length < 2) return undefined;
  const members = someMembers(deal, nodes);
  return {
    type: 'CreateL3Network',
    id,
    name,
    enabled: deal.chance(80),
    mtu: deal.of([1380, 1380, 1500]),
    ...identity,
    members,
    tunnels: someTunnels(deal, members),
  };
}

/** An edit of some fields; tunnels are often kept, with their context ids or without. */
export function editNetwork(
  fleet: Fleet,
  deal: Dealer,
  network: NetworkState,
  ifMatch: IfMatch,
  name: string,
  nodes: readonly string[],
): FleetCommand {
  const members = deal.chance(30) ? someMembers(deal, nodes) : undefined;
  const tunnels = deal.chance(40) ? [...keptTunnels(deal, network), ...someTunnels(deal, network.members)] : undefined;
  return {
    type: 'UpdateL3Network',
    id: network.id,
    ifMatch,
    ...(deal.chance(15) ? { name } : {}),
    ...(deal.chance(35) ? { enabled: !network.enabled } : {}),
    ...(deal.chance(10) ? { mtu: deal.of([1380, 1400]) } : {}),
    ...(deal.chance(15) ? identityOf(fleet, deal) : {}),
    ...(members === undefined ? {} : { members, tunnels: someTunnels(deal, members) }),
    ...(members === undefined && tunnels !== undefined ? { tunnels } : {}),
  };
}

/** A credential with one of its names; rarely another name. */
function identityOf(fleet: Fleet, deal: Dealer): Pick<RequestedNetwork, 'credential_id' | 'server_name'> | undefined {
  const all = [...fleet.tables.credential.values()].filter(({ key_type }) => key_type === 'reality');
  if (all.length === 0) return undefined;
  const { id, server_names } = deal.of(all.sort((a, b) => (a.id < b.id ? -1 : 1)));
  return { credential_id: id, server_name: deal.chance(3) ? 'unheard.example' : deal.of(server_names) };
}

/** Each node has addresses and routes of its own, but for a few that are equal, overlap or are a default route. */
function someMembers(deal: Dealer, nodes: readonly string[]): readonly RequestedMember[] {
  const rest = nodes.map((node_id, at) => ({ node_id, at: at + 1 }));
  return Array.from({ length: Math.min(nodes.length, 2 + deal.upTo(2)) }, (): RequestedMember => {
    const [chosen = { node_id: '', at: 0 }] = rest.splice(deal.upTo(rest.length - 1), 1);
    if (deal.chance(2)) rest.push(chosen);
    const at = deal.chance(3) ? 1 : chosen.at;
    return {
      node_id: deal.chance(2) ? uuidFromName('nowhere') : chosen.node_id,
      ...(deal.chance(20) ? { interface_name: deal.of(['wan0', 'wan1']) } : {}),
      addresses: deal.of([[`10.7.0.${at}/24`], [`fd07::${at}/64`], [`10.7.0.${at}/24`, `fd07::${at}/64`]]),
      routes: [
        ...(deal.chance(40) ? [`10.8.${at}.0/24`] : []),
        ...(deal.chance(10) ? [deal.of(['0.0.0.0/0', '::/0'])] : []),
        ...(deal.chance(4) ? [deal.of(['10.8.0.0/16', '10.7.0.0/29'])] : []),
      ],
      ...(deal.chance(15) ? { features: ['gso'] } : {}),
    };
  });
}

function someTunnels(deal: Dealer, members: readonly Pick<RequestedMember, 'node_id'>[]): readonly RequestedTunnel[] {
  return Array.from({ length: deal.upTo(3) }, (): RequestedTunnel => {
    const [one, other] = [deal.of(members).node_id, deal.of(members).node_id];
    const another = members.find(({ node_id }) => node_id !== one)?.node_id ?? '';
    return {
      listener_node_id: one,
      listen_addr: deal.of(listenAddrs),
      listen_port: deal.of(ports),
      connector_node_id: one === other && deal.chance(95) ? another : other,
      ...(deal.chance(15) ? { context_id: 1 + deal.upTo(3) } : {}),
    };
  });
}

function keptTunnels(deal: Dealer, { tunnels }: NetworkState): readonly RequestedTunnel[] {
  return tunnels
    .filter(() => deal.chance(75))
    .map(({ context_id, ...ends }) => (deal.chance(50) ? { ...ends, context_id } : ends));
}
