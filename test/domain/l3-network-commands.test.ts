/** Commands about L3 networks: what they write, what they assign, and when they are refused. */
import { describe, expect, it } from 'vitest';
import type { FleetCommand } from '../../src/domain/fleet/resources.js';
import type { Fleet } from '../../src/domain/fleet/fleet.js';
import { networkKey, type RequestedMember, type RequestedTunnel } from '../../src/domain/l3-network/l3-network.js';
import type { Json } from '../../src/kernel/json.js';
import * as f from '../support/fleet.js';
import * as l3 from '../support/l3-networks.js';

const [a, b, c] = [
  l3.member('a', '10.0.0.1/24'),
  l3.member('b', '10.0.0.2/24'),
  l3.member('c', '10.0.0.3/24'),
] as const;
const world = (...more: readonly FleetCommand[]): f.Scenario =>
  f.given(...['a', 'b', 'c'].map((name) => f.createNode(name)), ...l3.identity(), ...more);
const network = (fleet: Fleet, name: string) => fleet.get(networkKey, l3.networkId(name)) ?? expect.fail(name);
const json = (value: unknown): Json => value as Json;
const contexts = (fleet: Fleet, name: string) => network(fleet, name).tunnels.map(({ context_id }) => context_id);

describe('an L3 network', () => {
  it('is created with all its fields, a number, names for its interfaces and context ids', () => {
    const scenario = world();
    const revision = scenario.fleet.revision.value + 1;
    const fleet = scenario
      .when(l3.createNetwork('net', [a, { ...b, interface_name: 'wan0', features: ['gso'] }], [l3.tunnel('a', 'b')]))
      .thenEvents({
        type: 'L3NetworkCreated',
        data: {
          l3_network_id: l3.networkId('net'),
          name: 'net',
          enabled: true,
          network_id: revision + 1,
          mtu: 1380,
          credential_id: f.credentialId('identity'),
          server_name: 'l3.example',
          members: [
            { ...a, interface_name: `svc${revision + 1}` },
            { ...b, interface_name: 'wan0', features: ['gso'] },
          ],
          tunnels: [{ ...l3.tunnel('a', 'b'), context_id: 1 }],
        },
      });
    expect(network(fleet, 'net')).toMatchObject({ id: l3.networkId('net'), version: 1 });
  });

  it('is updated by its changed fields, a list as one field', () => {
    const { fleet, when } = world(l3.createNetwork('net', [a, b], [l3.tunnel('a', 'b')]));
    const { members, tunnels, network_id } = network(fleet, 'net');
    when(
      l3.updateNetwork('net', {
        name: 'net',
        mtu: 1400,
        members: [a, b, c],
        tunnels: [l3.tunnel('a', 'b'), l3.tunnel('a', 'c')],
      }),
    ).thenEvents({
      type: 'L3NetworkUpdated',
      data: {
        l3_network_id: l3.networkId('net'),
        changes: {
          mtu: { from: 1380, to: 1400 },
          members: { from: json(members), to: json([...members, { ...c, interface_name: `svc${network_id}` }]) },
          tunnels: { from: json(tunnels), to: json([...tunnels, { ...l3.tunnel('a', 'c'), context_id: 2 }]) },
        },
      },
    });
  });

  it('updated to its current values, with or without what was assigned, writes nothing', () => {
    const { fleet, when } = world(l3.createNetwork('net', [a, b], [l3.tunnel('a', 'b'), l3.tunnel('b', 'a')]));
    const { members, tunnels } = network(fleet, 'net');
    when(l3.updateNetwork('net', {})).thenNothing();
    when(l3.updateNetwork('net', { members, tunnels, enabled: true, mtu: 1380 })).thenNothing();
    when(
      l3.updateNetwork('net', { members: [a, b], tunnels: [l3.tunnel('a', 'b'), l3.tunnel('b', 'a')] }),
    ).thenNothing();
  });

  it('is deleted with all its fields, enabled or not', () => {
    const { fleet, when } = world(l3.createNetwork('net', [a, b], [l3.tunnel('a', 'b')]));
    const { id, version: _version, created_at: _created, updated_at: _updated, ...definition } = network(fleet, 'net');
    when(l3.deleteNetwork('net')).thenEvents({ type: 'L3NetworkDeleted', data: { l3_network_id: id, ...definition } });
    expect(fleet.get(networkKey, id)).toBeUndefined();
  });

  it('is not updated or deleted when If-Match does not match, or when it does not exist', () => {
    const { when } = world(l3.createNetwork('net', [a]));
    when({ ...l3.updateNetwork('net', { mtu: 1400 }), ifMatch: [2] }).thenRefused('precondition_failed', '"1"');
    when({ ...l3.deleteNetwork('net'), ifMatch: [2] }).thenRefused('precondition_failed', '"1"');
    when(l3.updateNetwork('other', { mtu: 1400 })).thenRefused('not_found', 'l3_network');
    when(l3.deleteNetwork('other')).thenRefused('not_found', 'l3_network');
    when({ ...l3.deleteNetwork('net'), ifMatch: [1] }).thenAccepted();
  });

  it('has a name that no other has', () => {
    const { when } = world(l3.createNetwork('net', [a]), l3.createNetwork('other', [b]));
    when({ ...l3.createNetwork('third', [c]), name: 'NET' }).thenRefused('conflict', 'name:', l3.networkId('net'));
    when(l3.updateNetwork('other', { name: 'Net' })).thenRefused('conflict', 'name:', l3.networkId('net'));
    when(l3.updateNetwork('net', { name: 'NET' })).thenAccepted();
  });
});

