/**
 * Which nodes one command touches, example by example: those whose rules it changes, and no other, although a node too many
 * would only be sent the same again (`docs/contract/domain.md#generation`). Histories at random are in
 * `touched-nodes.test.ts`, routes in `route-commands.test.ts`, edits of credentials in `chain-transports.test.ts` and edits
 * of L3 networks in `l3-network-rules.test.ts`.
 */
import { describe, expect, it } from 'vitest';
import type { FleetCommand } from '../../src/domain/fleet/resources.js';
import { compileNode } from '../../src/domain/compile/compile-node.js';
import * as f from '../support/fleet.js';
import * as l3 from '../support/l3-networks.js';

const names = ['a', 'b', 'c', 'd'] as const;
const nodes = names.map((name) => f.createNode(name));

/** The nodes that the command touches, by name; without a deploy, rules must differ exactly there. */
function touchedBy(setup: readonly FleetCommand[], command: FleetCommand): string {
  const { fleet } = f.given(...nodes, ...setup);
  const rules = () => names.map((name) => JSON.stringify({ ...compileNode(fleet, f.nodeId(name)), generation: 0 }));
  const before = rules();
  const [touched] = f.performAll(fleet, [command]);
  const after = rules();
  const named = names.filter((name) => touched?.has(f.nodeId(name)));
  for (const [index, name] of names.entries()) {
    // What is said to be untouched keeps its rules, and its generation.
    if (!named.includes(name)) expect(after[index], name).toBe(before[index]);
    const generation = fleet.generationOf(f.nodeId(name));
    if (named.includes(name) && generation !== undefined) expect(generation).toBe(fleet.revision.value + 1);
  }
  return named.join('');
}

type Case = readonly [what: string, setup: readonly FleetCommand[], command: FleetCommand, touched: string];

const hops = [f.hop('a', 80), f.hop('b', 80)];
const one = f.createChain('one', hops);
const off = f.updateChain('one', { enabled: false });
const deleteChain = { type: 'DeleteChain', id: f.chainId('one'), ifMatch: undefined } as const;
const deployed = [one, f.deployChain('one')];
const onUpstream = [
  f.createUpstream('up'),
  f.createUpstream('other'),
  f.createChain('one', hops, { target: { upstream_id: f.upstreamId('up') } }),
  f.deployChain('one'),
];

describe('a command about a chain or what it ends in touches', () => {
  it.each<Case>([
    ['nobody, when a chain is created', [], one, ''],
    ['nobody, when it is described', deployed, f.updateChain('one', { description: 'words' }), ''],
    [
      'nobody, when its hops are edited, until a deploy',
      deployed,
      f.updateChain('one', { hops: [f.hop('c', 80)] }),
      '',
    ],
    ['its hops, when it is renamed', deployed, f.updateChain('one', { name: 'new' }), 'ab'],
    ['nobody, when it is renamed before a deploy', [one], f.updateChain('one', { name: 'new' }), ''],
    ['nobody, when it is renamed while disabled', [...deployed, off], f.updateChain('one', { name: 'new' }), ''],
    ['its hops, when it is disabled', deployed, off, 'ab'],
    ['nobody, when it is disabled before a deploy', [one], off, ''],
    ['its hops, when it is enabled again', [...deployed, off], f.updateChain('one', { enabled: true }), 'ab'],
    [
      'the deployed hops alone, when it is renamed and disabled after an edit',
      [...deployed, f.updateChain('one', { hops: [f.hop('c', 80)] })],
      f.updateChain('one', { enabled: false, name: 'new' }),
      'ab',
    ],
    ['its hops, when it is deleted', deployed, deleteChain, 'ab'],
    ['nobody, when it is deleted before a deploy', [one], deleteChain, ''],
    ['nobody, when it is deleted while disabled', [...deployed, off], deleteChain, ''],
    ['nobody, when an upstream is created', [], f.createUpstream('up'), ''],
    ['the last hop, when its upstream changes', onUpstream, f.updateUpstream('up', { endpoint: 'new.example:1' }), 'b'],
    ['the last hop, when its upstream is disabled', onUpstream, f.updateUpstream('up', { enabled: false }), 'b'],
    ['nobody, when another upstream changes', onUpstream, f.updateUpstream('other', { endpoint: 'new.example:1' }), ''],
    [
      'nobody, when the upstream of a disabled chain changes',
      [...onUpstream, off],
      f.updateUpstream('up', { endpoint: 'new.example:1' }),
      '',
    ],
    [
      'nobody, when the upstream changes that the chain ends in after the next deploy',
      [...onUpstream, f.updateChain('one', { target: { upstream_id: f.upstreamId('other') } })],
      f.updateUpstream('other', { endpoint: 'new.example:1' }),
      '',
    ],
    [
      'nobody, when an upstream is deleted, which nothing ends in',
      [f.createUpstream('up')],
      { type: 'DeleteUpstream', id: f.upstreamId('up'), ifMatch: undefined },
      '',
    ],
  ])('%s', (_, setup, command, touched) => {
    expect(touchedBy(setup, command)).toBe(touched);
  });
});

