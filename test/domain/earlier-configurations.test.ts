/** A node's configuration at an earlier generation (`docs/contract/rest.md#nodes`), by example. */
import { describe, expect, it } from 'vitest';
import { compileNode } from '../../src/domain/compile/compile-node.js';
import { earlierFold, isPast, mayBeginAt } from '../../src/domain/compile/earlier.js';
import type { FleetCommand } from '../../src/domain/fleet/resources.js';
import { emptyFleet } from '../../src/domain/fleet/fleet.js';
import type { NodeSnapshot } from '../../src/domain/snapshot/snapshot.js';
import type { RecordedCommand } from '../../src/kernel/event.js';
import * as f from '../support/fleet.js';
import { dumpFleet } from '../support/fleet-dump.js';

const id = f.nodeId('a');

/** A log, with the snapshot of the node after each command. */
function history(...commands: readonly FleetCommand[]) {
  const fleet = emptyFleet();
  const log: RecordedCommand[] = [];
  const served: (NodeSnapshot | undefined)[] = [];
  for (const command of commands) {
    const performed = f.perform(fleet, command);
    if (performed.kind !== 'written') throw new Error(`${command.type} wrote nothing`);
    log.push(performed.command);
    served.push(fleet.tables.node.has(id) ? compileNode(fleet, id) : undefined);
  }
  return { log, served };
}

/** Folds until it is told to stop. */
function at(generation: number, log: readonly RecordedCommand[]) {
  const fleet = emptyFleet();
  const fold = earlierFold(fleet, id, generation);
  const stopped = log.findIndex((command) => !fold.fold(command));
  return { fleet, snapshot: fold.snapshot(), folded: stopped === -1 ? log.length : stopped };
}

const removeChain: FleetCommand = { type: 'DeleteChain', id: f.chainId('one'), ifMatch: undefined };
const removeNode: FleetCommand = { type: 'DeleteNode', id, ifMatch: undefined };
const live = [f.createChain('one', [f.hop('a', 80)]), f.deployChain('one')];

describe('the configuration at a generation', () => {
  it('is the newest that is not above it', () => {
    // Generations 1, 1, 1, 4, 4, 6 after revisions 0 to 5.
    const { log, served } = history(f.createNode('a'), f.createNode('b'), ...live, f.createUpstream('up'), removeChain);
    expect(served.map((snapshot) => snapshot?.generation)).toEqual([1, 1, 1, 4, 4, 6]);
    expect(at(0, log)).toMatchObject({ snapshot: undefined, folded: 0 });
    for (const generation of [1, 2, 3]) expect(at(generation, log).snapshot).toEqual(served[0]);
    for (const generation of [4, 5]) expect(at(generation, log).snapshot).toEqual(served[3]);
    for (const generation of [6, 7, 1000]) expect(at(generation, log).snapshot).toEqual(served[5]);
    // No command behind the wanted generation's revision is looked at.
    expect([1, 3, 4, 5, 6].map((generation) => at(generation, log).folded)).toEqual([1, 3, 4, 5, 6]);
  });

  it('leaves the fleet before the command that is past', () => {
    const raise: FleetCommand = { type: 'RaiseNodeGeneration', id, reported: 500 };
    const { log, served } = history(f.createNode('a'), ...live, raise, removeChain);
    const raised = served[3]?.generation ?? 0;
    expect(raised).toBeGreaterThan(500);
    // The offset makes a command past that its revision would not.
    for (const generation of [100, raised - 1]) {
      const { fleet, snapshot, folded } = at(generation, log);
      expect([snapshot, folded]).toEqual([served[2], 3]);
      expect(dumpFleet(fleet)).toBe(dumpFleet(f.foldOf(log.slice(0, 3))));
    }
    const { fleet, snapshot, folded } = at(raised, log);
    expect([snapshot, folded]).toEqual([served[3], 4]);
    expect(dumpFleet(fleet)).toBe(dumpFleet(f.foldOf(log.slice(0, 4))));
  });

  it('of a deleted node is its last, until it comes back', () => {
    const again = f.createNode('a', { description: 'again' });
    const { log, served } = history(f.createNode('a'), removeNode, f.createUpstream('up'), again, ...live);
    expect([2, 3].map((generation) => at(generation, log).snapshot)).toEqual([served[0], served[0]]);
    expect(at(3, log.slice(0, 3)).fleet.tables.node.has(id)).toBe(false);
    for (const generation of [4, 5]) expect(at(generation, log).snapshot).toEqual(served[3]);
    expect(at(6, log).snapshot).toEqual(served[5]);
    // Deleted, its last has the rules that it had.
    const second = history(f.createNode('a'), f.savePolicy('a', 443, ['raw']), removeNode);
    const { snapshot, fleet } = at(9, second.log);
    expect(snapshot).toEqual(second.served[1]);
    expect(dumpFleet(fleet)).toBe(dumpFleet(f.foldOf(second.log)));
  });

  it('of a node that is not in the log is none', () => {
    expect(at(9, history(f.createNode('b')).log).snapshot).toBeUndefined();
  });
});

it('a fold begins at a fleet that has the node, and nothing past the wanted generation', () => {
  const { fleet } = f.given(f.createNode('b'), f.createNode('a'));
  expect([1, 2, 3].map((generation) => mayBeginAt(fleet, id, generation))).toEqual([false, true, true]);
  expect(mayBeginAt(fleet, f.nodeId('c'), 3)).toBe(false);
  expect([3, 4, 5].map((revision) => isPast(revision, 5))).toEqual([false, false, true]);
});