describe('the number of a network', () => {
  it('is never that of another one, not even of a deleted one', () => {
    const numbers: number[] = [];
    const { fleet, when } = world();
    for (const name of ['one', 'two', 'three']) {
      when(l3.createNetwork(name, [a])).thenAccepted();
      numbers.push(network(fleet, name).network_id);
      when(l3.deleteNetwork(name)).thenAccepted();
    }
    expect(new Set(numbers).size).toBe(3);
    for (const number of numbers) expect(number).toBeGreaterThanOrEqual(1);
  });

  it('ends at 2^31-1', () => {
    const { fleet, when } = world();
    fleet.revision.set(2 ** 31 - 3);
    when(l3.createNetwork('last', [a])).thenAccepted();
    expect(network(fleet, 'last').network_id).toBe(2 ** 31 - 1);
    when(l3.createNetwork('none', [b])).thenRefused('conflict', 'network_id', '2147483647');
    expect(network(fleet, 'last').members[0]!.interface_name.length).toBeLessThanOrEqual(15);
  });
});

describe('a context id', () => {
  const tunnels = [l3.tunnel('a', 'b'), l3.tunnel('a', 'c'), l3.tunnel('b', 'c')];

  it('is the given one, else the lowest that the network does not use', () => {
    const { fleet } = world(
      l3.createNetwork('net', [a, b, c], [tunnels[0]!, { ...tunnels[1]!, context_id: 1 }, tunnels[2]!]),
    );
    expect(contexts(fleet, 'net')).toEqual([2, 1, 3]);
  });

  it('is kept on an update for the same listener key and connector, in whatever order', () => {
    const { fleet, when } = world(l3.createNetwork('net', [a, b, c], tunnels));
    when(l3.updateNetwork('net', { tunnels: tunnels.toReversed() })).thenAccepted();
    expect(contexts(fleet, 'net')).toEqual([3, 2, 1]);
    when(l3.updateNetwork('net', { tunnels: [tunnels[2]!] })).thenAccepted();
    expect(contexts(fleet, 'net')).toEqual([3]);
    // Another port is another listener.
    when(l3.updateNetwork('net', { tunnels: [{ ...tunnels[2]!, listen_port: 444 }, tunnels[0]!] })).thenAccepted();
    expect(contexts(fleet, 'net')).toEqual([1, 2]);
  });

  it('is kept by two tunnels of one listener key and connector in their order, and left to one that asks for it', () => {
    const twice = [tunnels[0]!, tunnels[0]!];
    const { fleet, when } = world(l3.createNetwork('net', [a, b, c], twice));
    expect(contexts(fleet, 'net')).toEqual([1, 2]);
    when(l3.updateNetwork('net', { tunnels: twice })).thenNothing();
    when(l3.updateNetwork('net', { tunnels: [...twice, { ...tunnels[1]!, context_id: 1 }] })).thenAccepted();
    expect(contexts(fleet, 'net')).toEqual([2, 3, 1]);
  });

  it('is the lowest that no other enabled network uses on the same listener key', () => {
    const { fleet, when } = world(l3.createNetwork('one', [a, b], [{ ...tunnels[0]!, context_id: 2 }]));
    const both = [l3.tunnel('a', 'c'), l3.tunnel('a', 'c'), l3.tunnel('b', 'c')];
    when(l3.createNetwork('two', [a, b, c], both, { enabled: false })).thenAccepted();
    // 2 is taken on the listener of node a, and not on that of node b.
    expect(contexts(fleet, 'two')).toEqual([1, 3, 2]);
  });

  it.each([
    ['on one listener', { context_id: 7 }],
    ['on two listeners', { context_id: 7, listen_port: 444 }],
  ])('given twice in a network is refused, %s', (_, second) => {
    const twice = [l3.tunnel('a', 'b', { context_id: 7 }), l3.tunnel('a', 'c', second)];
    world()
      .when(l3.createNetwork('net', [a, b, c], twice))
      .thenRefused('invalid_request', 'tunnels[1].context_id', 'tunnels[0]');
  });

  it('of another enabled network on the same listener is refused, and free once that one is disabled', () => {
    const seven = (connector: string) => [l3.tunnel('a', connector, { context_id: 7 })];
    const { when } = world(l3.createNetwork('one', [a, b], seven('b')));
    const two = l3.createNetwork('two', [a, c], seven('c'));
    when(two).thenRefused('conflict', 'tunnels[0].context_id', 'collides with l3_network "one"', 'context id 7');
    when({ ...two, enabled: false }).thenAccepted();
    when(l3.updateNetwork('two', { enabled: true })).thenRefused('conflict', 'tunnels[0].context_id', '"one"');
    when(l3.updateNetwork('one', { enabled: false })).thenAccepted();
    when(l3.updateNetwork('two', { enabled: true })).thenAccepted();
    when(l3.updateNetwork('one', { enabled: true })).thenRefused('conflict', 'tunnels[0].context_id', '"two"');
  });
});

