/**
 * Every node whose configuration changes is touched, and only touched nodes get a new generation
 * (`docs/contract/domain.md#generation`). A command touches no other node, unless it is a deploy or asks for a new generation
 * (`docs/contract/domain.md#l4-chain`, edit and deploy).
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { FleetCommand } from '../../src/domain/fleet/resources.js';
import { lastEvent } from '../../src/kernel/event.js';
import { given, createChain, createNode, deployChain, hop, nodeId, performAll } from '../support/fleet.js';
import { changedNodes, contentsOf, type NodeContent } from '../support/fleet-contents.js';
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

describe('after every command of a random history', () => {
  it('the nodes whose content changed are touched, and exactly the touched nodes have the new generation', () => {
    fc.assert(
      fc.property(histories(), (moves) => {
        let before: ReadonlyMap<string, NodeContent> = new Map();
        play(moves, {
          after(fleet, { command, performed }) {
            const now = contentsOf(fleet);
            const touched = performed.kind === 'written' ? performed.touched : new Set<string>();
            const changed = changedNodes(before, now);
            expect(
              [...changed].filter((id) => !touched.has(id)),
              'changed, but not touched',
            ).toEqual([]);
            const more = [...touched].filter((id) => now.has(id) && !changed.has(id));
            if (!mayTouchMore.has(command.type))
              expect(more, `touched by ${command.type}, but not changed`).toEqual([]);
            if (command.type === 'DeleteNode' && performed.kind === 'written') {
              // It is touched, so that its sessions can be ended.
              expect([...touched]).toEqual([command.id]);
              expect(fleet.generationOf(command.id)).toBeUndefined();
            }
            if (command.type === 'RaiseNodeGeneration' && performed.kind === 'written') {
              expect(fleet.generationOf(command.id)).toBeGreaterThan(command.reported);
            }
            for (const [id, { generation }] of now) {
              if (performed.kind === 'written' && touched.has(id)) {
                const offset = fleet.tables.node.get(id)?.generation_offset ?? Number.NaN;
                expect(generation).toBe(1 + lastEvent(performed.command).revision + offset);
                expect(generation).toBeGreaterThan(before.get(id)?.generation ?? 0);
              } else {
                expect(generation).toBe(before.get(id)?.generation);
              }
            }
            before = now;
          },
        });
      }),
      { numRuns: 60 },
    );
  });
});

describe('a deploy', () => {
  it('touches the nodes of the old and of the new definition, and no other', () => {
    const { fleet } = given(
      ...['a', 'b', 'c', 'd'].map((name) => createNode(name)),
      createChain('one', [hop('a', 80), hop('b', 80)]),
      createChain('two', [hop('a', 81), hop('d', 81)]),
      deployChain('one'),
      deployChain('two'),
    );
    const edited = createChain('one', [hop('a', 80), hop('c', 80)]);
    const [edit, deploy] = performAll(fleet, [
      { type: 'UpdateChain', id: edited.id, ifMatch: undefined, hops: edited.hops },
      deployChain('one'),
    ]);
    expect([...edit!]).toEqual([]);
    expect([...deploy!].sort()).toEqual(['a', 'b', 'c'].map(nodeId).sort());
  });
});
