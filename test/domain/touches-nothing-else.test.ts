/**
 * A command touches exactly the nodes whose content changes; only a deploy and the commands that ask for a new generation
 * touch more (`docs/contract/domain.md#l4-chain`, edit and deploy).
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { FleetCommand } from '../../src/domain/fleet/resources.js';
import * as f from '../support/fleet.js';
import { changedNodes, contentsOf } from '../support/fleet-contents.js';
import type { NodeContent } from '../support/fleet-contents.js';
import { histories } from '../support/fleet-histories.js';
import { play } from '../support/fleet-play.js';

/** Commands that also touch nodes whose content stays the same. */
const mayTouchMore = new Set<FleetCommand['type']>([
  'DeployChain',
  'RollBackChain',
  'RefreshNodeConfig',
  'RaiseNodeGeneration',
  'RaiseCompilerVersion',
  'LowerCompilerVersion',
]);

describe('a random history', () => {
  it('touches only nodes whose content changes, except for deploys, refreshes and raised versions', () => {
    fc.assert(
      fc.property(histories(), (moves) => {
        let before: ReadonlyMap<string, NodeContent> = new Map();
        play(moves, {
          after(fleet, { command, performed }) {
            const now = contentsOf(fleet);
            const changed = changedNodes(before, now);
            before = now;
            if (performed.kind !== 'written' || mayTouchMore.has(command.type)) return;
            const touched = [...performed.touched].filter((id) => now.has(id));
            expect(touched.sort(), command.type).toEqual([...changed].sort());
          },
        });
      }),
      { numRuns: 100 },
    );
  });
});

describe('on a fleet with live, modified, draft and disabled chains', () => {
  const world = (): f.Scenario =>
    f.given(
      { type: 'RaiseCompilerVersion', version: 2 },
      ...['a', 'b', 'c', 'd', 'e'].map((name) => f.createNode(name)),
      f.createUpstream('up'),
      f.createUpstream('other'),
      f.createChain('live', [f.hop('a', 80), f.hop('b', 80)], { target: { upstream_id: f.upstreamId('up') } }),
      f.deployChain('live'),
      f.createChain('modified', [f.hop('c', 80)], { target: { upstream_id: f.upstreamId('up') } }),
      f.deployChain('modified'),
      f.updateChain('modified', { target: { upstream_id: f.upstreamId('other') }, hops: [f.hop('d', 80)] }),
      f.createChain('draft', [f.hop('d', 90)], { target: { upstream_id: f.upstreamId('up') } }),
      f.createChain('off', [f.hop('e', 80), f.hop('b', 90)], { target: { upstream_id: f.upstreamId('up') } }),
      f.deployChain('off'),
      f.updateChain('off', { enabled: false }),
      f.createChain('dialled', [f.hop('d', 70), f.hop('b', 70, { dial_addr: 'elsewhere.example' })]),
      f.deployChain('dialled'),
    );
  const overrideOfB = { node_id: f.nodeId('b'), multiplex: true, multiplex_port: 1000 };

  it.each<[string, FleetCommand, readonly string[]]>([
    [
      'an upstream edit touches the last hops that end in it',
      f.updateUpstream('up', { endpoint: 'new.example:1' }),
      ['b', 'c'],
    ],
    [
      'disabling an upstream touches the last hops that end in it',
      f.updateUpstream('up', { enabled: false }),
      ['b', 'c'],
    ],
    [
      'an edit of an upstream that only a current definition uses touches no node',
      f.updateUpstream('other', { enabled: false }),
      [],
    ],
    [
      "an edit of a node's address touches the nodes that dial it",
      f.updateNode('b', { address: 'moved.example' }),
      ['a'],
    ],
    ['an edit of an address that no node dials touches no node', f.updateNode('a', { address: 'moved.example' }), []],
    [
      "an edit of a node's name and labels touches no node",
      f.updateNode('b', { name: 'renamed', labels: { x: 'y' } }),
      [],
    ],
    ['a reported address of a node with a configured one touches no node', report('b', '203.0.113.9', null), []],
    ['a chain edit touches no node', f.updateChain('live', { hops: [f.hop('c', 81)] }), []],
    ["an edit of a chain's description touches no node", f.updateChain('live', { description: 'words' }), []],
    [
      "an edit of a chain's name, which rules carry, touches its nodes",
      f.updateChain('live', { name: 'renamed' }),
      ['a', 'b'],
    ],
    ['an edit of the name of a disabled chain touches no node', f.updateChain('off', { name: 'renamed' }), []],
    [
      'disabling a chain touches the nodes of its deployed definition',
      f.updateChain('modified', { enabled: false }),
      ['c'],
    ],
    [
      'enabling a chain touches the nodes of its deployed definition',
      f.updateChain('off', { enabled: true }),
      ['b', 'e'],
    ],
    [
      'deleting a live chain touches its nodes',
      { type: 'DeleteChain', id: f.chainId('live'), ifMatch: undefined },
      ['a', 'b'],
    ],
    [
      'deleting a disabled chain touches no node',
      { type: 'DeleteChain', id: f.chainId('off'), ifMatch: undefined },
      [],
    ],
    ['an override touches its node', f.settings({ nodes: [overrideOfB] }), ['b']],
    [
      'an override with the effective values touches no node',
      f.settings({ nodes: [{ node_id: f.nodeId('b'), multiplex: false }] }),
      [],
    ],
    ['an edit of the intervals touches no node', f.settings({ heartbeat_interval_secs: 7 }), []],
    ['a global port while multiplex is off touches no node', f.settings({ multiplex_port: 1000 }), []],
    [
      'global multiplex touches every node',
      f.settings({ multiplex: true, multiplex_port: 1000 }),
      ['a', 'b', 'c', 'd', 'e'],
    ],
    ['a refresh touches its node', { type: 'RefreshNodeConfig', id: f.nodeId('c') }, ['c']],
    ['a PSK touches no node', { type: 'IssueNodePsk', id: f.nodeId('c'), fingerprint: 'f', verifier: f.sealed }, []],
    [
      'a raised compiler version touches every node',
      { type: 'RaiseCompilerVersion', version: 9 },
      ['a', 'b', 'c', 'd', 'e'],
    ],
    [
      'a lowered compiler version touches every node',
      { type: 'LowerCompilerVersion', version: 1 },
      ['a', 'b', 'c', 'd', 'e'],
    ],
  ])('%s', (_, command, expected) => {
    const [touched] = f.performAll(world().fleet, [command]);
    expect([...touched!].sort()).toEqual(expected.map(f.nodeId).sort());
  });

  it('a reported address of a node without a configured one touches the nodes that dial it', () => {
    const { fleet } = world();
    const [, configured, reported] = f.performAll(fleet, [
      report('b', '203.0.113.9', null),
      f.updateNode('b', { address: null }),
      report('b', '203.0.113.10', '2001:db8::1'),
    ]);
    expect([...configured!]).toEqual([f.nodeId('a')]);
    expect([...reported!]).toEqual([f.nodeId('a')]);
    const [second] = f.performAll(fleet, [report('b', '203.0.113.10', null)]);
    expect([...second!], 'only the IPv4 address is dialled').toEqual([]);
  });
});

function report(node: string, public_ipv4: string | null, public_ipv6: string | null): FleetCommand {
  return { type: 'ReportNodeAddress', id: f.nodeId(node), public_ipv4, public_ipv6 };
}
