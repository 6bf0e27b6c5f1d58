/** A draft behaves like the fleet and changes it only when it is merged, indexes included. Deciding changes nothing. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { draftFleet, type Fleet } from '../../src/domain/fleet/fleet.js';
import { decideFleet } from '../../src/domain/fleet/decide.js';
import { dumpFleet } from '../support/fleet-dump.js';
import { commandOf, histories } from '../support/fleet-histories.js';
import { play } from '../support/fleet-play.js';

const withKeys = (step: number) => ({
  at: Date.UTC(2025, 0, 1) + step * 3_600_000,
  idempotency: step % 2 === 0 ? { key_hash: `key ${step % 7}`, body_hash: 'body' } : undefined,
});

describe('a draft of a fleet', () => {
  it('is the fleet that the same commands make of it, and leaves the fleet as it was until it is merged', () => {
    fc.assert(
      fc.property(histories(40), histories(20), histories(20), (past, tried, next) => {
        const [fleet, plain] = [0, 1].map(() => play(past, { recording: withKeys }).fleet) as [Fleet, Fleet];
        const before = dumpFleet(fleet);
        const draft = draftFleet(fleet);
        for (const end of ['drop', 'merge'] as const) {
          play(tried, { fleet: draft.state, recording: withKeys });
          expect(dumpFleet(fleet)).toBe(before);
          if (end === 'merge')
            expect(dumpFleet(draft.state)).toBe(dumpFleet(play(tried, { fleet: plain, recording: withKeys }).fleet));
          draft[end]();
          expect(dumpFleet(draft.state)).toBe(dumpFleet(fleet));
        }
        expect(dumpFleet(fleet)).toBe(dumpFleet(plain));
        play(next, { fleet });
        play(next, { fleet: plain });
        expect(dumpFleet(fleet)).toBe(dumpFleet(plain));
      }),
      { numRuns: 30 },
    );
  });

  it('of a draft is merged into that draft alone', () => {
    fc.assert(
      fc.property(histories(30), histories(10), histories(10), (past, first, second) => {
        const fleet = play(past, { recording: withKeys }).fleet;
        const plain = play(past, { recording: withKeys }).fleet;
        const before = dumpFleet(fleet);
        const group = draftFleet(fleet);
        const one = draftFleet(group.state);
        for (const moves of [first, second]) {
          play(moves, { fleet: one.state, recording: withKeys });
          one.merge();
          play(moves, { fleet: plain, recording: withKeys });
          expect(dumpFleet(group.state)).toBe(dumpFleet(plain));
          expect(dumpFleet(fleet)).toBe(before);
        }
        group.merge();
        expect(dumpFleet(fleet)).toBe(dumpFleet(plain));
      }),
      { numRuns: 12 },
    );
  });
});

describe('deciding', () => {
  it('a command changes nothing, accepted or refused', () => {
    fc.assert(
      fc.property(histories(), (moves) => {
        play(moves, {
          before(fleet, command) {
            const [dump, text] = [dumpFleet(fleet), JSON.stringify(command)];
            decideFleet(fleet, command);
            expect(dumpFleet(fleet)).toBe(dump);
            expect(JSON.stringify(command)).toBe(text);
          },
        });
      }),
      { numRuns: 12 },
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
      { numRuns: 12 },
    );
  });
});
