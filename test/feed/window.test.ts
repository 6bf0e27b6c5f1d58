/** The window of the feed keeps its bounds, of commands and of bytes. Cites `docs/contract/automation.md#event-feed`. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createWindow, type Step } from '../../src/feed/window.js';

const about = { type: 'command', resources: [], nodes: [], actor: null, readers: 'all' };

/** A command of this position, with an item whose JSON has `bytes`, or without one. */
function stepOf(position: number, bytes: number | null): Step {
  const cursor = `c${position}`;
  const place = { position, cursor };
  const at = '2030-01-31T12:00:00.000Z';
  const item =
    bytes === null
      ? null
      : ({ ...place, type: 'command', at, json: 'x'.repeat(bytes), about, final: null } as Step['item']);
  return { place, item, events: 1 };
}

/** The bytes that a step counts for: its JSON, and a fixed amount for the rest. */
const weight = ({ item }: Step): number => 256 + (item?.json.length ?? 0);
const total = (steps: readonly Step[]): number => steps.reduce((sum, step) => sum + weight(step), 0);

test('it holds as many of the newest commands as its bounds allow, always one, and no reader from before it', () => {
  const sizes = fc.array(fc.option(fc.nat({ max: 3_000 })), { minLength: 1, maxLength: 60 });
  const bounds = fc.record({ commands: fc.integer({ min: 1, max: 30 }), bytes: fc.integer({ min: 1, max: 20_000 }) });
  fc.assert(
    fc.property(sizes, bounds, fc.integer({ min: 1, max: 7 }), (all, { commands, bytes }, atOnce) => {
      const begin = { position: -1, cursor: null };
      const window = createWindow(begin, { commands, bytes });
      const steps = all.map((size, index) => stepOf(index, size));
      const fits = (some: readonly Step[]): boolean => some.length <= commands && total(some) <= bytes;
      for (let added = 0; added < steps.length; added += atOnce) {
        window.add(steps.slice(added, added + atOnce));
        const seen = steps.slice(0, added + atOnce);
        const held = [...(window.behind(window.from) ?? [])];
        expect(held).toEqual(seen.slice(-held.length));
        expect(held.length === 1 || fits(held)).toBe(true);
        const before = seen.at(-held.length - 1);
        expect(window.from).toEqual(before?.place ?? begin);
        if (before === undefined) continue;
        expect(fits([before, ...held])).toBe(false);
        expect(window.behind({ position: before.place.position - 1, cursor: null })).toBeUndefined();
      }
    }),
  );
});
