/** Commands whose changes are to be confirmed: what lies in their own append, and what nodes need from then on. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { captureFleet, encodeFleet, restoreFleet } from '../../src/domain/fleet/checkpoint.js';
import { emptyFleet, type Fleet } from '../../src/domain/fleet/fleet.js';
import { createNode, nodeId, perform, settings } from '../support/fleet.js';
import { createRolloutPolicy, roll } from '../support/rollouts.js';

const names = ['a', 'b', 'c'];
function threeNodes(): Fleet {
  const fleet = emptyFleet();
  for (const name of names) perform(fleet, createNode(name));
  perform(fleet, createRolloutPolicy('careful', { bake_secs: 400, confirm_secs: 300 }));
  return fleet;
}
const ofAll = (port: number) => settings({ multiplex: true, multiplex_port: port });
const needs = (fleet: Fleet): readonly (number | undefined)[] => names.map((name) => fleet.needOf(nodeId(name))?.secs);
const typesOf = ({ written }: ReturnType<typeof roll>): readonly string[] =>
  (written?.events ?? []).map(({ type }) => type);

describe('a command whose change is to be confirmed by nodes', () => {
  it('says so in its own append, before the start of its rollout, and each node needs it from its generation on', () => {
    const fleet = threeNodes();
    const rolled = roll(fleet, ofAll(9000), 'careful');
    expect(typesOf(rolled)).toEqual(['ConnectivityUpdated', 'ConfirmationAsked', 'RolloutStarted']);
    for (const name of names) {
      expect(fleet.needOf(nodeId(name))).toEqual({ generation: fleet.generationOf(nodeId(name)), secs: 300 });
    }
  });

  it('does so for one unit, which starts no rollout, and for what it says itself rather than its policy', () => {
    const fleet = threeNodes();
    const one = { type: 'RefreshNodeConfig', id: nodeId('a') } as const;
    expect(typesOf(roll(fleet, one, 'careful'))).toEqual(['NodeConfigRefreshed', 'ConfirmationAsked']);
    expect(needs(fleet)).toEqual([300, undefined, undefined]);
    roll(fleet, ofAll(9001), 'none', { confirm: { by: 'node', secs: 60 } });
    expect(needs(fleet)).toEqual([60, 60, 60]);
    roll(fleet, ofAll(9002), 'careful', { confirm: { by: 'node', secs: 90 } });
    expect(needs(fleet)).toEqual([90, 90, 90]);
  });

  it('asks nothing where no policy is in force, and of no node where it touches none', () => {
    const fleet = threeNodes();
    expect(typesOf(roll(fleet, ofAll(9000), undefined))).toEqual(['ConnectivityUpdated']);
    expect(typesOf(roll(fleet, ofAll(9001), 'none'))).toEqual(['ConnectivityUpdated']);
    expect(typesOf(roll(fleet, settings({ metrics_interval_secs: 17 }), 'careful'))).toEqual(['ConnectivityUpdated']);
    expect(needs(fleet)).toEqual([undefined, undefined, undefined]);
  });

  it('leaves needs that a checkpoint keeps, and that go with their node', () => {
    const fleet = threeNodes();
    roll(fleet, ofAll(9000), 'careful');
    const restored = restoreFleet(Buffer.concat([...encodeFleet(captureFleet(fleet))]));
    expect(names.map((name) => restored.needOf(nodeId(name)))).toEqual(names.map((name) => fleet.needOf(nodeId(name))));
    perform(restored, { type: 'DeleteNode', id: nodeId('b'), ifMatch: undefined });
    expect(needs(restored)).toEqual([300, undefined, 300]);
  });
});

describe('what a node needs, over any history', () => {
  it('is what the last command asked that touched it and asked anything', () => {
    const step = fc.record({
      node: fc.option(fc.constantFrom(...names)),
      secs: fc.option(fc.integer({ min: 60, max: 3600 })),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
        const fleet = threeNodes();
        const model = new Map<string, { generation: number | undefined; secs: number }>();
        for (const { node, secs } of steps) {
          const before = new Map(names.map((name) => [name, fleet.generationOf(nodeId(name))]));
          const command =
            node === null
              ? ofAll(9000 + (fleet.revision.value % 1_000))
              : ({ type: 'RefreshNodeConfig', id: nodeId(node) } as const);
          roll(fleet, command, 'none', secs === null ? {} : { confirm: { by: 'node', secs } });
          for (const name of names) {
            const generation = fleet.generationOf(nodeId(name));
            if (secs !== null && generation !== before.get(name)) model.set(name, { generation, secs });
          }
        }
        expect(names.map((name) => fleet.needOf(nodeId(name)))).toEqual(names.map((name) => model.get(name)));
      }),
    );
  });
});
