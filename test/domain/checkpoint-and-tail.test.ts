/** A fleet restored from a checkpoint and continued with the rest of the log equals the fleet of a full replay. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { captureFleet, encodeFleet, restoreFleet } from '../../src/domain/fleet/checkpoint.js';
import type { Fleet } from '../../src/domain/fleet/fleet.js';
import { emptyFleet } from '../../src/domain/fleet/fleet.js';
import { createNode, foldOf, given } from '../support/fleet.js';
import { dumpFleet } from '../support/fleet-dump.js';
import { histories } from '../support/fleet-histories.js';
import { logOf, play } from '../support/fleet-play.js';

const bytesOf = (fleet: Fleet): Buffer => Buffer.concat([...encodeFleet(captureFleet(fleet))]);

/** Hours between commands, so that keys are used again after they have expired. */
const withKeys = (step: number) => ({
  at: Date.UTC(2025, 0, 1) + step * 5_400_000 + (step % 3) * 1_000_000,
  idempotency: step % 3 === 0 ? undefined : { key_hash: `key ${step % 16}`, body_hash: 'body' },
});

describe('a checkpoint', () => {
  it('gives the fleet of a full replay once the rest of the log is folded, indexes included', () => {
    fc.assert(
      fc.property(histories(80), fc.nat(), (moves, at) => {
        const { fleet, steps } = play(moves, { recording: withKeys });
        const log = logOf(steps);
        const cut = at % (log.length + 1);
        const restored = restoreFleet(bytesOf(foldOf(log.slice(0, cut))));
        expect(dumpFleet(restored)).toBe(dumpFleet(foldOf(log.slice(0, cut))));
        expect(dumpFleet(foldOf(log.slice(cut), restored))).toBe(dumpFleet(fleet));
      }),
      { numRuns: 80 },
    );
  });

  it('has the same bytes for a restored fleet', () => {
    fc.assert(
      fc.property(histories(), (moves) => {
        const { fleet } = play(moves, { recording: withKeys });
        const bytes = bytesOf(fleet);
        expect(bytesOf(restoreFleet(bytes)).equals(bytes)).toBe(true);
      }),
      { numRuns: 40 },
    );
  });

  it('holds the fleet as captured, although the fold continues while it is encoded', () => {
    const { fleet, when } = given(createNode('a'), createNode('b'));
    const dump = dumpFleet(fleet);
    const slices = encodeFleet(captureFleet(fleet));
    when(createNode('c')).thenAccepted();
    expect(dumpFleet(restoreFleet(Buffer.concat([...slices])))).toBe(dump);
  });

  it('of an empty fleet restores an empty fleet', () => {
    expect(dumpFleet(restoreFleet(bytesOf(emptyFleet())))).toBe(dumpFleet(emptyFleet()));
  });

  it.each(['["unknown","x",{}]\n', 'not JSON\n'])('is not restored from other bytes: %j', (text) => {
    expect(() => restoreFleet(Buffer.from(text))).toThrow();
  });
});
