/**
 * A multiplex port beside what listens on its node (`docs/contract/domain.md#listeners-and-collisions`): what is refused and
 * what is not, global ports and overrides at random are in `collisions-by-oracle.test.ts`.
 */
import { describe, expect, it } from 'vitest';
import { compileNode } from '../../src/domain/compile/compile-node.js';
import type { FleetCommand } from '../../src/domain/fleet/resources.js';
import * as f from '../support/fleet.js';

const port = 9443;
const node_id = f.nodeId('n');
const world = (...more: readonly FleetCommand[]): f.Scenario => f.given(f.createNode('n'), ...more);
const multiplexing = f.settings({ nodes: [{ node_id, multiplex: true, multiplex_port: port }] });

describe('a multiplex port', () => {
  it('collides with a tcp listener, in either order', () => {
    const hop = f.createChain('x', [f.hop('n', port)]);
    world(hop)
      .when(multiplexing)
      .thenRefused('conflict', `multiplex_port: port ${port} on node "n" collides with l4_chain "x"`);
    world(multiplexing).when(hop).thenRefused('conflict', 'the multiplex port of node "n" (connectivity settings)');
  });

  it.each<[string, FleetCommand]>([
    ['a udp hop', f.createChain('x', [f.udpHop('n', port)])],
    ['a disabled route', f.createRoute('x', [f.routeHop('n', port)], { enabled: false })],
    ['a policy, which listens on nothing', f.savePolicy('n', port, ['raw'])],
  ])('lives beside %s', (_, other) => {
    world(other).when(multiplexing).thenAccepted();
    world(multiplexing).when(other).thenAccepted();
  });

  it('of a new node is the global one, from its first snapshot on', () => {
    const { fleet, when } = world(f.settings({ multiplex: true, multiplex_port: port }));
    when(f.createNode('new')).thenAccepted();
    expect(compileNode(fleet, f.nodeId('new')).node).toEqual({ multiplex: true, multiplex_port: port });
    when(f.createRoute('x', [f.routeHop('new', port)])).thenRefused('conflict', 'the multiplex port of node "new"');
  });
});
