/** Commands about L3 networks, and the REALITY identity that they need, for tests of the fleet. */
import type { FleetCommand } from '../../src/domain/fleet/resources.js';
import type { RequestedMember, RequestedTunnel } from '../../src/domain/l3-network/l3-network.js';
import { uuidFromName } from '../../src/kernel/ids.js';
import * as f from './fleet.js';

type Of<T extends FleetCommand['type']> = Extract<FleetCommand, { readonly type: T }>;
type Fields<C> = Partial<Omit<C, 'type' | 'id'>>;

export const networkId = (name: string): string => uuidFromName(`l3 network ${name}`);

/** A REALITY credential over a key pair `<name> key`. */
export function identity(name = 'identity', server_names: readonly string[] = ['l3.example']): readonly FleetCommand[] {
  const target_host = 'camouflage.example';
  return [
    f.createX25519(`${name} key`),
    f.createReality(name, `${name} key`, { server_names, short_ids: ['0a1b', ''], target_host }),
  ];
}

export function member(
  node: string,
  addresses: string | readonly string[],
  routes: readonly string[] = [],
  fields: Pick<RequestedMember, 'interface_name' | 'features'> = {},
): RequestedMember {
  return { node_id: f.nodeId(node), addresses: [addresses].flat(), routes, ...fields };
}

/** A tunnel on port 443 of the listener, unless fields say otherwise. */
export function tunnel(listener: string, connector: string, fields: Partial<RequestedTunnel> = {}): RequestedTunnel {
  const ends = { listener_node_id: f.nodeId(listener), connector_node_id: f.nodeId(connector) };
  return { listen_addr: '0.0.0.0', listen_port: 443, ...ends, ...fields };
}

export function createNetwork(
  name: string,
  members: readonly RequestedMember[],
  tunnels: readonly RequestedTunnel[] = [],
  fields: Fields<Of<'CreateL3Network'>> = {},
): Of<'CreateL3Network'> {
  return {
    type: 'CreateL3Network',
    id: networkId(name),
    name,
    enabled: true,
    mtu: 1380,
    credential_id: f.credentialId('identity'),
    server_name: 'l3.example',
    members,
    tunnels,
    ...fields,
  };
}

export function updateNetwork(name: string, fields: Fields<Of<'UpdateL3Network'>>): Of<'UpdateL3Network'> {
  return { type: 'UpdateL3Network', id: networkId(name), ifMatch: undefined, ...fields };
}

export function deleteNetwork(name: string): Of<'DeleteL3Network'> {
  return { type: 'DeleteL3Network', id: networkId(name), ifMatch: undefined };
}
