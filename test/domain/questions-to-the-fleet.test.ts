/** What resources and answers ask of the whole fleet: who refers to one, who dials a node, in which order all of it is listed. */
import { describe, expect, it } from 'vitest';
import { compileNode } from '../../src/domain/compile/compile-node.js';
import type { FleetCommand } from '../../src/domain/fleet/resources.js';
import { referrersOf } from '../../src/domain/fleet/referrers.js';
import { policiesOf } from '../../src/domain/listener-policy/policy.js';
import { intendedLinks } from '../../src/domain/port-table/intended-links.js';
import { intendedListeners } from '../../src/domain/port-table/port-table.js';
import * as f from '../support/fleet.js';
import * as l3 from '../support/l3-networks.js';

const names = ['a', 'b', 'c'];
const nodes = names.map((name) => f.createNode(name));
const byText = (texts: Iterable<string>): readonly string[] => [...texts].sort();

describe('the referrers of a resource', () => {
  it('are listed by type, by name in any case and naturally, and by id', () => {
    const tls = (name: string) =>
      f.createChain(name, [
        f.hop('a', 80, {
          security: 'tls',
          credential_id: f.credentialId('cert'),
          server_names: [`${name.toLowerCase()}.example`],
        }),
      ]);
    const { fleet } = f.given(...nodes, f.createTlsCert('cert'), ...['b', 'C', 'a10', 'a9', 'D'].map(tls));
    expect(referrersOf(fleet, 'credential', f.credentialId('cert'))).toEqual(
      ['a9', 'a10', 'b', 'C', 'D'].map((name) => ({ type: 'l4_chain', id: f.chainId(name), name })),
    );
    expect(referrersOf(fleet, 'credential', 'nowhere')).toEqual([]);
  });

  it('are listed by type before their names', () => {
    const { fleet } = f.given(
      ...nodes,
      ...l3.identity(),
      f.createRoute('aaa', [f.routeHop('a', 8080)]),
      l3.createNetwork('zzz', [l3.member('a', '10.0.0.1/24'), l3.member('b', '10.0.0.2/24')]),
      f.createChain('mmm', [f.hop('a', 80)], { enabled: false }),
    );
    const types = referrersOf(fleet, 'node', f.nodeId('a')).map(({ type, name }) => `${type} ${name}`);
    expect(types).toEqual(['l3_network zzz', 'l4_chain mmm', 'route aaa']);
  });
});

describe('the diallers of a node', () => {
  const diallers = (node: string, ...commands: readonly FleetCommand[]) => {
    const { fleet } = f.given(...nodes, ...l3.identity(), ...commands);
    return byText(
      fleet
        .diallersOf(f.nodeId(node))
        .map(({ owner, diallerId }) => `${owner.split('/')[0]} ${names.find((name) => f.nodeId(name) === diallerId)}`),
    );
  };
  const chain = [
    f.createChain('one', [f.hop('a', 80), f.hop('b', 80), f.hop('c', 80, { dial_addr: 'x.example' })]),
    f.deployChain('one'),
  ];
  const route = f.createRoute('r', [f.routeHop('c', 70), f.routeHop('b', 70), f.routeHop('a', 70)]);
  const network = l3.createNetwork(
    'net',
    names.map((name, index) => l3.member(name, `10.0.0.${index + 1}/24`)),
    [l3.tunnel('b', 'a'), l3.tunnel('b', 'a', { context_id: 9 }), l3.tunnel('b', 'c'), l3.tunnel('c', 'b')],
  );

  it.each<[string, string, readonly FleetCommand[], readonly string[]]>([
    ['are the hops before it, of chains and routes', 'b', [...chain, route], ['l4_chain a', 'route c']],
    ['are nobody for a first hop', 'a', chain, []],
    ['are nobody for the first hop of a route', 'c', [route], []],
    ['are the hop before the last one of a route', 'a', [route], ['route b']],
    ['are nobody where another address is dialled', 'c', chain, []],
    ['are nobody of a chain that is not deployed', 'b', chain.slice(0, 1), []],
    ['are the connectors of its tunnels, each once', 'b', [network], ['l3_network a', 'l3_network c']],
    [
      'are nobody of what is disabled',
      'b',
      [
        ...chain,
        route,
        network,
        f.updateChain('one', { enabled: false }),
        f.updateRoute('r', { enabled: false }),
        l3.updateNetwork('net', { enabled: false }),
      ],
      [],
    ],
  ])('%s', (_, node, commands, expected) => {
    expect(diallers(node, ...commands)).toEqual(expected);
  });
});

