/**
 * A log that no command of this service leads to: definitions that refer to what is missing or of another type. Compiling
 * such a fleet gives no rule for what is incomplete, never a rule with a hole in it, and throws nothing.
 */
import { describe, expect, it } from 'vitest';
import type { ChainDefinition, Hop } from '../../src/domain/chain/chain.js';
import { compileNode } from '../../src/domain/compile/compile-node.js';
import type { Fleet } from '../../src/domain/fleet/fleet.js';
import { networkRulesOn, nodesWithOtherRules } from '../../src/domain/l3-network/rules.js';
import type { NetworkState } from '../../src/domain/l3-network/l3-network.js';
import { intendedListeners } from '../../src/domain/port-table/port-table.js';
import * as f from '../support/fleet.js';
import * as l3 from '../support/l3-networks.js';

const nodes = ['a', 'b'].map((name) => f.createNode(name));
const credentials = [
  f.createX25519('keys'),
  f.createReality('identity', 'keys'),
  f.createTlsCert('cert'),
  f.createTlsCert('wild', f.rotatedTo('wild', { subject_alt_names: ['*.wild.example'] })),
];

/** A deployed chain as a log may hold it, without any decision. */
function fleetWith({ payload, hops, target }: ChainDefinition): Fleet {
  const { fleet } = f.given(...nodes, ...credentials);
  const fields = { name: 'one', description: null, enabled: true };
  f.append(
    fleet,
    { type: 'ChainCreated', data: { chain_id: f.chainId('one'), ...fields, payload, hops, target } },
    {
      type: 'ChainDeployed',
      data: {
        chain_id: f.chainId('one'),
        chain_version: 1,
        definition: { from: null, to: { payload, hops, target } },
        nodes: [],
      },
    },
  );
  return fleet;
}

/** How many rules a node has. */
function rulesOn(fleet: Fleet, node: string): number {
  const { tcp_proxy_rules, quic_rules, udp_rules } = compileNode(fleet, f.nodeId(node));
  return tcp_proxy_rules.length + quic_rules.length + udp_rules.length;
}

const target = { endpoint: '192.0.2.1:80' };
const id = f.credentialId;

describe('a hop whose credential', () => {
  const kinds: readonly (readonly [string, Partial<Hop>, good: string])[] = [
    ['TLS', { security: 'tls' }, 'cert'],
    ['REALITY', { security: 'reality' }, 'identity'],
    ['REALITY over QUIC', { outer: 'quic', security: 'reality' }, 'identity'],
    ['Noise', { outer: 'udp', security: 'noise' }, 'keys'],
    ['Noise over FAKE_TCP', { outer: 'fake_tcp', security: 'noise' }, 'keys'],
  ];
  const all = ['keys', 'identity', 'cert', 'nowhere', undefined] as const;
  const cases = kinds.flatMap(([kind, hop, good]) => all.map((name) => [name, kind, hop, name === good] as const));

  it.each(cases)('is %s has a rule, with %s, only if it fits, and so has its dialler', (name, _, fields, fits) => {
    const credential = name === undefined ? {} : { credential_id: id(name) };
    const payload = fields.security === 'noise' ? 'udp' : 'tcp';
    const dialler = payload === 'udp' ? f.udpHop('a', 80) : f.hop('a', 80);
    const fleet = fleetWith({ payload, hops: [dialler, f.hop('b', 80, { ...fields, ...credential })], target });
    expect(['a', 'b'].map((node) => rulesOn(fleet, node))).toEqual(fits ? [1, 1] : [0, 0]);
    expect(() => intendedListeners(fleet, f.nodeId('b'))).not.toThrow();
  });

  it('has wildcards alone listens, and nobody dials it', () => {
    const hops = [f.hop('a', 80), f.hop('b', 80, { security: 'tls', credential_id: id('wild') })];
    const fleet = fleetWith({ payload: 'tcp', hops, target });
    expect([rulesOn(fleet, 'a'), rulesOn(fleet, 'b')]).toEqual([0, 1]);
  });

  it('has no names at all is not dialled either', () => {
    const hops = [f.hop('a', 80), f.hop('b', 80, { security: 'reality', credential_id: id('identity') })];
    const fleet = fleetWith({ payload: 'tcp', hops, target });
    expect(rulesOn(fleet, 'a')).toBe(1);
    const changes = { server_names: { from: ['a.example', 'b.example'], to: [] } };
    f.append(fleet, { type: 'CredentialUpdated', data: { credential_id: id('identity'), changes } });
    expect(rulesOn(fleet, 'a')).toBe(0);
  });
});

