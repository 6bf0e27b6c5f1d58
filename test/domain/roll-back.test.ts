/** Rolling back restores a fleet exactly, indexes included. Deciding and planning change nothing. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { planDeploy } from '../../src/domain/compile/plan.js';
import { decideFleet } from '../../src/domain/fleet/decide.js';
import { createChain, createNode, deployChain, given, hop, updateChain, chainId, nodeId } from '../support/fleet.js';
import { dumpFleet } from '../support/fleet-dump.js';
import { commandOf, histories } from '../support/fleet-histories.js';
import { play } from '../support/fleet-play.js';

const withKeys = (step: number) => ({
  at: Date.UTC(2025, 0, 1) + step * 3_600_000,
  idempotency: step % 2 === 0 ? { key_hash: `key ${step % 7}`, body_hash: 'body' } : undefined,
});

describe('rolling back', () => {
  it('undoes one command after another, newest first', () => {
    fc.assert(
      fc.property(histories(), (moves) => {
        const marks: { readonly mark: number; readonly dump: string }[] = [];
        const { fleet } = play(moves, {
          keepJournal: true,
          recording: withKeys,
          before: (now) => marks.push({ mark: now.journal.mark(), dump: dumpFleet(now) }),
        });
        for (const { mark, dump } of marks.toReversed()) {
          fleet.journal.rollback(mark);
          expect(dumpFleet(fleet)).toBe(dump);
        }
      }),
      { numRuns: 60 },
    );
  });

  it('undoes a group of commands at once, and later decisions are as if the group never existed', () => {
    fc.assert(
      fc.property(histories(40), histories(20), histories(20), (past, lost, next) => {
        const shared = play(past, { recording: withKeys }).fleet;
        const untouched = play(past, { recording: withKeys }).fleet;
        const mark = shared.journal.mark();
        const dump = dumpFleet(shared);
        play(lost, { fleet: shared, keepJournal: true, recording: withKeys });
        shared.journal.rollback(mark);
        expect(dumpFleet(shared)).toBe(dump);
        play(next, { fleet: shared });
        play(next, { fleet: untouched });
        expect(dumpFleet(shared)).toBe(dumpFleet(untouched));
      }),
      { numRuns: 60 },
    );
  });
});

describe('deciding', () => {
  it('a command changes neither the fleet nor its journal, accepted or refused', () => {
    fc.assert(
      fc.property(histories(), (moves) => {
        play(moves, {
          keepJournal: true,
          before(fleet, command) {
            const [dump, mark, text] = [dumpFleet(fleet), fleet.journal.mark(), JSON.stringify(command)];
            decideFleet(fleet, command);
            expect(dumpFleet(fleet)).toBe(dump);
            expect(fleet.journal.mark()).toBe(mark);
            expect(JSON.stringify(command)).toBe(text);
          },
        });
      }),
      { numRuns: 40 },
    );
  });

  it('the same command on the same fleet gives the same answer', () => {
    fc.assert(
      fc.property(histories(), histories(4), (moves, more) => {
        const [one, two] = [play(moves).fleet, play(moves).fleet];
        for (const [index, move] of more.entries()) {
          const command = commandOf(one, move, index);
          if (command !== undefined) expect(decideFleet(one, command)).toEqual(decideFleet(two, command));
        }
      }),
      { numRuns: 40 },
    );
  });
});

describe('the plan of a deploy', () => {
  it('leaves the fleet unchanged', () => {
    fc.assert(
      fc.property(histories(), (moves) => {
        play(moves, {
          after(fleet, { performed }) {
            if (performed.kind !== 'written') return;
            const [dump, mark] = [dumpFleet(fleet), fleet.journal.mark()];
            for (const id of fleet.tables.l4_chain.ids()) planDeploy(fleet, id);
            expect(dumpFleet(fleet)).toBe(dump);
            expect(fleet.journal.mark()).toBe(mark);
          },
        });
      }),
      { numRuns: 40 },
    );
  });

  it('names the rules that the deploy then adds, changes and removes', () => {
    const { fleet } = given(
      ...['a', 'b', 'c', 'd'].map((name) => createNode(name)),
      createChain('one', [hop('a', 80), hop('b', 80), hop('d', 80)]),
      deployChain('one'),
      updateChain('one', { hops: [hop('a', 80), hop('c', 80), hop('d', 80)] }),
    );
    const id = chainId('one');
    expect(planDeploy(fleet, id)).toEqual({
      collisions: [],
      nodes: [
        { node_id: nodeId('a'), added: [], changed: [`${id}/0`], removed: [] },
        { node_id: nodeId('b'), added: [], changed: [], removed: [`${id}/1`] },
        // Nothing changes on d.
        { node_id: nodeId('c'), added: [`${id}/1`], changed: [], removed: [] },
      ],
    });
    expect(planDeploy(fleet, chainId('nowhere'))).toBeUndefined();
  });
});
