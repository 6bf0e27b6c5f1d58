/**
 * What a deployed chain uses touches exactly the nodes whose content changes; only a deploy may touch more
 * (`docs/contract/domain.md`, Edit and deploy).
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { FleetCommand } from '../../src/domain/fleet/events.js';
import * as f from '../support/fleet.js';
import { changedNodes, contentsOf } from '../support/fleet-contents.js';
import type { NodeContent } from '../support/fleet-contents.js';
import { histories } from '../support/fleet-histories.js';
import { play } from '../support/fleet-play.js';

/** Those that touch on purpose nodes whose content stays. */
const touchAnyway = new Set<FleetCommand['type']>([
  'DeployChain',
  'RefreshNodeConfig',
  'RaiseNodeGeneration',
  'RaiseCompilerVersion',
  'LowerCompilerVersion',
]);

describe('a random history', () => {
  it('touches no node whose content stays, deploys and the like aside', () => {
    fc.assert(
      fc.property(histories(), (moves) => {
        let before: ReadonlyMap<string, NodeContent> = new Map();
        play(moves, {
          after(fleet, { command, performed }) {
            const now = contentsOf(fleet);
            const changed = changedNodes(before, now);
            before = now;
            if (performed.kind !== 'written' || touchAnyway.has(command.type)) return;
            const touched = [...performed.touched].filter((id) => now.has(id));
            expect(touched.sort(), command.type).toEqual([...changed].sort());
          },
        });
      }),
      { numRuns: 150 },
    );
  });
});

describe('on a fleet with live, modified, drafted and disabled chains', () => {
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
      'an upstream edit: the last hops that end in it',
      f.updateUpstream('up', { endpoint: 'new.example:1' }),
      ['b', 'c'],
    ],
    ['switching an upstream off', f.updateUpstream('up', { enabled: false }), ['b', 'c']],
    ['an edit of an upstream that only a current definition uses', f.updateUpstream('other', { enabled: false }), []],
    ['a node address: who dials by it', f.updateNode('b', { address: 'moved.example' }), ['a']],
    ['the address of a node that nobody dials', f.updateNode('a', { address: 'moved.example' }), []],
    ['a node name', f.updateNode('b', { name: 'renamed', labels: { x: 'y' } }), []],
    ['a reported address behind a configured one', report('b', '203.0.113.9', null), []],
    ['a chain edit', f.updateChain('live', { hops: [f.hop('c', 81)] }), []],
    ['a chain description', f.updateChain('live', { description: 'words' }), []],
    ['a chain name, which rules carry', f.updateChain('live', { name: 'renamed' }), ['a', 'b']],
    ['the name of a chain that is off', f.updateChain('off', { name: 'renamed' }), []],
    ['switching a chain off', f.updateChain('modified', { enabled: false }), ['c']],
    ['switching a chain on', f.updateChain('off', { enabled: true }), ['b', 'e']],
    ['deleting a live chain', { type: 'DeleteChain', id: f.chainId('live'), ifMatch: undefined }, ['a', 'b']],
    ['deleting a chain that is off', { type: 'DeleteChain', id: f.chainId('off'), ifMatch: undefined }, []],
    ['an override', f.settings({ nodes: [overrideOfB] }), ['b']],
    [
      'an override that says what holds anyway',
      f.settings({ nodes: [{ node_id: f.nodeId('b'), multiplex: false }] }),
      [],
    ],
    ['intervals', f.settings({ heartbeat_interval_secs: 7 }), []],
    ['a global port while multiplex is off', f.settings({ multiplex_port: 1000 }), []],
    ['multiplex everywhere', f.settings({ multiplex: true, multiplex_port: 1000 }), ['a', 'b', 'c', 'd', 'e']],
    ['a refresh', { type: 'RefreshNodeConfig', id: f.nodeId('c') }, ['c']],
    ['a PSK', { type: 'IssueNodePsk', id: f.nodeId('c'), fingerprint: 'f', verifier: f.sealed }, []],
    ['a new compiler', { type: 'RaiseCompilerVersion', version: 9 }, ['a', 'b', 'c', 'd', 'e']],
    ['an older compiler again', { type: 'LowerCompilerVersion', version: 1 }, ['a', 'b', 'c', 'd', 'e']],
  ])('%s', (_, command, expected) => {
    const [touched] = f.performAll(world().fleet, [command]);
    expect([...touched!].sort()).toEqual(expected.map(f.nodeId).sort());
  });

  it('a reported address where none is configured: who dials by it', () => {
    const { fleet } = world();
    const [, configured, reported] = f.performAll(fleet, [
      report('b', '203.0.113.9', null),
      f.updateNode('b', { address: null }),
      report('b', '203.0.113.10', '2001:db8::1'),
    ]);
    expect([...configured!]).toEqual([f.nodeId('a')]);
    expect([...reported!]).toEqual([f.nodeId('a')]);
    const [second] = f.performAll(fleet, [report('b', '203.0.113.10', null)]);
    expect([...second!], 'the IPv4 address is dialled, so the IPv6 one does not matter').toEqual([]);
  });
});

function report(node: string, public_ipv4: string | null, public_ipv6: string | null): FleetCommand {
  return { type: 'ReportNodeAddress', id: f.nodeId(node), public_ipv4, public_ipv6 };
}