describe('the links from a node', () => {
  const links = (node: string, ...commands: readonly FleetCommand[]) => {
    const { fleet } = f.given(...nodes, ...l3.identity(), ...commands);
    return intendedLinks(fleet, f.nodeId(node));
  };
  const network = l3.createNetwork(
    'net',
    names.map((name, index) => l3.member(name, `10.0.0.${index + 1}/24`)),
    [
      l3.tunnel('b', 'a'),
      l3.tunnel('b', 'a', { listen_port: 444 }),
      l3.tunnel('c', 'a'),
      l3.tunnel('a', 'c', { listen_port: 445 }),
    ],
  );
  const link = (to: string, ...endpoints: string[]) => ({
    fromNodeId: f.nodeId('a'),
    toNodeId: f.nodeId(to),
    kind: 'l3_network',
    resourceId: l3.networkId('net'),
    endpoints,
  });

  it('of an L3 network go the way in which tunnels are dialled', () => {
    const expected = [link('b', 'b.example:443', 'b.example:444'), link('c', 'c.example:443')];
    expect(links('a', network)).toEqual(expected.sort((x, y) => (x.toNodeId < y.toNodeId ? -1 : 1)));
    expect(links('b', network)).toEqual([]);
    expect(links('c', network).map(({ toNodeId, endpoints }) => [toNodeId, endpoints])).toEqual([
      [f.nodeId('a'), ['a.example:445']],
    ]);
  });

  it('are none of a disabled network', () => {
    expect(links('a', network, l3.updateNetwork('net', { enabled: false }))).toEqual([]);
  });

  it('are listed by node, kind and resource, whatever came first', () => {
    const chains = ['z', 'y', 'x', 'w'].map((name, index) =>
      f.createChain(name, [f.hop('a', 90 + index), f.hop(index % 2 === 0 ? 'b' : 'c', 90 + index)]),
    );
    const keys = links('a', ...chains, network).map(
      ({ toNodeId, kind, resourceId }) => `${toNodeId}/${kind}/${resourceId}`,
    );
    expect(keys).toHaveLength(6);
    expect(keys).toEqual(byText(keys));
  });
});