const tlsHop = { security: 'tls', credential_id: f.credentialId('cert') } as const;
/** The middle of three hops has a certificate. */
const overTls = [
  f.createTlsCert('cert'),
  f.createTlsCert('unused'),
  f.createChain('one', [f.hop('a', 80), f.hop('b', 80, tlsHop), f.hop('c', 80)]),
  f.deployChain('one'),
];

describe('a command about a credential touches', () => {
  it.each<Case>([
    ['nobody, when it is created', [], f.createX25519('keys'), ''],
    ['both, when it is also renamed', overTls, f.updateCredential('cert', { name: 'x', ...f.rotatedTo('new') }), 'ab'],
    ['nobody, when nothing refers to it', overTls, f.updateCredential('unused', f.rotatedTo('new')), ''],
    ['nobody, when the chain is disabled', [...overTls, off], f.updateCredential('cert', f.rotatedTo('new')), ''],
    ['nobody, when it is deleted', overTls, f.deleteCredential('unused'), ''],
  ])('%s', (_, setup, command, touched) => {
    expect(touchedBy(setup, command)).toBe(touched);
  });
});

const address = (name: string, to: string | null) => f.updateNode(name, { address: to });
const reported = (name: string, public_ipv4: string | null, public_ipv6: string | null = null): FleetCommand => ({
  type: 'ReportNodeAddress',
  id: f.nodeId(name),
  public_ipv4,
  public_ipv6,
});
const route = [f.createRoute('r', [f.routeHop('a', 80), f.routeHop('b', 80), f.routeHop('c', 80)])];

describe('a command about a node touches', () => {
  const dialledBy = (dial_addr: string) => [
    f.createChain('one', [f.hop('a', 80), f.hop('b', 80, { dial_addr })]),
    f.deployChain('one'),
  ];

  it.each<Case>([
    ['nobody, when it is labelled', deployed, f.updateNode('b', { labels: { site: 'x' } }), ''],
    ['the one that dials it, when its address is another', deployed, address('b', 'new.example'), 'a'],
    [
      'that one, when it is labelled as well',
      deployed,
      f.updateNode('b', { address: 'new.example', labels: { x: 'y' } }),
      'a',
    ],
    ['nobody, when it is the first hop', deployed, address('a', 'new.example'), ''],
    ['nobody, when it is dialled at another address', dialledBy('dial.example'), address('b', 'new.example'), ''],
    ['nobody, when nobody dials it', deployed, address('c', null), ''],
    ['nobody, when it reports an address while it has one', deployed, reported('b', '203.0.113.9'), ''],
    [
      'the one that dials it, when it reports another',
      [...deployed, reported('b', '203.0.113.9'), address('b', null)],
      reported('b', '203.0.113.8'),
      'a',
    ],
    [
      'nobody, when only the IPv6 address that it reports is another',
      [...deployed, reported('b', '203.0.113.9'), address('b', null)],
      reported('b', '203.0.113.9', '2001:db8::1'),
      '',
    ],
    [
      'nobody, when its address becomes the one that it reported',
      [...deployed, reported('b', '203.0.113.9'), address('b', null)],
      address('b', '203.0.113.9'),
      '',
    ],
    ['nobody, when it is dialled by a disabled chain', [...deployed, off], address('b', 'new.example'), ''],
    [
      'nobody, when the route is disabled',
      [...route, f.updateRoute('r', { enabled: false })],
      address('c', 'x.example'),
      '',
    ],
    [
      'nobody, when it gets another PSK',
      [],
      { type: 'IssueNodePsk', id: f.nodeId('a'), fingerprint: 'x', verifier: f.sealed },
      '',
    ],
    ['itself, when it is refreshed', [], { type: 'RefreshNodeConfig', id: f.nodeId('a') }, 'a'],
    ['itself, when it is deleted', [], { type: 'DeleteNode', id: f.nodeId('a'), ifMatch: undefined }, 'a'],
  ])('%s', (_, setup, command, touched) => {
    expect(touchedBy(setup, command)).toBe(touched);
  });

  it('itself, when it is created and when its generation is raised', () => {
    const raise: FleetCommand = { type: 'RaiseNodeGeneration', id: f.nodeId('a'), reported: 90 };
    const { fleet } = f.given();
    const touched = f.performAll(fleet, [f.createNode('a'), f.createNode('b'), raise]);
    expect(touched.map((ids) => [...ids])).toEqual(['a', 'b', 'a'].map((name) => [f.nodeId(name)]));
    expect(fleet.generationOf(f.nodeId('a'))).toBe(93);
  });
});

