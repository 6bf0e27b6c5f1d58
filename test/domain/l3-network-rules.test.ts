/** What L3 networks put into snapshots, which nodes an edit touches, and the listeners that they intend. */
import { describe, expect, it } from 'vitest';
import { compileNode } from '../../src/domain/compile/compile-node.js';
import type { Fleet } from '../../src/domain/fleet/fleet.js';
import type { FleetCommand } from '../../src/domain/fleet/resources.js';
import { networkKey } from '../../src/domain/l3-network/l3-network.js';
import { intendedListeners } from '../../src/domain/port-table/port-table.js';
import type { L3TunnelRule } from '../../src/domain/snapshot/snapshot.js';
import { streams } from '../../src/kernel/event.js';
import * as f from '../support/fleet.js';
import * as l3 from '../support/l3-networks.js';

const rulesOn = (fleet: Fleet, node: string): readonly L3TunnelRule[] => compileNode(fleet, f.nodeId(node)).l3_rules;

const hub = l3.member('hub', ['10.0.0.1/24', 'fd00::1/64'], ['0.0.0.0/0'], { features: ['gso', 'multi_queue'] });
const site = l3.member('site', '10.0.0.2/24', ['192.168.7.0/24', '10.0.0.2/32'], { interface_name: 'wan0' });
const phone = l3.member('phone', 'fd00::3/128');

/** Three members: the hub listens for the site, and the site for the phone. */
const world = (...more: readonly FleetCommand[]): f.Scenario =>
  f.given(
    f.createNode('hub', { address: 'hub.example' }),
    f.createNode('site', { address: '2001:db8::2' }),
    f.createNode('phone', { address: null }),
    f.createNode('idle'),
    ...l3.identity(),
    l3.createNetwork(
      'net',
      [hub, site, phone, l3.member('idle', '10.0.0.9/24')],
      [
        l3.tunnel('hub', 'site', { listen_addr: '::', context_id: 10 }),
        l3.tunnel('site', 'phone', { listen_addr: '10.1.1.1', listen_port: 8443 }),
      ],
      { mtu: 1400 },
    ),
    ...more,
  );

/** The fifth event after four nodes and two credentials: revision 6, number 7. */
const number = '7';

describe('a network of three members compiles to', () => {
  const id = l3.networkId('net');
  const common = {
    origin: { resource_type: 'l3_network', resource_id: id, resource_name: 'net', hop_index: 0 },
    network_id: number,
    network_name: 'net',
    transport_profile: { payload: 'IP', outer: 'QUIC', security: 'REALITY' },
  };
  const inbound = {
    private_key: {
      secret: f.sealedKey('identity key'),
      stream: streams.fleet,
      resource_id: f.credentialId('identity key'),
      field: 'private_key',
    },
    server_names: ['l3.example'],
    short_ids: ['0a1b', ''],
    target_host: 'camouflage.example',
    target_port: 443,
  };
  const outbound = { public_key: f.publicKey('identity key'), server_name: 'l3.example', short_id: '0a1b' };
  const onSite = { interface_name: 'wan0', address_family: 'IPV4', prefixes: ['10.0.0.2/24'], mtu: 1400, features: [] };
  const onHub = {
    interface_name: `svc${number}`,
    address_family: 'DUAL',
    prefixes: ['10.0.0.1/24', 'fd00::1/64'],
    mtu: 1400,
    features: ['gso', 'multi_queue'],
  };
  const onPhone = {
    interface_name: `svc${number}`,
    address_family: 'IPV6',
    prefixes: ['fd00::3/128'],
    mtu: 1400,
    features: [],
  };

  it('a listener on the hub', () => {
    expect(rulesOn(world().fleet, 'hub')).toEqual([
      {
        ...common,
        rule_id: `${id}/10/listener`,
        local_endpoint: '[::]:443',
        peer_endpoint: '',
        routes: ['192.168.7.0/24', '10.0.0.2/32'],
        allowed_sources: ['10.0.0.2/32', '192.168.7.0/24'],
        tun: onHub,
        reality_inbound: inbound,
        reality_outbound: null,
        datagram_context_id: 10,
        role: 'LISTENER',
      },
    ]);
  });

  it('a listener and a connector on the site', () => {
    expect(rulesOn(world().fleet, 'site')).toEqual([
      {
        ...common,
        rule_id: `${id}/1/listener`,
        local_endpoint: '10.1.1.1:8443',
        peer_endpoint: '',
        routes: [],
        allowed_sources: ['fd00::3/128'],
        tun: onSite,
        reality_inbound: inbound,
        reality_outbound: null,
        datagram_context_id: 1,
        role: 'LISTENER',
      },
      {
        ...common,
        rule_id: `${id}/10/connector`,
        local_endpoint: '',
        peer_endpoint: 'hub.example:443',
        routes: ['0.0.0.0/0'],
        allowed_sources: ['10.0.0.1/32', 'fd00::1/128', '0.0.0.0/0'],
        tun: onSite,
        reality_inbound: null,
        reality_outbound: outbound,
        datagram_context_id: 10,
        role: 'CONNECTOR',
      },
    ]);
  });

  it('a connector on the phone, and nothing on a member without a tunnel', () => {
    const { fleet } = world();
    expect(rulesOn(fleet, 'phone')).toEqual([
      {
        ...common,
        rule_id: `${id}/1/connector`,
        local_endpoint: '',
        peer_endpoint: '[2001:db8::2]:8443',
        routes: ['192.168.7.0/24', '10.0.0.2/32'],
        allowed_sources: ['10.0.0.2/32', '192.168.7.0/24'],
        tun: onPhone,
        reality_inbound: null,
        reality_outbound: outbound,
        datagram_context_id: 1,
        role: 'CONNECTOR',
      },
    ]);
    expect(rulesOn(fleet, 'idle')).toEqual([]);
  });
});

