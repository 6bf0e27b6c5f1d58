import { createHash, randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { limits } from '../../src/kernel/limits.js';
import { Joiner, maxFragmentBytes, splitPayload } from '../../src/channel/noise/fragmenter.js';

const KiB = 1024;
const digest = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');
const plaintext = (marker: number, bytes: number): Uint8Array =>
  Buffer.concat([Buffer.of(marker), Buffer.alloc(bytes)]);

describe('a joiner of fragments', () => {
  it('restores payloads of any length', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.integer({ min: 0, max: 200 * KiB }),
          fc.constantFrom(0, 1, maxFragmentBytes - 1, maxFragmentBytes, maxFragmentBytes + 1, 2 * maxFragmentBytes),
        ),
        (length) => {
          const payload = randomBytes(length);
          const joiner = new Joiner(limits.agent.joinedInBytes);
          const plaintexts = splitPayload(payload);
          plaintexts.forEach((part, index) => {
            expect(part.length).toBeLessThanOrEqual(65_519);
            const result = joiner.push(part);
            if (index < plaintexts.length - 1) {
              expect(result).toEqual({ kind: 'more' });
            } else {
              if (result.kind !== 'payload') throw new Error(`unfinished: ${result.kind}`);
              expect(digest(result.payload)).toBe(digest(payload));
            }
          });
          expect(joiner.heldBytes).toBe(0);
        },
      ),
      { numRuns: 60 },
    );
  });

  it('joins one payload after another, and copies none that came as a single fragment', () => {
    const joiner = new Joiner(limits.agent.joinedInBytes);
    for (const length of [5, 2 * maxFragmentBytes, 0, 7]) {
      const payload = randomBytes(length);
      const plaintexts = splitPayload(payload);
      const results = plaintexts.map((part) => joiner.push(part));
      const last = results.at(-1);
      if (last?.kind !== 'payload') throw new Error('unfinished');
      expect(digest(last.payload)).toBe(digest(payload));
      expect(last.payload.buffer === plaintexts[0]?.buffer).toBe(plaintexts.length === 1);
    }
  });

  it('accepts any cuts as long as only the last fragment is below 16 KiB', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 16 * KiB, max: maxFragmentBytes }), { maxLength: 6 }),
        fc.integer({ min: 0, max: maxFragmentBytes }),
        (sizes, last) => {
          const cuts = [...sizes, last].map((size) => randomBytes(size));
          const joiner = new Joiner(limits.agent.joinedInBytes);
          let held = 0;
          cuts.forEach((cut, index) => {
            const isLast = index === cuts.length - 1;
            const result = joiner.push(Buffer.concat([Buffer.of(isLast ? 0 : 1), cut]));
            held += cut.length;
            if (!isLast) expect(joiner.heldBytes).toBe(held);
            else if (result.kind !== 'payload') throw new Error(`unfinished: ${result.kind}`);
            else expect(digest(result.payload)).toBe(digest(Buffer.concat(cuts)));
          });
        },
      ),
      { numRuns: 40 },
    );
  });

  it('accepts payloads up to exactly the limit of each direction', () => {
    for (const max of [limits.agent.joinedInBytes, limits.agent.joinedOutBytes]) {
      const whole = new Joiner(max);
      const results = splitPayload(new Uint8Array(max)).map((part) => whole.push(part).kind);
      expect(results.at(-1)).toBe('payload');
      const over = new Joiner(max);
      const last = splitPayload(new Uint8Array(max + 1)).map((part) => over.push(part));
      expect(last.at(-1)).toEqual({ kind: 'refused', reason: 'payload_too_large' });
      expect(over.heldBytes).toBe(0);
    }
  });

  it.each([
    ['a plaintext without a fragment byte', new Uint8Array(0), 'no_fragment_byte'],
    ['an unknown fragment byte', plaintext(0x02, 5), 'bad_fragment_byte'],
    ['a small fragment that is not the last', plaintext(0x01, 16 * KiB - 1), 'fragment_too_small'],
    ['a fragment larger than a message', plaintext(0x00, 65_519), 'fragment_too_large'],
  ])('refuses %s', (_name, bytes, reason) => {
    const joiner = new Joiner(limits.agent.joinedInBytes);
    expect(joiner.push(plaintext(0x01, 16 * KiB)).kind).toBe('more');
    expect(joiner.push(bytes)).toEqual({ kind: 'refused', reason });
    expect(joiner.heldBytes).toBe(0);
    expect(joiner.push(plaintext(0x00, 1))).toEqual({ kind: 'refused', reason: 'closed' });
  });

  it('accepts nothing after a discard', () => {
    const joiner = new Joiner(100);
    joiner.discard();
    expect(joiner.push(plaintext(0x00, 1))).toEqual({ kind: 'refused', reason: 'closed' });
  });
});
