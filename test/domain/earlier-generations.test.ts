/** What a node's configuration was at an earlier generation (`docs/contract/rest.md#nodes`), from the log alone. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compileNode } from '../../src/domain/compile/compile-node.js';
import { earlierFold, mayBeginAt } from '../../src/domain/compile/earlier.js';
import { emptyFleet, type Fleet } from '../../src/domain/fleet/fleet.js';
import type { NodeSnapshot } from '../../src/domain/snapshot/snapshot.js';
import { lastEvent, type RecordedCommand } from '../../src/kernel/event.js';
import { dealer } from '../support/dealer.js';
import { foldOf } from '../support/fleet.js';
import { dumpFleet } from '../support/fleet-dump.js';
import { histories } from '../support/fleet-histories.js';
import { logOf, play } from '../support/fleet-play.js';

/** Every snapshot that each node ever had, in the order of their generations. */
type Served = ReadonlyMap<string, readonly NodeSnapshot[]>;

function noteServed(served: Map<string, NodeSnapshot[]>, fleet: Fleet): void {
  for (const id of fleet.tables.node.ids()) {
    const had = served.get(id) ?? [];
    served.set(id, had);
    if (had.at(-1)?.generation !== fleet.generationOf(id)) had.push(compileNode(fleet, id));
  }
}

const expectedAt = (served: Served, id: string, generation: number): NodeSnapshot | undefined =>
  (served.get(id) ?? []).findLast((snapshot) => snapshot.generation <= generation);

/** Folds on until the fold needs no more. */
function foundAt(
  log: readonly RecordedCommand[],
  id: string,
  generation: number,
  fleet = emptyFleet(),
): NodeSnapshot | undefined {
  const fold = earlierFold(fleet, id, generation);
  for (const command of log) {
    if (lastEvent(command).revision <= fleet.revision.value) continue;
    if (fold.fold(command)) continue;
    // A later look goes on from this fleet.
    const before = log.slice(0, log.indexOf(command));
    expect(dumpFleet(fleet), 'the fleet before the command that is past').toBe(dumpFleet(foldOf(before)));
    break;
  }
  return fold.snapshot();
}

describe('in a random history', () => {
  it('the snapshot at any generation is the one that was compiled then', () => {
    fc.assert(
      fc.property(histories(), fc.nat(), (moves, seed) => {
        const served = new Map<string, NodeSnapshot[]>();
        const { fleet, steps } = play(moves, { after: (now) => noteServed(served, now) });
        const log = logOf(steps);
        const deal = dealer(seed);
        for (const [id, snapshots] of served) {
          const one = deal.of(snapshots);
          const wanted = [one.generation, one.generation - 1, deal.upTo(fleet.revision.value + 2)];
          for (const generation of wanted) {
            expect(foundAt(log, id, generation), `${id} at ${generation}`).toEqual(expectedAt(served, id, generation));
          }
        }
      }),
      { numRuns: 10 },
    );
  });

  it('it is the same from every fleet on the way that a fold may begin at', () => {
    let begun = 0;
    fc.assert(
      fc.property(histories(), fc.nat(), (moves, seed) => {
        const served = new Map<string, NodeSnapshot[]>();
        const { steps } = play(moves, { after: (now) => noteServed(served, now) });
        const log = logOf(steps);
        const deal = dealer(seed);
        const begin = log.slice(0, deal.upTo(log.length));
        for (const [id, snapshots] of served) {
          const { generation } = deal.of(snapshots);
          const fleet = foldOf(begin);
          if (!mayBeginAt(fleet, id, generation)) continue;
          begun += 1;
          expect(foundAt(log, id, generation, fleet)).toEqual(expectedAt(served, id, generation));
        }
      }),
      { numRuns: 20 },
    );
    expect(begun).toBeGreaterThan(15);
  });
});