describe('a definition is refused', () => {
  const sixteen = 'abcdefghijklmnop';
  it.each<[string, readonly RequestedMember[], readonly RequestedTunnel[], readonly string[]]>([
    ['with a node twice', [a, { ...a, addresses: ['10.0.0.9/24'] }], [], ['members[1].node_id', 'members[0]']],
    ['with a name of 16 characters', [{ ...a, interface_name: sixteen }], [], ['members[0].interface_name', '15']],
    ['with a slash in a name', [{ ...a, interface_name: 'a/b' }], [], ['members[0].interface_name']],
    ['with a colon in a name', [{ ...a, interface_name: 'a:b' }], [], ['members[0].interface_name']],
    ['with a pattern as a name', [{ ...a, interface_name: 'tun%d' }], [], ['members[0].interface_name']],
    ['with a space in a name', [{ ...a, interface_name: 'a b' }], [], ['members[0].interface_name']],
    ['with a name that is not ASCII', [{ ...a, interface_name: 'tün' }], [], ['members[0].interface_name']],
    ['with an empty name', [{ ...a, interface_name: '' }], [], ['members[0].interface_name']],
    ['with the name of the folder', [{ ...a, interface_name: '..' }], [], ['members[0].interface_name']],
    ['with the name of the loopback', [{ ...a, interface_name: 'lo' }], [], ['members[0].interface_name']],
    ['with a name that stands for all', [{ ...a, interface_name: 'all' }], [], ['members[0].interface_name']],
    ['with an unspecified address', [l3.member('a', '0.0.0.0/0')], [], ['members[0].addresses[0]']],
    ['with a loopback address', [l3.member('a', ['10.0.0.1/8', '127.0.0.1/8'])], [], ['members[0].addresses[1]']],
    ['with a multicast address', [l3.member('a', 'ff02::1/128')], [], ['members[0].addresses[0]']],
    ['with the broadcast address', [l3.member('a', '255.255.255.255/32')], [], ['members[0].addresses[0]']],
    ['with a listener that is no member', [a, b], [l3.tunnel('c', 'a')], ['tunnels[0].listener_node_id', 'member']],
    ['with a connector that is no member', [a, b], [l3.tunnel('a', 'c')], ['tunnels[0].connector_node_id', 'member']],
    ['with a tunnel from a node to itself', [a, b], [l3.tunnel('a', 'a')], ['tunnels[0].connector_node_id']],
    [
      'with two listeners of its own that overlap',
      [a, b, c],
      [l3.tunnel('a', 'b'), l3.tunnel('b', 'c'), l3.tunnel('a', 'c', { listen_addr: '10.1.1.1' })],
      ['tunnels[2].listen_addr', 'tunnels[0]'],
    ],
  ])('%s', (_, members, tunnels, parts) => {
    const { when } = world(l3.createNetwork('old', [a, b, c]));
    when(l3.createNetwork('net', members, tunnels)).thenRefused('invalid_request', ...parts);
    when(l3.updateNetwork('old', { members, tunnels })).thenRefused('invalid_request', ...parts);
  });

  it.each(['a', 'wan0', 'tun-1.2_x', 'abcdefghijklmno', 'svc2147483647', 'x@y'])('but not with the name %s', (name) => {
    world()
      .when(l3.createNetwork('net', [{ ...a, interface_name: name }]))
      .thenAccepted();
  });

  it('when an edit of the members leaves a tunnel without one', () => {
    const { when } = world(l3.createNetwork('net', [a, b], [l3.tunnel('a', 'b')]));
    when(l3.updateNetwork('net', { members: [a, c] })).thenRefused('invalid_request', 'tunnels[0].connector_node_id');
    when(l3.updateNetwork('net', { members: [a, c], tunnels: [] })).thenAccepted();
  });

  it('when members have overlapping addresses or routes, whether the network is enabled or not', () => {
    const { when } = world(l3.createNetwork('old', [l3.member('a', '10.0.0.1/24', ['10.8.0.0/16']), b]));
    const routed = [a, l3.member('b', '10.0.0.2/24', ['10.0.0.0/31'])];
    for (const enabled of [true, false]) {
      when(l3.createNetwork('net', routed, [], { enabled })).thenRefused(
        'conflict',
        'members[1].routes[0]: 10.0.0.0/31',
        '10.0.0.1/32 of members[0].addresses[0]',
        '"a"',
      );
    }
    when(l3.updateNetwork('old', { members: routed })).thenRefused('conflict', 'members[1].routes[0]');
  });
});

