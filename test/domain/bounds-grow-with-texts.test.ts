/**
 * The bound of each resource's part of a snapshot counts every text as often as it is sent, so it is never too small however
 * long one text is (`docs/contract/domain.md#scale-the-model-is-built-for`); and the bound of one definition.
 */
import { describe, expect, it } from 'vitest';
import type { Hop } from '../../src/domain/chain/chain.js';
import { resourceOfType, type FleetCommand, type AnyState } from '../../src/domain/fleet/resources.js';
import { networkBound } from '../../src/domain/l3-network/rules.js';
import type { NetworkState } from '../../src/domain/l3-network/l3-network.js';
import { listBound, ruleBytes, textBound } from '../../src/domain/snapshot/bound.js';
import { limits } from '../../src/kernel/limits.js';
import * as f from '../support/fleet.js';
import * as l3 from '../support/l3-networks.js';

const nodes = ['a', 'b', 'c', 'd'].map((name) => f.createNode(name));
/** Longer than everything that the bound of a rule has room for. */
const long = 'x'.repeat(20 * ruleBytes);

function boundOf(commands: readonly FleetCommand[], node: string, type: string, id: string): number {
  const { fleet } = f.given(...nodes, ...commands);
  const state = fleet.get<AnyState>({ type }, id);
  if (state === undefined) throw new Error(`there is no ${type} ${id}`);
  return resourceOfType(type)?.compiled?.bound(fleet, state, f.nodeId(node)) ?? Number.NaN;
}

/** How much the bound grows with one longer text, in bytes per character, rounded. */
function growth(of: (text: string) => readonly FleetCommand[], node: string, type: string, id: string): number {
  const [short, grown] = ['y', long].map((text) => boundOf(of(text), node, type, id)) as [number, number];
  return Math.round((grown - short) / (long.length - 1));
}

/** Bytes per character of a text, as a bound counts them. */
const once = 3;

it('a text counts three bytes for each character, and an entry of a list some more', () => {
  expect([textBound(), textBound('abc'), listBound(), listBound([])]).toEqual([0, 9, 0, 0]);
  expect(listBound(['abc', 'd'])).toBe(9 + 8 + 3 + 8);
});

