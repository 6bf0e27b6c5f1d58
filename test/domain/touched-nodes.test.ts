/** Every node whose configuration changes is touched, and only touched nodes get a new generation (`docs/contract/domain.md#generation`). */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { lastEvent } from '../../src/kernel/event.js';
import { given, createChain, createNode, deployChain, hop, nodeId, performAll } from '../support/fleet.js';
import { changedNodes, contentsOf } from '../support/fleet-contents.js';
import type { NodeContent } from '../support/fleet-contents.js';
import { histories } from '../support/fleet-histories.js';
import { play } from '../support/fleet-play.js';

describe('after every command of a random history', () => {
  it('every node whose content changed is touched, and exactly the touched nodes have the new generation', () => {
    fc.assert(
      fc.property(histories(), (moves) => {
        let before: ReadonlyMap<string, NodeContent> = new Map();
        play(moves, {
          after(fleet, { performed }) {
            const now = contentsOf(fleet);
            const touched = performed.kind === 'written' ? performed.touched : new Set<string>();
            const missed = [...changedNodes(before, now)].filter((id) => !touched.has(id));
            expect(missed, 'changed, but not touched').toEqual([]);
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
      { numRuns: 100 },
    );
  });

  it('a deleted node is touched, so that its sessions can be ended', () => {
    fc.assert(
      fc.property(histories(), (moves) => {
        play(moves, {
          after(fleet, { command, performed }) {
            if (command.type !== 'DeleteNode' || performed.kind !== 'written') return;
            expect([...performed.touched]).toEqual([command.id]);
            expect(fleet.generationOf(command.id)).toBeUndefined();
          },
        });
      }),
      { numRuns: 40 },
    );
  });

  it('a raised generation is above the one that the agent reported', () => {
    fc.assert(
      fc.property(histories(), (moves) => {
        play(moves, {
          after(fleet, { command, performed }) {
            if (command.type !== 'RaiseNodeGeneration' || performed.kind !== 'written') return;
            expect(fleet.generationOf(command.id)).toBeGreaterThan(command.reported);
          },
        });
      }),
      { numRuns: 40 },
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

  it('writes the offset of each node, from which its generation follows', () => {
    const { when } = given(
      createNode('a'),
      createNode('b'),
      { type: 'RaiseNodeGeneration', id: nodeId('b'), reported: 1000 },
      createChain('one', [hop('a', 80), hop('b', 80)]),
    );
    const { performed } = when(deployChain('one'));
    const event = performed.kind === 'written' ? performed.events[0] : undefined;
    const nodes = event?.type === 'ChainDeployed' ? event.data.nodes : [];
    expect(nodes).toEqual([
      { node_id: nodeId('a'), offset: 0 },
      // Node b was last touched by revision 1.
      { node_id: nodeId('b'), offset: 999 },
    ]);
  });
});