describe('what a network refers to', () => {
  it.each<[string, object, readonly string[]]>([
    ['a credential that does not exist', { credential_id: f.credentialId('none') }, ['credential_id', 'there is no']],
    ['a credential of another type', { credential_id: f.credentialId('identity key') }, ['credential_id', 'x25519']],
    ['a name that the credential does not have', { server_name: 'other.example' }, ['server_name', '"identity"']],
    ['a node that does not exist', { members: [a, l3.member('nowhere', '10.0.0.9/24')] }, ['members[1].node_id']],
  ])('is refused with %s', (_, fields, parts) => {
    const { when } = world(l3.createNetwork('old', [a]));
    when(l3.createNetwork('net', [a], [], fields)).thenRefused('invalid_request', ...parts);
    when(l3.updateNetwork('old', fields)).thenRefused('invalid_request', ...parts);
  });

  it.each([true, false])('cannot be deleted, with enabled %s', (enabled) => {
    const { when } = world(l3.createNetwork('net', [a, b], [], { enabled }));
    const named = 'l3_network "net"';
    when({ type: 'DeleteNode', id: f.nodeId('b'), ifMatch: undefined }).thenRefused('conflict', 'node "b"', named);
    when(f.deleteCredential('identity')).thenRefused('conflict', named);
    when(l3.updateNetwork('net', { members: [a] })).thenAccepted();
    when({ type: 'DeleteNode', id: f.nodeId('b'), ifMatch: undefined }).thenAccepted();
    when(l3.deleteNetwork('net')).thenAccepted();
    when(f.deleteCredential('identity')).thenAccepted();
  });

  it('keeps the names that networks have, enabled or not: an edit of the credential names all of them', () => {
    const edit = (server_names: readonly string[]): FleetCommand => f.updateCredential('identity', { server_names });
    const { when } = world(
      l3.createNetwork('one', [a]),
      l3.createNetwork('two', [b], [], { enabled: false }),
      edit(['l3.example', 'more.example']),
    );
    when(edit(['more.example'])).thenRefused('conflict', 'server_names', '"l3.example"', '"one"', '"two"');
    when(l3.updateNetwork('one', { server_name: 'more.example' })).thenAccepted();
    when(edit(['more.example'])).thenRefused('conflict', 'l3_network "two"');
    when(l3.deleteNetwork('two')).thenAccepted();
    when(edit(['more.example'])).thenAccepted();
  });
});

