/** The listeners that current definitions of enabled chains intend (`docs/contract/domain.md#l4-chain`, listener intent). */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { intendedListeners } from '../../src/domain/port-table/port-table.js';
import type { Hop } from '../../src/domain/chain/chain.js';
import * as f from '../support/fleet.js';
import { histories } from '../support/fleet-histories.js';
import { play } from '../support/fleet-play.js';

const routesOn = (scenario: f.Scenario, node: string) =>
  intendedListeners(scenario.fleet, f.nodeId(node)).flatMap(({ transport, listenAddr, listenPort, routes }) =>
    routes.map((route) => ({ key: `${transport} ${listenAddr} ${listenPort}`, ...route })),
  );

const credentials = [
  f.createX25519('masked key'),
  f.createReality('masked', 'masked key', { server_names: ['one.example', 'two.example'] }),
  f.createX25519('noise'),
  f.createTlsCert('leaf', f.rotatedTo('leaf', { subject_alt_names: ['*.leaf.example', 'leaf.example'] })),
];
const tls = { security: 'tls', credential_id: f.credentialId('leaf') } as const;
const reality = { security: 'reality', credential_id: f.credentialId('masked') } as const;
const noise = { outer: 'udp', security: 'noise', credential_id: f.credentialId('noise') } as const;
const sni = (...names: readonly string[]) => names.map((name) => ['sni', name] as const);
const masked = (...names: readonly string[]) => names.map((name) => ['reality', name] as const);