describe('an edit touches exactly the nodes whose rules it changes:', () => {
  const tunnels = [
    l3.tunnel('hub', 'site', { listen_addr: '::' }),
    l3.tunnel('site', 'phone', { listen_addr: '10.1.1.1', listen_port: 8443 }),
  ];
  const idle = l3.member('idle', '10.0.0.9/24');
  const members = (...changed: readonly ReturnType<typeof l3.member>[]) => ({ members: changed });

  it.each<[string, FleetCommand, readonly string[]]>([
    ['its name, those with a tunnel', l3.updateNetwork('net', { name: 'renamed' }), ['hub', 'site', 'phone']],
    ['its mtu, those with a tunnel', l3.updateNetwork('net', { mtu: 1500 }), ['hub', 'site', 'phone']],
    ['disabled, those with a tunnel', l3.updateNetwork('net', { enabled: false }), ['hub', 'site', 'phone']],
    ['deleted, those with a tunnel', l3.deleteNetwork('net'), ['hub', 'site', 'phone']],
    [
      'the features of a member, that node',
      l3.updateNetwork('net', members(hub, site, { ...phone, features: ['gso'] }, idle)),
      ['phone'],
    ],
    [
      'the name of an interface, that node',
      l3.updateNetwork('net', members({ ...hub, interface_name: 'x' }, site, phone, idle)),
      ['hub'],
    ],
    [
      'the prefix length of an address, that node',
      l3.updateNetwork('net', members({ ...hub, addresses: ['10.0.0.1/25', 'fd00::1/64'] }, site, phone, idle)),
      ['hub'],
    ],
    [
      'an address of a member, that node and those at the other ends',
      l3.updateNetwork('net', members(hub, site, l3.member('phone', 'fd00::4/128'), idle)),
      ['phone', 'site'],
    ],
    [
      'the routes of a member, those at the other ends',
      l3.updateNetwork('net', members(hub, { ...site, routes: [] }, phone, idle)),
      ['hub', 'phone'],
    ],
    ['a member without a tunnel, none', l3.updateNetwork('net', members(hub, site, phone)), []],
    [
      'the order of members and tunnels, none',
      l3.updateNetwork('net', { members: [idle, phone, site, hub], tunnels: tunnels.toReversed() }),
      [],
    ],
    ['a tunnel that ends, its ends', l3.updateNetwork('net', { tunnels: tunnels.slice(0, 1) }), ['site', 'phone']],
    [
      'a new tunnel, its ends',
      l3.updateNetwork('net', { tunnels: [...tunnels, l3.tunnel('idle', 'phone')] }),
      ['idle', 'phone'],
    ],
    [
      'the port of a listener, both ends',
      l3.updateNetwork('net', { tunnels: [tunnels[0]!, { ...tunnels[1]!, listen_port: 1, context_id: 1 }] }),
      ['site', 'phone'],
    ],
    [
      'the address that a listener listens on, that node',
      l3.updateNetwork('net', { tunnels: [tunnels[0]!, { ...tunnels[1]!, listen_addr: '0.0.0.0', context_id: 1 }] }),
      ['site'],
    ],
    ['the address of a node, those that dial it', f.updateNode('site', { address: 'moved.example' }), ['phone']],
    ['the address of a node that nobody dials, none', f.updateNode('phone', { address: 'moved.example' }), []],
    [
      'a new key, both roles',
      f.updateCredential('identity key', { public_key: f.publicKey('new'), private_key: f.sealedKey('new') }),
      ['hub', 'site', 'phone'],
    ],
    ['the camouflage target, the listeners', f.updateCredential('identity', { target_port: 8443 }), ['hub', 'site']],
    ['the first short id, both roles', f.updateCredential('identity', { short_ids: ['ff'] }), ['hub', 'site', 'phone']],
    ['another short id, the listeners', f.updateCredential('identity', { short_ids: ['0a1b'] }), ['hub', 'site']],
    [
      'more names of the credential, none',
      f.updateCredential('identity', { server_names: ['l3.example', 'x.example'] }),
      [],
    ],
    ['the name of the credential, none', f.updateCredential('identity', { name: 'renamed' }), []],
  ])('%s', (_, command, expected) => {
    const [touched] = f.performAll(world().fleet, [command]);
    expect([...touched!].sort()).toEqual(expected.map(f.nodeId).sort());
  });

  it.each<[string, FleetCommand]>([
    ['an edit', l3.updateNetwork('net', { mtu: 1500 })],
    ['a delete', l3.deleteNetwork('net')],
    ['a new key', f.updateCredential('identity', { short_ids: ['ff'] })],
    ['an address', f.updateNode('site', { address: 'moved.example' })],
  ])('of a disabled network, none by %s', (_, command) => {
    const { fleet } = world(l3.updateNetwork('net', { enabled: false }));
    const [touched] = f.performAll(fleet, [command]);
    expect([...touched!]).toEqual([]);
  });

  it('a node whose address is unknown again is dialled by nobody, and touches those that did', () => {
    const { fleet } = world();
    // What no command leads to, but a log could hold.
    const touched = f.append(fleet, {
      type: 'NodeUpdated',
      data: { node_id: f.nodeId('site'), changes: { address: { from: '2001:db8::2', to: null } } },
    });
    expect([...touched]).toEqual([f.nodeId('phone')]);
    expect(rulesOn(fleet, 'phone')).toEqual([]);
    expect(rulesOn(fleet, 'site')).toHaveLength(2);
  });
});