describe('a command about the settings or a listener policy touches', () => {
  const override = (name: string, multiplex: boolean | null, multiplex_port?: number) =>
    f.settings({ nodes: [{ node_id: f.nodeId(name), multiplex, multiplex_port }] });
  const global = f.settings({ multiplex: true, multiplex_port: 4433 });

  it.each<Case>([
    ['nobody, when intervals are others', [], f.settings({ heartbeat_interval_secs: 20 }), ''],
    ['all, when multiplex is on for all', [], global, 'abcd'],
    ['all, when the port is another', [global], f.settings({ multiplex_port: 4434 }), 'abcd'],
    ['nobody, when a port is given that nothing uses', [], f.settings({ multiplex_port: 4434 }), ''],
    [
      'those without a port of their own',
      [override('a', true, 1), override('b', false), global],
      f.settings({ multiplex_port: 2 }),
      'cd',
    ],
    ['those that multiplex is not on for yet', [override('a', true, 4433)], global, 'bcd'],
    ['one node, when its override is another', [global], override('b', true, 5), 'b'],
    ['one node, when multiplex is off there', [global], override('b', false), 'b'],
    ['all, when the compiler version is raised', [], { type: 'RaiseCompilerVersion', version: 9 }, 'abcd'],
    [
      'all, when the compiler version is lowered',
      [{ type: 'RaiseCompilerVersion', version: 9 }],
      { type: 'LowerCompilerVersion', version: 1 },
      'abcd',
    ],
    ['nobody, when an override says what holds for all', [global], override('b', true, 4433), ''],
    ['one node, when its override is removed', [override('b', true, 4433)], override('b', null), 'b'],
    ['the node of a policy that is saved', [], f.savePolicy('a', 80, ['raw']), 'a'],
    ['the node of a policy that is changed', [f.savePolicy('a', 80, ['raw'])], f.savePolicy('a', 80, ['tls']), 'a'],
    ['the node of a policy that is deleted', [f.savePolicy('a', 80, ['raw'])], f.deletePolicy('a', 80), 'a'],
  ])('%s', (_, setup, command, touched) => {
    expect(touchedBy(setup, command)).toBe(touched);
  });
});

const members = [
  l3.member('a', '10.0.0.1/24', ['10.1.0.0/16']),
  l3.member('b', '10.0.0.2/24'),
  l3.member('c', '10.0.0.3/24'),
  l3.member('d', '10.0.0.4/24'),
] as const;
/** The hub a listens for b and c; d is a member without a tunnel. */
const network = [
  ...l3.identity(),
  l3.createNetwork('net', members, [l3.tunnel('a', 'b', { context_id: 1 }), l3.tunnel('a', 'c', { context_id: 2 })]),
];
const netOff = l3.updateNetwork('net', { enabled: false });

describe('a command about an L3 network or what it uses touches', () => {
  it.each<Case>([
    ['the ends of its tunnels, when it is created', l3.identity(), network.at(-1)!, 'abc'],
    [
      'nobody, when it is created disabled',
      l3.identity(),
      l3.createNetwork('net', members, [l3.tunnel('a', 'b')], { enabled: false }),
      '',
    ],
    ['its ends, when it is enabled', [...network, netOff], l3.updateNetwork('net', { enabled: true }), 'abc'],
  ])('%s', (_, setup, command, touched) => {
    expect(touchedBy(setup, command)).toBe(touched);
  });
});
