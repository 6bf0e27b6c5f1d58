/** Commands about the connectivity settings and the compiler version. Collisions of ports are tested with the listeners. */
import { describe, expect, it } from 'vitest';
import { describeCommand } from '../../src/domain/audit/describe.js';
import { compileNode } from '../../src/domain/compile/compile-node.js';
import type { RefusalCode } from '../../src/domain/resource/refusal.js';
import { effectiveMultiplex, offlineAfterSeconds } from '../../src/domain/settings/settings.js';
import * as f from '../support/fleet.js';

const a = f.nodeId('a');
const b = f.nodeId('b');

describe('the connectivity settings', () => {
  it('write each changed field with both values, each override as a field of its own', () => {
    f.given(f.createNode('a'), f.createNode('b'), f.settings({ nodes: [{ node_id: b, multiplex: false }] }))
      .when(
        f.settings({
          multiplex: true,
          multiplex_port: 1000,
          heartbeat_interval_secs: 10,
          nodes: [
            { node_id: a, multiplex: true, multiplex_port: 2000 },
            { node_id: b, multiplex: null },
          ],
        }),
      )
      .thenEvents({
        type: 'ConnectivityUpdated',
        data: {
          changes: {
            multiplex: { from: false, to: true },
            multiplex_port: { from: null, to: 1000 },
            [`nodes.${a}`]: { from: null, to: { multiplex: true, multiplex_port: 2000 } },
            [`nodes.${b}`]: { from: { multiplex: false, multiplex_port: null }, to: null },
          },
        },
      });
  });

  it('updated to their current values write nothing', () => {
    const { when } = f.given(f.createNode('a'), f.settings({ nodes: [{ node_id: a, multiplex: false }] }));
    when(f.settings({})).thenNothing();
    when(f.settings({ multiplex: false, heartbeat_interval_secs: 10, offline_after_secs: null })).thenNothing();
    when(f.settings({ nodes: [{ node_id: a, multiplex: false, multiplex_port: null }] })).thenNothing();
    when(
      f.settings({
        nodes: [
          { node_id: a, multiplex: true, multiplex_port: 5 },
          { node_id: a, multiplex: false },
        ],
      }),
    ).thenNothing();
  });

  it('are not updated when If-Match does not match, * included', () => {
    const { when } = f.given();
    when(f.settings({ ifMatch: '*', multiplex_port: 5 })).thenRefused('precondition_failed', 'If-Match: *');
    when(f.settings({ ifMatch: [1], multiplex_port: 5 })).thenRefused('precondition_failed', '"0"');
    when(f.settings({ ifMatch: [0], multiplex_port: 5 })).thenAccepted();
    when(f.settings({ ifMatch: '*', multiplex_port: 6 })).thenAccepted();
    when(f.settings({ ifMatch: [1], multiplex_port: 7 })).thenRefused('precondition_failed', '"2"');
  });

  it('are refused for a node that does not exist; the refusal names its place in the body', () => {
    f.given(f.createNode('a'))
      .when(
        f.settings({
          nodes: [
            { node_id: a, multiplex: false },
            { node_id: b, multiplex: null },
          ],
        }),
      )
      .thenRefused('invalid_request', 'nodes[1].node_id', b);
  });

  it('require offline_after_secs to be at least two heartbeats', () => {
    const { fleet, when } = f.given(f.settings({ heartbeat_interval_secs: 20 }));
    expect(offlineAfterSeconds(fleet.singletons.connectivity.value)).toBe(60);
    when(f.settings({ offline_after_secs: 39 })).thenRefused('invalid_request', 'offline_after_secs', '40');
    when(f.settings({ offline_after_secs: 40 })).thenAccepted();
    expect(offlineAfterSeconds(fleet.singletons.connectivity.value)).toBe(40);
    when(f.settings({ heartbeat_interval_secs: 21 })).thenRefused('invalid_request', 'offline_after_secs', '42');
    when(f.settings({ heartbeat_interval_secs: 21, offline_after_secs: null })).thenAccepted();
  });

  it('require a port wherever multiplex is on', () => {
    const { when } = f.given(f.createNode('a'));
    when(f.settings({ multiplex: true })).thenRefused('invalid_request', 'multiplex_port');
    when(f.settings({ nodes: [{ node_id: a, multiplex: true }] })).thenRefused('invalid_request', 'multiplex_port', a);
    when(f.settings({ multiplex_port: 1000, nodes: [{ node_id: a, multiplex: true }] })).thenAccepted();
    when(f.settings({ multiplex_port: null })).thenRefused('invalid_request', 'multiplex_port', a);
    when(f.settings({ multiplex_port: null, nodes: [{ node_id: a, multiplex: false }] })).thenAccepted();
  });

  it.each<[string, boolean, number | null, boolean | null, number | null, boolean, number]>([
    ['on for all, off for the node', true, 1000, false, null, false, 0],
    ['on for the node, at the global port', false, 1000, true, null, true, 1000],
    ['on for the node, at its own port', true, 1000, true, 2000, true, 2000],
  ])('set multiplex in the snapshot: %s', (_, multiplex, multiplex_port, nodeMultiplex, nodePort, effective, port) => {
    const nodes = nodeMultiplex === null ? [] : [{ node_id: a, multiplex: nodeMultiplex, multiplex_port: nodePort }];
    const { fleet, when } = f.given(f.createNode('a'));
    when(f.settings({ multiplex, multiplex_port, nodes })).thenAccepted();
    expect(compileNode(fleet, a).node).toEqual({ multiplex: effective, multiplex_port: port });
    expect(effectiveMultiplex(fleet.singletons.connectivity.value, a)).toEqual({
      multiplex: effective,
      multiplex_port: port === 0 ? null : port,
    });
  });
});