describe('what is listed about the listeners of a node', () => {
  const ports = [83, 81, 84, 80, 82];
  const commands = [
    ...ports.map((port) => f.savePolicy('a', port, ['raw'])),
    f.savePolicy('b', 80, ['raw']),
    f.createChain('z', [f.hop('a', 90), f.hop('b', 90)]),
    f.createChain('y', [f.hop('a', 85), f.hop('b', 85)]),
    f.createRoute('r', [f.routeHop('a', 79)]),
    f.deployChain('z'),
  ];
  const site = () => f.given(...nodes, ...commands).fleet;
  const a = f.nodeId('a');

  it('has its own policies alone, by id', () => {
    const ids = policiesOf(site(), a).map(({ id }) => id);
    expect(ids).toEqual(byText(ports.map((port) => f.policyIdOf('a', port))));
    expect(policiesOf(site(), f.nodeId('c'))).toEqual([]);
    expect(compileNode(site(), a).listener_policies.map(({ listen_port }) => listen_port)).toEqual(
      [...ports].sort((x, y) => x - y),
    );
  });

  it('has no listener where only the deployed definition has a hop, and no deployed route where only the current one has', () => {
    const { fleet: moved } = f.given(...nodes, ...commands, f.updateChain('z', { hops: [f.hop('c', 90)] }));
    expect(intendedListeners(moved, a).map(({ listenPort }) => listenPort)).toEqual([79, 85]);
    expect(intendedListeners(moved, f.nodeId('c'))[0]?.routes).toMatchObject([{ deployed: false }]);
  });

  it.each<[string, Parameters<typeof f.createChain>[1][number]]>([
    ['on another address', f.udpHop('a', 80, { listen_addr: '127.0.0.1' })],
    ['over another outer', f.hop('a', 80, { outer: 'fake_tcp' })],
    ['on another port', f.udpHop('a', 81)],
  ])('does not call a route deployed that is deployed %s', (_, hop) => {
    const deployed = f.createChain('one', [f.udpHop('a', 80)]);
    const { fleet: edited } = f.given(...nodes, deployed, f.deployChain('one'), f.updateChain('one', { hops: [hop] }));
    expect(intendedListeners(edited, a)[0]?.routes).toMatchObject([{ deployed: false }]);
  });

  it('does not call a route deployed that is deployed for the other payload', () => {
    const identity = { outer: 'quic', security: 'reality', credential_id: f.credentialId('identity') } as const;
    const quic = f.createChain('one', [f.hop('a', 80, identity)], { payload: 'tcp' });
    const { fleet: edited } = f.given(
      ...nodes,
      ...l3.identity(),
      quic,
      f.deployChain('one'),
      f.updateChain('one', { payload: 'udp' }),
    );
    expect(intendedListeners(edited, a)[0]?.routes).toMatchObject([{ deployed: false }]);
  });
});

describe('fields that are sets are kept sorted, whatever the order in which they came', () => {
  it('labels, in the state and in the event', () => {
    const { fleet, when } = f.given(f.createNode('a', { labels: { z: '1', m: '1' } }));
    const outcome = when(f.updateNode('a', { labels: { z: '2', y: '1', b: '1', a: '1' } }));
    const [event] = outcome.performed.kind === 'written' ? outcome.performed.events : [];
    expect(event?.type === 'NodeUpdated' && Object.keys(event.data.changes)).toEqual(
      ['a', 'b', 'm', 'y', 'z'].map((key) => `labels.${key}`),
    );
    expect(Object.keys(fleet.tables.node.get(f.nodeId('a'))!.labels)).toEqual(['a', 'b', 'y', 'z']);
  });

  it('overrides of nodes, in the settings', () => {
    const override = (name: string) =>
      f.settings({ nodes: [{ node_id: f.nodeId(name), multiplex: true, multiplex_port: 1 }] });
    const { fleet } = f.given(
      ...nodes,
      ...byText(names.map((name) => f.nodeId(name)))
        .toReversed()
        .map((id) => override(names.find((name) => f.nodeId(name) === id)!)),
    );
    const ids = Object.keys(fleet.singletons.connectivity.value.nodes);
    expect(ids).toHaveLength(3);
    expect(ids).toEqual(byText(ids));
  });
});

describe('a generation', () => {
  it('is raised above what an agent reports, by the last command that touched the node', () => {
    const raise = (reported: number): FleetCommand => ({ type: 'RaiseNodeGeneration', id: f.nodeId('a'), reported });
    const { fleet, when } = f.given(...nodes, f.createUpstream('up'), f.createUpstream('other'));
    const offset = () => fleet.tables.node.get(f.nodeId('a'))?.generation_offset;
    expect([fleet.touchedAt(f.nodeId('a')), fleet.generationOf(f.nodeId('a'))]).toEqual([0, 1]);
    // The agent has it, or one below it.
    when(raise(0)).thenNothing();
    when(raise(100)).thenAccepted();
    expect([offset(), fleet.touchedAt(f.nodeId('a')), fleet.generationOf(f.nodeId('a'))]).toEqual([100, 5, 106]);
    when(raise(105)).thenNothing();
    when(raise(106)).thenAccepted();
    expect([offset(), fleet.generationOf(f.nodeId('a'))]).toEqual([101, 108]);
  });
});