it('a chain that ends in a missing upstream still has its rules, and its port table an empty next hop', () => {
  const hops = [f.hop('a', 80)];
  const fleet = fleetWith({ payload: 'tcp', hops, target: { upstream_id: f.upstreamId('nowhere') } });
  expect(rulesOn(fleet, 'a')).toBe(1);
  expect(compileNode(fleet, f.nodeId('a')).upstream_clusters).toEqual([]);
  expect(intendedListeners(fleet, f.nodeId('a'))[0]?.routes).toMatchObject([{ nextHop: '' }]);
});

describe('an L3 network', () => {
  const member = (node: string) => ({
    node_id: f.nodeId(node),
    addresses: ['10.0.0.1/24'],
    routes: [],
    interface_name: 'svc1',
  });
  const network = (fields: Partial<NetworkState> = {}): NetworkState => ({
    ...l3.createNetwork('net', []),
    version: 1,
    created_at: '',
    updated_at: '',
    network_id: 1,
    members: ['a', 'b'].map(member),
    tunnels: [
      {
        ...l3.tunnel('a', 'b'),
        context_id: 1,
      },
    ],
    ...fields,
  });
  const site = (): Fleet => f.given(...nodes, ...l3.identity()).fleet;
  const rules = (state: NetworkState) =>
    ['a', 'b'].map((node) => networkRulesOn(site(), state, f.nodeId(node)).l3_rules ?? []);
  const count = (state: NetworkState) => rules(state).map(({ length }) => length);

  it('has a rule on both ends of a tunnel', () => {
    expect(count(network())).toEqual([1, 1]);
  });

  it.each<[string, Partial<NetworkState>]>([
    ['its identity is missing', { credential_id: id('nowhere') }],
    ['its identity is of another type', { credential_id: id('identity key') }],
    ['the listener is no member', { members: [member('b')] }],
    ['the connector is no member', { members: [member('a')] }],
    ['nobody is a member', { members: [] }],
  ])('has none while %s', (_, fields) => {
    expect(count(network(fields))).toEqual([0, 0]);
  });

  it('has no rule on a connector whose listener does not exist', () => {
    const lost = network({
      members: ['gone', 'b'].map(member),
      tunnels: [{ ...l3.tunnel('gone', 'b'), context_id: 1 }],
    });
    expect(count(lost)).toEqual([0, 0]);
  });

  it('that is created, changed or deleted has other rules on the ends of its tunnels alone', () => {
    const [a, b] = ['a', 'b'].map((node) => f.nodeId(node)) as [string, string];
    const changed = (before?: NetworkState, after?: NetworkState) =>
      [...nodesWithOtherRules(site(), before, after)].sort();
    const off = network({ enabled: false });
    expect(changed(undefined, network())).toEqual([a, b].sort());
    expect(changed(network(), undefined)).toEqual([a, b].sort());
    expect(changed(network(), off)).toEqual([a, b].sort());
    expect([changed(), changed(undefined, off), changed(off, off), changed(network(), network())]).toEqual([
      [],
      [],
      [],
      [],
    ]);
    expect(changed(network(), network({ tunnels: [] }))).toEqual([a, b].sort());
  });
});