describe('the port table', () => {
  const intended = (fleet: Fleet, node: string) => intendedListeners(fleet, f.nodeId(node));

  it('has one route for each tunnel of an enabled network, which leads to the interface of the listener', () => {
    const more = [
      l3.createNetwork(
        'other',
        [l3.member('hub', '10.9.0.1/24'), l3.member('idle', '10.9.0.2/24')],
        [l3.tunnel('hub', 'idle', { listen_addr: '::' }), l3.tunnel('hub', 'idle', { listen_addr: '::' })],
      ),
    ];
    const { fleet } = world(...more);
    const route = { source: 'l3_network', resourceType: 'l3_network', matchKind: 'l3_context', deployed: true };
    const ofOther = {
      ...route,
      sourceLabel: 'other',
      resourceName: 'other',
      nextHop: `svc${fleet.get(networkKey, l3.networkId('other'))?.network_id}`,
      resourceId: l3.networkId('other'),
    };
    expect(intended(fleet, 'hub')).toEqual([
      {
        nodeId: f.nodeId('hub'),
        transport: 'udp',
        listenAddr: '::',
        listenPort: 443,
        routes: [
          { ...ofOther, matchValue: '1' },
          {
            ...route,
            sourceLabel: 'net',
            resourceName: 'net',
            matchValue: '10',
            nextHop: `svc${number}`,
            resourceId: l3.networkId('net'),
          },
          { ...ofOther, matchValue: '2' },
        ],
      },
    ]);
    expect(intended(fleet, 'site')).toMatchObject([
      { listenPort: 8443, routes: [{ matchValue: '1', nextHop: 'wan0' }] },
    ]);
    expect(intended(fleet, 'phone')).toEqual([]);
  });
});