describe('the bound of a chain', () => {
  const credentials = [f.createX25519('keys'), f.createReality('front', 'keys'), f.createTlsCert('leaf')];
  const tls = { security: 'tls', credential_id: f.credentialId('leaf') } as const;
  const reality = { security: 'reality', credential_id: f.credentialId('front') } as const;
  const chain = (middle: Partial<Hop>, fields: Parameters<typeof f.createChain>[2] = {}): readonly FleetCommand[] => [
    f.createChain('one', [f.hop('a', 80), f.hop('b', 80, middle), f.hop('c', 80)], { payload: 'tcp', ...fields }),
    f.deployChain('one'),
  ];
  const toUpstream = { target: { upstream_id: f.upstreamId('up') } } as const;
  const pins = f.upstreamTls.spki_pins_sha256;

  it.each<[string, (text: string) => readonly FleetCommand[], string, number]>([
    ['its name', (name) => chain({}, { name }), 'a', 1],
    ['a name that a hop listens for', (name) => chain({ server_names: [name] }), 'b', 1],
    [
      'a name of a certificate hop, with those of the certificate',
      (name) => [...credentials, ...chain({ ...tls, server_names: [name] })],
      'b',
      2,
    ],
    [
      'the name by which a hop is dialled',
      (name) => [...credentials, ...chain({ ...tls, server_names: [name] })],
      'a',
      1,
    ],
    ['the address at which a hop is dialled', (dial_addr) => chain({ dial_addr }), 'a', 1],
    ['the address at which a hop is dialled, on the hop itself', (dial_addr) => chain({ dial_addr }), 'b', 0],
    [
      'the short id by which a hop is dialled',
      (id) => [f.createX25519('keys'), f.createReality('front', 'keys', { short_ids: [id] }), ...chain(reality)],
      'a',
      1,
    ],
    [
      'the short ids of a listener',
      (id) => [f.createX25519('keys'), f.createReality('front', 'keys', { short_ids: ['1', id] }), ...chain(reality)],
      'b',
      1,
    ],
    [
      'the short ids of a listener that its dialler does not use',
      (id) => [f.createX25519('keys'), f.createReality('front', 'keys', { short_ids: ['1', id] }), ...chain(reality)],
      'a',
      0,
    ],
    [
      'the target of a REALITY listener',
      (target_host) => [f.createX25519('keys'), f.createReality('front', 'keys', { target_host }), ...chain(reality)],
      'b',
      1,
    ],
    ['a certificate', (certificate_pem) => [f.createTlsCert('leaf', { certificate_pem }), ...chain(tls)], 'b', 1],
    [
      'the key of a certificate',
      (ct) => [f.createTlsCert('leaf', { private_key: { ...f.sealed, ct } }), ...chain(tls)],
      'b',
      1,
    ],
    ['the endpoint that it ends in', (endpoint) => chain({}, { target: { endpoint } }), 'c', 1],
    [
      'the server name of that endpoint',
      (server_name) => chain({}, { target: { endpoint: 'x:1', tls: { server_name, spki_pins_sha256: pins } } }),
      'c',
      1,
    ],
    [
      'the pins of that endpoint',
      (pin) => chain({}, { target: { endpoint: 'x:1', tls: { server_name: 'x', spki_pins_sha256: [pin] } } }),
      'c',
      1,
    ],
    [
      'the endpoint of its upstream',
      (endpoint) => [f.createUpstream('up', { endpoint }), ...chain({}, toUpstream)],
      'c',
      1,
    ],
    [
      'a name of its upstream',
      (name) => [f.createUpstream('up', { server_names: [name] }), ...chain({}, toUpstream)],
      'c',
      1,
    ],
    [
      'the server name of its upstream',
      (server_name) => [
        f.createUpstream('up', { tls: { server_name, spki_pins_sha256: pins } }),
        ...chain({}, toUpstream),
      ],
      'c',
      1,
    ],
    [
      'the pins of its upstream',
      (pin) => [
        f.createUpstream('up', { tls: { server_name: 'x', spki_pins_sha256: [pin] } }),
        ...chain({}, toUpstream),
      ],
      'c',
      1,
    ],
  ])('counts %s', (_, commands, node, times) => {
    expect(growth(commands, node, 'l4_chain', f.chainId('one'))).toBe(times * once);
  });

  it('counts the names of a certificate beside those that its hop takes from it', () => {
    const certificate = (name: string) => f.rotatedTo('leaf', { subject_alt_names: [name] });
    const commands = (name: string) => [f.createTlsCert('leaf', certificate(name)), ...chain(tls)];
    expect(growth(commands, 'b', 'l4_chain', f.chainId('one'))).toBe(3 * once);
  });

  it('is nothing while it is disabled or not deployed, and never less than one rule otherwise', () => {
    const [create, deploy] = chain({});
    const of = (...commands: FleetCommand[]) => boundOf(commands, 'c', 'l4_chain', f.chainId('one'));
    expect(of(create!)).toBe(0);
    expect(of(create!, deploy!, f.updateChain('one', { enabled: false }))).toBe(0);
    expect(of({ ...f.createChain('one', [f.hop('c', 80)]), enabled: false })).toBe(0);
    expect(of(create!, deploy!)).toBeGreaterThan(ruleBytes);
  });
});

describe('the bound of a route', () => {
  const route = (fields: Parameters<typeof f.createRoute>[2]) => [
    f.createRoute('r', [f.routeHop('a', 80), f.routeHop('b', 80)], fields),
  ];

  it.each<[string, (text: string) => readonly FleetCommand[], string, number]>([
    ['its name', (name) => route({ name }), 'a', 1],
    ['its host', (host) => route({ host }), 'a', 1],
    ['its path', (path_prefix) => route({ path_prefix }), 'b', 1],
    ['its backend on the last hop', (backend) => route({ backend }), 'b', 1],
    ['its backend on no other hop', (backend) => route({ backend }), 'a', 0],
    ['the address of the next hop', (address) => [f.updateNode('b', { address }), ...route({})], 'a', 1],
  ])('counts %s', (_, commands, node, times) => {
    expect(growth(commands, node, 'route', f.routeId('r'))).toBe(times * once);
  });

  it('is nothing on other nodes and while it is disabled, and never less than one rule otherwise', () => {
    const of = (node: string, enabled: boolean) => boundOf(route({ enabled }), node, 'route', f.routeId('r'));
    expect([of('c', true), of('a', false)]).toEqual([0, 0]);
    expect(of('a', true)).toBeGreaterThan(ruleBytes);
  });
});

describe('the bound of a listener policy', () => {
  it('counts its address and its labels', () => {
    const bound = boundOf([f.savePolicy('a', 80, ['raw'])], 'a', 'listener_policy', f.policyIdOf('a', 80));
    const labels = ['reality', 'tls', 'noise', 'raw'];
    expect(bound).toBe(ruleBytes + textBound('0.0.0.0') + listBound(labels));
  });
});