describe('the compiler version', () => {
  it('is raised, and never lowered, by RaiseCompilerVersion', () => {
    const { fleet, when } = f.given(f.createNode('a'));
    when({ type: 'RaiseCompilerVersion', version: 2 }).thenEvents({
      type: 'CompilerVersionRaised',
      data: { version: { from: 0, to: 2 } },
    });
    when({ type: 'RaiseCompilerVersion', version: 2 }).thenNothing();
    when({ type: 'RaiseCompilerVersion', version: 1 }).thenNothing();
    expect(fleet.singletons.service.value).toBe(2);
  });

  it('is lowered by LowerCompilerVersion, which gives every node a new generation', () => {
    const { fleet, when } = f.given(f.createNode('a'), f.createNode('b'), { type: 'RaiseCompilerVersion', version: 3 });
    const before = [a, b].map((id) => fleet.generationOf(id) ?? 0);
    when({ type: 'LowerCompilerVersion', version: 2 }).thenEvents({
      type: 'CompilerVersionLowered',
      data: { version: { from: 3, to: 2 } },
    });
    expect(fleet.singletons.service.value).toBe(2);
    const after = [a, b].map((id) => fleet.generationOf(id) ?? 0);
    expect(after).toEqual(before.map((generation) => generation + 1));
    when({ type: 'RaiseCompilerVersion', version: 3 }).thenAccepted();
    expect([a, b].map((id) => fleet.generationOf(id))).toEqual(after.map((generation) => generation + 1));
  });

  it.each<[string, number, RefusalCode, string]>([
    ['the current version', 3, 'conflict', 'at compiler version 3'],
    ['a higher version', 4, 'conflict', '4 is not lower'],
    ['zero', 0, 'invalid_request', 'from 1'],
    ['a fraction', 1.5, 'invalid_request', 'whole number'],
  ])('is not lowered to %s', (_, version, code, words) => {
    f.given({ type: 'RaiseCompilerVersion', version: 3 })
      .when({ type: 'LowerCompilerVersion', version })
      .thenRefused(code, words);
  });

  it('is not lowered while no release has raised it', () => {
    f.given().when({ type: 'LowerCompilerVersion', version: 1 }).thenRefused('conflict', 'at compiler version 0');
  });

  it.each(['RaiseCompilerVersion', 'LowerCompilerVersion'] as const)(
    'has an audit entry for %s, which is not revertible',
    (type) => {
      const { fleet } = f.given({ type: 'RaiseCompilerVersion', version: 3 });
      const to = type === 'RaiseCompilerVersion' ? 4 : 2;
      const performed = f.perform(fleet, { type, version: to });
      if (performed.kind !== 'written') throw new Error(performed.kind);
      expect(describeCommand(performed.command)).toEqual({
        action: 'service.update',
        resource: { type: 'service', id: 'compiler', name: 'compiler' },
        changes: [{ path: 'compiler_version', before: 3, after: to }],
        readers: 'all',
        others: [],
        notRevertibleBecause: 'the compiler version follows the release that runs',
      });
    },
  );
});
