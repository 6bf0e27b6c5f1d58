/** A multiplex port beside everything that may listen on its node (`docs/contract/domain.md#listeners-and-collisions`). */
import { describe, expect, it } from 'vitest';
import { compileNode } from '../../src/domain/compile/compile-node.js';
import type { FleetCommand } from '../../src/domain/fleet/resources.js';
import * as f from '../support/fleet.js';

const port = 9443;
const node_id = f.nodeId('n');
const identity = { security: 'reality', credential_id: f.credentialId('identity') } as const;
const world = (...more: readonly FleetCommand[]): f.Scenario =>
  f.given(
    f.createNode('n'),
    f.createNode('m'),
    f.createX25519('keys'),
    f.createReality('identity', 'keys'),
    f.createTlsCert('cert'),
    ...more,
  );
const multiplexing = f.settings({ nodes: [{ node_id, multiplex: true, multiplex_port: port }] });

const onTcp: readonly (readonly [string, FleetCommand, string])[] = [
  ['a RAW hop', f.createChain('x', [f.hop('n', port)]), 'l4_chain "x"'],
  ['a hop with names', f.createChain('x', [f.hop('n', port, { server_names: ['a.example'] })]), 'l4_chain "x"'],
  ['a REALITY hop', f.createChain('x', [f.hop('n', port, identity)]), 'l4_chain "x"'],
  [
    'a TLS hop',
    f.createChain('x', [f.hop('n', port, { security: 'tls', credential_id: f.credentialId('cert') })]),
    'l4_chain "x"',
  ],
  ['FAKE_TCP', f.createChain('x', [f.udpHop('n', port, { outer: 'fake_tcp' })]), 'l4_chain "x"'],
  ['a route', f.createRoute('x', [f.routeHop('n', port)]), 'route "x"'],
  ['a route on one address', f.createRoute('x', [f.routeHop('n', port, 'fd00::1')]), 'route "x"'],
];

const beside: readonly (readonly [string, FleetCommand])[] = [
  ['a udp hop', f.createChain('x', [f.udpHop('n', port)])],
  ['a QUIC hop', f.createChain('x', [f.hop('n', port, { ...identity, outer: 'quic' })], { payload: 'tcp' })],
  [
    'a Noise hop',
    f.createChain('x', [f.udpHop('n', port, { security: 'noise', credential_id: f.credentialId('keys') })]),
  ],
  ['a route on another node', f.createRoute('x', [f.routeHop('m', port)])],
  ['a route on another port', f.createRoute('x', [f.routeHop('n', port + 1)])],
  ['a disabled route', f.createRoute('x', [f.routeHop('n', port)], { enabled: false })],
  ['a policy, which listens on nothing', f.savePolicy('n', port, ['raw'])],
];

describe('a multiplex port', () => {
  it.each(onTcp)('collides with %s, in either order', (_, listener, owner) => {
    world(listener)
      .when(multiplexing)
      .thenRefused('conflict', `multiplex_port: port ${port} on node "n" collides with ${owner}`);
    world(multiplexing)
      .when(listener)
      .thenRefused('conflict', 'the multiplex port of node "n" (connectivity settings)');
  });

  it.each(beside)('lives beside %s', (_, other) => {
    world(other).when(multiplexing).thenAccepted();
    world(multiplexing).when(other).thenAccepted();
  });

  it('of all nodes leaves out those whose override has another one, or none', () => {
    const everywhere = f.settings({ multiplex: true, multiplex_port: port });
    const route = f.createRoute('x', [f.routeHop('n', port)]);
    const override = (multiplex: boolean, multiplex_port: number | null = null) =>
      f.settings({ nodes: [{ node_id, multiplex, multiplex_port }] });
    world(route).when(everywhere).thenRefused('conflict', 'on node "n"', 'route "x"');
    for (const own of [override(false), override(true, port + 1)]) {
      const { fleet, when } = world(route, own);
      when(everywhere).thenAccepted();
      expect(compileNode(fleet, f.nodeId('m')).node).toEqual({ multiplex: true, multiplex_port: port });
      expect(compileNode(fleet, node_id).node.multiplex_port).not.toBe(port);
      when(f.settings({ nodes: [{ node_id, multiplex: null }] })).thenRefused('conflict', 'route "x"');
    }
  });

  it('of an override takes the place of the global one, unless it has none', () => {
    const override = (multiplex: boolean | null, multiplex_port?: number) =>
      f.settings({ nodes: [{ node_id, multiplex, multiplex_port }] });
    const chain = f.createChain('x', [f.hop('n', port)]);
    const { when } = world(f.settings({ multiplex: true, multiplex_port: port }), override(true, 90), chain);
    for (const own of [override(null), override(true), override(true, port)]) {
      when(own).thenRefused('conflict', `port ${port}`, 'l4_chain "x"');
    }
    when(override(false, port)).thenAccepted();
  });

  it('collides with a deployed listener that the current definition no longer has', () => {
    const moved = f.updateChain('x', { hops: [f.hop('n', 81)] });
    const { when } = world(f.createChain('x', [f.hop('n', port)]), f.deployChain('x'), moved);
    when(multiplexing).thenRefused('conflict', 'l4_chain "x"');
    when(f.settings({ multiplex: true, multiplex_port: 82 })).thenAccepted();
  });

  it('is checked again when a route that was saved while it was disabled is enabled or moved there', () => {
    const { when } = world(
      f.createRoute('x', [f.routeHop('n', port)], { enabled: false }),
      f.createRoute('y', [f.routeHop('n', 80)]),
      multiplexing,
    );
    when(f.updateRoute('x', { enabled: true })).thenRefused('conflict', 'hops[0].listen_port', 'multiplex port');
    when(f.updateRoute('y', { hops: [f.routeHop('n', port)] })).thenRefused('conflict', 'multiplex port');
    when(f.settings({ nodes: [{ node_id, multiplex: false }] })).thenAccepted();
    when(f.updateRoute('x', { enabled: true })).thenAccepted();
  });

  it('of a new node is the global one, from its first snapshot on', () => {
    const { fleet, when } = world(f.settings({ multiplex: true, multiplex_port: port }));
    when(f.createNode('new')).thenAccepted();
    expect(compileNode(fleet, f.nodeId('new')).node).toEqual({ multiplex: true, multiplex_port: port });
    when(f.createRoute('x', [f.routeHop('new', port)])).thenRefused('conflict', 'the multiplex port of node "new"');
  });
});
