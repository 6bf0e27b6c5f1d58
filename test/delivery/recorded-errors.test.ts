/** Which errors of a rejected report are recorded. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { recordedErrors } from '../../src/delivery/target.js';
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

/** An error that takes so many bytes in a list. */
const errorOf = (bytes: number): ApplyError => {
  const error = (message: string): ApplyError => ({ resource_type: '', resource_id: '', path: '', message });
  return error('x'.repeat(bytes - 1 - JSON.stringify(error('')).length));
};

test('a list may have 16 KiB to the byte, and the number left out is said in its last entry', () => {
  const half = errorOf(8 * 1024);
  expect(recordedErrors([])).toEqual([]);
  const whole = [half, half];
  expect(recordedErrors(whole)).toBe(whole);
  const omitted = (text: string): ApplyError => ({
    resource_type: '',
    resource_id: '',
    path: '',
    message: `${text} left out: only 16384 bytes of them are recorded`,
  });
  expect(recordedErrors([half, errorOf(8 * 1024 + 1)])).toEqual([half, omitted('1 more error is')]);
  expect(recordedErrors([half, half, half, half])).toEqual([half, half, omitted('2 more errors are')]);
});

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