describe('the bound of an L3 network', () => {
  const network = (fields: Partial<NetworkState>, hub: Partial<NetworkState['members'][number]> = {}): NetworkState => {
    const member = (node: string) => ({ node_id: f.nodeId(node), addresses: [], routes: [], interface_name: 'svc1' });
    return {
      ...l3.createNetwork('net', []),
      version: 1,
      created_at: '',
      updated_at: '',
      network_id: 1,
      members: [
        {
          ...member('a'),
          ...hub,
        },
        member('b'),
        member('c'),
      ],
      tunnels: [
        {
          ...l3.tunnel('a', 'b'),
          context_id: 1,
        },
        {
          ...l3.tunnel('c', 'a'),
          context_id: 2,
        },
      ],
      ...fields,
    };
  };
  const site = () => f.given(...nodes, ...l3.identity()).fleet;
  const bound = (state: NetworkState, node: string) => networkBound(site(), state, f.nodeId(node));
  const grows = (of: (text: string) => NetworkState, node: string) =>
    Math.round((bound(of(long), node) - bound(of('y'), node)) / (long.length - 1));

  it.each<[string, (text: string) => NetworkState, readonly [a: number, b: number, c: number]]>([
    ['its name twice for each tunnel', (name) => network({ name }), [4, 2, 2]],
    ['its server name for each tunnel', (server_name) => network({ server_name }), [2, 1, 1]],
    [
      "a member's address in its own rules and in those of its peers",
      (one) => network({}, { addresses: [one] }),
      [2, 1, 1],
    ],
    ["a member's routes twice in the rules of its peers", (one) => network({}, { routes: [one] }), [0, 2, 2]],
    ["a member's features in its own rules", (one) => network({}, { features: [one] }), [2, 0, 0]],
  ])('counts %s', (_, of, [a, b, c]) => {
    expect(['a', 'b', 'c'].map((node) => grows(of, node))).toEqual([a * once, b * once, c * once]);
  });

  it('counts the target and the short ids of its identity', () => {
    const of = (fields: Parameters<typeof f.updateCredential>[1]) => {
      const other = f.given(...nodes, ...l3.identity(), f.updateCredential('identity', fields)).fleet;
      return Math.round((networkBound(other, network({}), f.nodeId('b')) - bound(network({}), 'b')) / long.length);
    };
    expect([of({ target_host: long }), of({ short_ids: [long] })]).toEqual([once, once]);
  });

  it('is nothing while it is disabled and on nodes that are no members, and never less than a rule for each tunnel', () => {
    expect([
      bound(network({ enabled: false }), 'a'),
      bound(network({}), 'd'),
      bound(network({ enabled: false }), 'd'),
    ]).toEqual([0, 0, 0]);
    expect(bound(network({}), 'a')).toBeGreaterThan(2 * ruleBytes);
    expect(bound(network({ tunnels: [] }), 'a')).toBe(0);
    // A damaged log may lack the identity or the other end.
    expect(bound(network({ credential_id: 'nowhere' }), 'a')).toBeGreaterThan(2 * ruleBytes);
    expect(bound({ ...network({}), members: network({}).members.slice(0, 1) }, 'a')).toBeGreaterThan(2 * ruleBytes);
  });
});

describe('a definition', () => {
  /** The largest description that the definition of an otherwise equal chain can have. */
  const create = (characters: number) =>
    f.createChain('one', [f.hop('a', 80)], { description: 'x'.repeat(characters) });
  const { type: _, id: __, ...empty } = create(0);
  const room = limits.fleet.definitionBytes - JSON.stringify(empty).length;

  it('may have as many bytes as JSON as the contract says, and not one more', () => {
    const { when } = f.given(...nodes);
    when(create(room + 1)).thenRefused('payload_too_large', 'l4_chain', `${limits.fleet.definitionBytes + 1} bytes`);
    when(create(room)).thenAccepted();
    const edit = (characters: number) => f.updateChain('one', { description: 'x'.repeat(characters) });
    when(edit(room + 1)).thenRefused('payload_too_large', 'l4_chain');
    when(edit(room - 1)).thenAccepted();
  });

  it('of an older log may be larger: it can be deployed, disabled with it and deleted, but not grow', () => {
    const { fleet, when } = f.given(...nodes);
    const { type: _type, id, ...fields } = create(2 * room);
    f.append(fleet, { type: 'ChainCreated', data: { chain_id: id, ...fields } });
    when(f.updateChain('one', { name: 'new' })).thenRefused('payload_too_large');
    when(f.deployChain('one')).thenAccepted();
    when({ type: 'DeleteChain', id, ifMatch: undefined }).thenAccepted();
  });

  it('is none of what settings hold', () => {
    const all = nodes.map(({ id }) => ({ node_id: id, multiplex: true, multiplex_port: 1 }));
    f.given(...nodes)
      .when(f.settings({ nodes: all }))
      .thenAccepted();
  });
});
