/** Which errors of a rejected report are recorded. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { recordedErrors } from '../../src/delivery/recorded-errors.js';
import type { ApplyError } from '../../src/domain/agents/facts.js';

const errors = fc.array(
  fc.record({
    resource_type: fc.constantFrom('l4_chain', ''),
    resource_id: fc.uuid(),
    path: fc.string({ maxLength: 64 }),
    message: fc.string({ unit: 'grapheme', maxLength: 1_024 }),
  }),
  { maxLength: 200 },
);

test('a list that fits is recorded as it is, a longer one from its start with the number left out', () => {
  fc.assert(
    fc.property(errors, (reported: readonly ApplyError[]) => {
      const recorded = recordedErrors(reported);
      expect(Buffer.byteLength(JSON.stringify(recorded))).toBeLessThan(17 * 1024);
      if (recorded.length === reported.length && recorded.at(-1) === reported.at(-1)) return;
      const kept = recorded.slice(0, -1);
      expect(kept).toEqual(reported.slice(0, kept.length));
      expect(recorded.at(-1)!.message).toContain(`${reported.length - kept.length} more error`);
      const next = reported[kept.length]!;
      expect(Buffer.byteLength(JSON.stringify([...kept, next]))).toBeGreaterThan(16 * 1024);
    }),
    { numRuns: 300 },
  );
});
