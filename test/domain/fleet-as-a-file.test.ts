/** Documents of random fleets (`docs/contract/automation.md#the-fleet-as-a-file`): what is exported reads back as the same. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { carryOut } from '../../src/domain/fleet-file/carry-out.js';
import type { Comparison } from '../../src/domain/fleet-file/compare.js';
import { runSync } from '../../src/kernel/pieces.js';
import { applyCommand } from '../../src/domain/fleet/apply.js';
import { emptyFleet, type Fleet } from '../../src/domain/fleet/fleet.js';
import { hypothetical } from '../../src/domain/fleet/hypothetical.js';
import { comparedWith, exportedFrom } from '../support/fleet-file.js';
import { histories } from '../support/fleet-histories.js';
import { play } from '../support/fleet-play.js';

const exportOf = (fleet: Fleet): string => exportedFrom(fleet, null);
const compared = (fleet: Fleet, text: string): Promise<Comparison> => comparedWith(fleet, text, { prune: true });

describe('the document of a fleet', () => {
  it('plans nothing for the fleet that it was exported from, and everything for an empty one', async () => {
    await fc.assert(
      fc.asyncProperty(histories(40), async (moves) => {
        const { fleet } = play(moves);
        const text = exportOf(fleet);
        // No request can give a label this name.
        fc.pre(!text.includes('__proto__'));
        // Histories write lists that requests would leave out when they are empty.
        const { steps } = runSync(carryOut(fleet, (await compared(fleet, text)).changes));
        for (const { events } of steps) applyCommand(fleet, hypothetical(fleet, events));
        const again = exportOf(fleet);
        expect(await compared(fleet, again)).toMatchObject({ changes: [], mistakes: [], obstacles: [] });
        const { changes } = await compared(emptyFleet(), text);
        expect(new Set(changes.map(({ action }) => action))).not.toContain('update');
        expect(runSync(carryOut(emptyFleet(), changes)).steps.length).toBeLessThanOrEqual(changes.length);
      }),
      { numRuns: 15 },
    );
  });
});