describe('a listener', () => {
  const one = l3.createNetwork('one', [a, b], [l3.tunnel('a', 'b')]);
  const two = l3.createNetwork('two', [a, c], [l3.tunnel('a', 'c')]);

  it('is shared by tunnels of several networks that use one credential, by whatever names of it', () => {
    const names = ['l3.example', 'other.example'];
    const shared = f.given(
      ...['a', 'b', 'c'].map((name) => f.createNode(name)),
      ...l3.identity('identity', names),
      one,
      { ...two, server_name: 'other.example' },
    );
    expect(contexts(shared.fleet, 'one')).toEqual([1]);
    expect(contexts(shared.fleet, 'two')).toEqual([2]);
  });

  it('is not shared with a tunnel of another credential, on creation, edit or enabling', () => {
    const { when } = world(...l3.identity('another'), one);
    const another = { ...two, credential_id: f.credentialId('another') };
    const parts = ['tunnels[0].listen_port', 'udp listener 0.0.0.0 port 443', '"a"', 'l3_network "one"'];
    when(another).thenRefused('conflict', ...parts);
    when({ ...another, enabled: false }).thenAccepted();
    when(l3.updateNetwork('two', { enabled: true })).thenRefused('conflict', ...parts);
    when(l3.updateNetwork('two', { enabled: true, credential_id: f.credentialId('identity') })).thenAccepted();
    when(l3.updateNetwork('two', { credential_id: f.credentialId('another') })).thenRefused('conflict', ...parts);
    when(l3.updateNetwork('one', { credential_id: f.credentialId('another') })).thenRefused('conflict', '"two"');
    when(l3.deleteNetwork('one')).thenAccepted();
    when(l3.updateNetwork('two', { credential_id: f.credentialId('another') })).thenAccepted();
  });

  it('may have another address that overlaps no other one, and lives beside the UDP fallback', () => {
    const { when } = world(one, f.createChain('chain', [f.udpHop('a', 443)]));
    when({ ...two, tunnels: [l3.tunnel('a', 'c', { listen_addr: '10.1.1.1' })] }).thenRefused(
      'conflict',
      'tunnels[0].listen_port',
      'on 0.0.0.0',
    );
    when({ ...two, tunnels: [l3.tunnel('a', 'c', { listen_addr: 'fd01::1' })] }).thenAccepted();
  });

  it('is claimed by no disabled network', () => {
    const { fleet, when } = world(...l3.identity('another'), { ...one, enabled: false });
    when({ ...two, credential_id: f.credentialId('another') }).thenAccepted();
    expect([...fleet.claims.addresses(f.nodeId('a'), 'udp', 443)]).toEqual(['0.0.0.0']);
    when(l3.deleteNetwork('two')).thenAccepted();
    expect(Object.values(fleet.claimEntries).flatMap((index) => [...index.keys()])).toEqual([]);
  });
});