describe('listener intent', () => {
  const world = (): f.Scenario =>
    f.given(
      f.createNode('a'),
      f.createNode('b'),
      f.createUpstream('up'),
      f.createChain('one', [f.hop('a', 80), f.hop('b', 81, { server_names: ['y.example', 'x.example'] })], {
        target: { upstream_id: f.upstreamId('up') },
      }),
    );

  it('has one route per server name, labelled with the upstream on the last hop and with the chain before it', () => {
    const scenario = world();
    const resource = { resourceType: 'l4_chain', resourceId: f.chainId('one'), resourceName: 'one' };
    expect(routesOn(scenario, 'a')).toEqual([
      {
        key: 'tcp 0.0.0.0 80',
        source: 'l4_chain',
        sourceLabel: 'one',
        matchKind: 'default',
        matchValue: '',
        nextHop: 'b.example:81',
        ...resource,
        deployed: false,
      },
    ]);
    const last = {
      key: 'tcp 0.0.0.0 81',
      source: 'l4_upstream',
      sourceLabel: 'up',
      matchKind: 'sni',
      nextHop: 'up.example:443',
    };
    expect(routesOn(scenario, 'b')).toEqual([
      { ...last, matchValue: 'x.example', ...resource, deployed: false },
      { ...last, matchValue: 'y.example', ...resource, deployed: false },
    ]);
  });

  it('marks a route as deployed when the deployed definition has the same one', () => {
    const scenario = world();
    const deployed = (node: string): readonly boolean[] => routesOn(scenario, node).map((route) => route.deployed);
    scenario.when(f.deployChain('one')).thenAccepted();
    expect([deployed('a'), deployed('b')]).toEqual([[true], [true, true]]);
    const hops = [f.hop('a', 80), f.hop('b', 81, { server_names: ['x.example', 'z.example'] })];
    scenario.when(f.updateChain('one', { hops })).thenAccepted();
    expect([deployed('a'), deployed('b')]).toEqual([[true], [true, false]]);
    scenario.when(f.updateChain('one', { hops: [hops[0]!, { ...hops[1]!, listen_port: 82 }] })).thenAccepted();
    expect([deployed('a'), deployed('b')]).toEqual([[false], [false, false]]);
  });

  it('does not mark a route as deployed when the deployed upstream is another, even with the same endpoint', () => {
    const scenario = world();
    scenario.when(f.deployChain('one')).thenAccepted();
    scenario.when(f.createUpstream('twin', { endpoint: 'up.example:443' })).thenAccepted();
    scenario.when(f.updateChain('one', { target: { upstream_id: f.upstreamId('twin') } })).thenAccepted();
    expect(routesOn(scenario, 'b')[0]).toMatchObject({
      sourceLabel: 'twin',
      nextHop: 'up.example:443',
      deployed: false,
    });
    scenario.when(f.updateChain('one', { target: { endpoint: 'up.example:443' } })).thenAccepted();
    expect(routesOn(scenario, 'b')[0]).toMatchObject({ source: 'l4_chain', sourceLabel: 'one', deployed: false });
  });

  it.each<[string, 'tcp' | 'udp', Partial<Hop>, string, readonly (readonly [string, string])[]]>([
    ['RAW', 'tcp', {}, 'tcp', [['default', '']]],
    ['SNI pre-read', 'tcp', { server_names: ['*.b.example', 'a.example'] }, 'tcp', sni('*.b.example', 'a.example')],
    ['TLS', 'tcp', tls, 'tcp', sni('*.leaf.example', 'leaf.example')],
    ['TLS with names of its own', 'tcp', { ...tls, server_names: ['own.example'] }, 'tcp', sni('own.example')],
    ['REALITY', 'tcp', reality, 'tcp', masked('one.example', 'two.example')],
    ['QUIC', 'tcp', { ...reality, outer: 'quic' }, 'udp', masked('one.example', 'two.example')],
    [
      'QUIC DATAGRAM',
      'udp',
      { ...reality, outer: 'quic', server_names: ['two.example'] },
      'udp',
      masked('two.example'),
    ],
    ['UDP', 'udp', { outer: 'udp' }, 'udp', [['default', '']]],
    ['Noise', 'udp', noise, 'udp', [['local_key', f.publicKey('noise')]]],
    ['FAKE_TCP', 'udp', { outer: 'fake_tcp' }, 'tcp', [['default', '']]],
    ['FAKE_TCP with Noise', 'udp', { ...noise, outer: 'fake_tcp' }, 'tcp', [['local_key', f.publicKey('noise')]]],
  ])('matches a %s hop by what tells its routes apart, on its listener', (_, payload, hop, transport, matches) => {
    const scenario = f.given(
      f.createNode('a'),
      ...credentials,
      f.createChain('one', [f.hop('a', 80, hop)], { payload }),
      f.deployChain('one'),
    );
    const routes = routesOn(scenario, 'a');
    expect(routes.map(({ matchKind, matchValue }) => [matchKind, matchValue])).toEqual(matches);
    for (const route of routes) {
      expect(route).toMatchObject({ key: `${transport} 0.0.0.0 80`, nextHop: '192.0.2.1:80', deployed: true });
    }
  });

  it('follows the names and the key of a credential at once, deployed ones as well', () => {
    const scenario = f.given(
      f.createNode('a'),
      ...credentials,
      f.createChain('masked', [f.hop('a', 80, reality)]),
      f.createChain('noise', [f.udpHop('a', 80, noise)]),
      f.deployChain('masked'),
      f.deployChain('noise'),
      f.updateCredential('masked', { server_names: ['new.example'] }),
      f.updateCredential('noise', f.x25519Keys('new')),
    );
    expect(routesOn(scenario, 'a')).toMatchObject([
      { matchKind: 'reality', matchValue: 'new.example', deployed: true },
      { matchKind: 'local_key', matchValue: f.publicKey('new'), deployed: true },
    ]);
  });

  it('does not mark a route as deployed that is deployed over another transport', () => {
    const scenario = f.given(
      f.createNode('a'),
      ...credentials,
      f.createChain('one', [f.hop('a', 80, { ...reality, server_names: ['one.example'] })]),
      f.deployChain('one'),
      f.updateChain('one', { hops: [f.hop('a', 80, { server_names: ['one.example'] })] }),
    );
    expect(routesOn(scenario, 'a')).toMatchObject([{ matchKind: 'sni', matchValue: 'one.example', deployed: false }]);
    scenario
      .when(f.updateChain('one', { hops: [f.hop('a', 80, { ...tls, server_names: ['one.example'] })] }))
      .thenAccepted();
    scenario.when(f.deployChain('one')).thenAccepted();
    scenario.when(f.updateChain('one', { hops: [f.hop('a', 80, { server_names: ['one.example'] })] })).thenAccepted();
    expect(routesOn(scenario, 'a')).toMatchObject([{ matchKind: 'sni', matchValue: 'one.example', deployed: false }]);
  });

  it('has an empty next hop while no address is known, and no routes of a disabled chain', () => {
    const scenario = world();
    scenario.when(f.updateNode('b', { address: null })).thenAccepted();
    expect(routesOn(scenario, 'a')[0]?.nextHop).toBe('');
    scenario.when(f.updateChain('one', { enabled: false })).thenAccepted();
    expect(routesOn(scenario, 'a')).toEqual([]);
  });

  it('lists every listener of every current definition, route and network of a random history, once and sorted', () => {
    fc.assert(
      fc.property(histories(), (moves) => {
        const { fleet } = play(moves);
        for (const node of fleet.tables.node.ids()) {
          const expected = new Set<string>();
          for (const chain of fleet.tables.l4_chain.values()) {
            for (const hop of chain.enabled ? chain.hops.filter((one) => one.node_id === node) : []) {
              const transport = hop.outer === 'udp' || hop.outer === 'quic' ? 'udp' : 'tcp';
              expected.add(`${transport} ${hop.listen_port} ${hop.listen_addr}`);
            }
          }
          for (const route of fleet.tables.route.values()) {
            for (const hop of route.enabled ? route.hops.filter((one) => one.node_id === node) : []) {
              expected.add(`tcp ${hop.listen_port} ${hop.listen_addr}`);
            }
          }
          for (const { enabled, tunnels } of fleet.tables.l3_network.values()) {
            for (const tunnel of enabled ? tunnels.filter((one) => one.listener_node_id === node) : []) {
              expected.add(`udp ${tunnel.listen_port} ${tunnel.listen_addr}`);
            }
          }
          const listeners = intendedListeners(fleet, node);
          const keys = listeners.map(
            ({ transport, listenPort, listenAddr }) => `${transport} ${listenPort} ${listenAddr}`,
          );
          expect(keys.toSorted()).toEqual([...expected].sort());
          const order = listeners.map(({ transport, listenPort }) => (transport === 'tcp' ? 0 : 100_000) + listenPort);
          expect(order).toEqual(order.toSorted((a, b) => a - b));
        }
      }),
      { numRuns: 60 },
    );
  });
});
