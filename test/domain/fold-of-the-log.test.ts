/** A fold can stop and continue at any command, and does not change its input. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { applyCommand } from '../../src/domain/fleet/apply.js';
import { emptyFleet } from '../../src/domain/fleet/fleet.js';
import type { RecordedCommand } from '../../src/kernel/event.js';
import { canonicalJson } from '../../src/kernel/json.js';
import { foldOf } from '../support/fleet.js';
import { dumpFleet } from '../support/fleet-dump.js';
import { histories } from '../support/fleet-histories.js';
import { logOf, play } from '../support/fleet-play.js';

function deepFreeze<T>(value: T): T {
  if (value !== null && typeof value === 'object' && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const member of Object.values(value)) deepFreeze(member);
  }
  return value;
}

const copyOf = (log: readonly RecordedCommand[]): RecordedCommand[] =>
  JSON.parse(JSON.stringify(log)) as RecordedCommand[];

describe('the fold of a random log', () => {
  it('equals the fold of a prefix, continued with the rest', () => {
    fc.assert(
      fc.property(histories(), fc.nat(), (moves, at) => {
        const { fleet, steps } = play(moves);
        const log = copyOf(logOf(steps));
        const cut = log.length === 0 ? 0 : at % (log.length + 1);
        const continued = foldOf(log.slice(cut), foldOf(log.slice(0, cut)));
        expect(dumpFleet(continued)).toBe(dumpFleet(fleet));
        expect(dumpFleet(continued)).toBe(dumpFleet(foldOf(log)));
      }),
      { numRuns: 40 },
    );
  });

  it('is the same for decided events and for events read from the log', () => {
    fc.assert(
      fc.property(histories(), (moves) => {
        const deciding = emptyFleet();
        const { fleet } = play(moves, {
          after(_, { performed }) {
            if (performed.kind !== 'written') return;
            const events = performed.command.events.map((event, index) => ({
              ...event,
              data: performed.events[index]?.data,
            }));
            const asDecided = { ...performed.command, events } as unknown as RecordedCommand;
            expect(canonicalJson(performed.events.map(({ data }) => data))).toBe(
              canonicalJson(performed.command.events.map(({ data }) => data)),
            );
            applyCommand(deciding, asDecided);
          },
        });
        expect(dumpFleet(deciding)).toBe(dumpFleet(fleet));
      }),
      { numRuns: 40 },
    );
  });

  it('does not change the events', () => {
    fc.assert(
      fc.property(histories(), (moves) => {
        const { fleet, steps } = play(moves);
        const log = deepFreeze(copyOf(logOf(steps)));
        expect(dumpFleet(foldOf(log))).toBe(dumpFleet(fleet));
      }),
      { numRuns: 20 },
    );
  });

  it('has both values in every field change', () => {
    fc.assert(
      fc.property(histories(), (moves) => {
        for (const command of logOf(play(moves).steps)) {
          for (const { data } of command.events) {
            for (const change of Object.values((data['changes'] ?? {}) as object)) {
              expect(Object.keys(change as object).sort()).toEqual(['from', 'to']);
            }
          }
        }
      }),
      { numRuns: 20 },
    );
  });
});