describe('the name of an interface', () => {
  const named = (name: string, fields: object = {}): FleetCommand =>
    l3.createNetwork(name, [{ ...a, interface_name: 'wan0' }], [], fields);

  it('is that of one enabled network on a node', () => {
    const { when } = world(named('one'));
    when(named('two')).thenRefused('conflict', 'members[0].interface_name', '"wan0"', '"a"', 'l3_network "one"');
    when(named('two', { enabled: false })).thenAccepted();
    when(l3.updateNetwork('two', { enabled: true })).thenRefused('conflict', 'members[0].interface_name');
    when(l3.updateNetwork('two', { enabled: true, members: [{ ...b, interface_name: 'wan0' }] })).thenAccepted();
    when(l3.updateNetwork('two', { members: [b, { ...a, interface_name: 'wan0' }] })).thenRefused(
      'conflict',
      'members[1]',
    );
    when(l3.updateNetwork('one', { enabled: false })).thenAccepted();
    when(l3.updateNetwork('two', { members: [b, { ...a, interface_name: 'wan0' }] })).thenAccepted();
  });
});

describe('a listener without an address to dial', () => {
  const report = (public_ipv4: string | null): FleetCommand => ({
    type: 'ReportNodeAddress',
    id: f.nodeId('a'),
    public_ipv4,
    public_ipv6: null,
  });
  const net = l3.createNetwork('net', [a, b], [l3.tunnel('a', 'b')]);
  const unknown = (...more: readonly FleetCommand[]): f.Scenario =>
    f.given(f.createNode('a', { address: null }), f.createNode('b'), f.createNode('c'), ...l3.identity(), ...more);

  it('is refused on saving what is live when saved, and on enabling', () => {
    const { when } = unknown({ ...net, enabled: false });
    const parts = ['tunnels[0].listener_node_id', '"a"'];
    when({ ...net, id: l3.networkId('other'), name: 'other' }).thenRefused('conflict', ...parts);
    when(l3.updateNetwork('net', { mtu: 1400 })).thenAccepted();
    when(l3.updateNetwork('net', { enabled: true })).thenRefused('conflict', ...parts);
    when(l3.updateNetwork('net', { enabled: true, tunnels: [l3.tunnel('b', 'a')] })).thenAccepted();
    when(l3.updateNetwork('net', { tunnels: [l3.tunnel('b', 'a'), l3.tunnel('a', 'b')] })).thenRefused(
      'conflict',
      'tunnels[1].listener_node_id',
    );
    when(report('203.0.113.1')).thenAccepted();
    when(l3.updateNetwork('net', { tunnels: [l3.tunnel('b', 'a'), l3.tunnel('a', 'b')] })).thenAccepted();
  });

  it('does not come of a command: it is refused and names the networks that dial the node', () => {
    const { when } = unknown(report('203.0.113.1'), net, l3.createNetwork('two', [b, c], [l3.tunnel('b', 'c')]));
    when(report(null)).thenRefused('conflict', 'node "a"', 'l3_network "net"');
    when(f.updateNode('b', { address: null })).thenRefused('conflict', 'node "b"', 'l3_network "two"');
    when(l3.updateNetwork('net', { enabled: false })).thenAccepted();
    when(report(null)).thenAccepted();
  });
});
