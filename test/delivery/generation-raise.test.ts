/** Raises of a generation: one a minute for each node, whoever wrote the last one. */
import { beforeEach, describe, expect, it } from 'vitest';
import { createGenerationRaises, type GenerationRaisesDeps } from '../../src/delivery/generation-raise.js';
import type { AgentEvent } from '../../src/domain/agents/facts.js';
import { createManualClock, type ManualClock } from '../support/manual-clock.js';

const minute = 60_000;
let clock: ManualClock;
let written: [string, number][];
let facts: [string, AgentEvent, string][];
let errors: [string, unknown][];

beforeEach(() => {
  clock = createManualClock();
  [written, facts, errors] = [[], [], []];
});

const raises = (deps: Partial<GenerationRaisesDeps> = {}) =>
  createGenerationRaises({
    clock,
    raiseGeneration: async (nodeId, reported) => void written.push([nodeId, reported]),
    passed: () => Promise.resolve(true),
    recordFact: async (...fact) => {
      facts.push(fact);
      return 'recorded';
    },
    onError: (nodeId, error) => errors.push([nodeId, error]),
    ...deps,
  });

describe('a raise of a generation', () => {
  it('is done once a minute for each node, and says how long the next one must wait', async () => {
    const { raise } = raises();
    expect(await raise('n1', 7)).toEqual({ kind: 'raised' });
    clock.advance(minute - 1);
    expect(await raise('n1', 8)).toEqual({ kind: 'too_soon', retryAfterMs: 1 });
    expect(await raise('n2', 9)).toEqual({ kind: 'raised' });
    clock.advance(1);
    expect(await raise('n1', 8)).toEqual({ kind: 'raised' });
    expect(written).toEqual([
      ['n1', 7],
      ['n2', 9],
      ['n1', 8],
    ]);
  });

  it('is done six times an hour for each node, whoever wrote them', async () => {
    const { raise, seen } = raises();
    for (let count = 0; count < 5; count += 1) {
      expect(await raise('n1', 7 + count)).toEqual({ kind: 'raised' });
      clock.advance(minute);
    }
    seen('n1', new Date(clock.now()).toISOString());
    clock.advance(minute);
    // The first one was six minutes ago.
    expect(await raise('n1', 20)).toEqual({ kind: 'too_soon', retryAfterMs: 54 * minute });
    expect(await raise('n2', 20)).toEqual({ kind: 'raised' });
    clock.advance(54 * minute);
    expect(await raise('n1', 20)).toEqual({ kind: 'raised' });
    expect(await raise('n1', 21)).toEqual({ kind: 'too_soon', retryAfterMs: minute });
  });

  it('is unavailable when it does not reach the fold in time, and too soon afterwards, for it is written', async () => {
    const { raise } = raises({ passed: () => Promise.resolve(false) });
    expect(await raise('n1', 7)).toEqual({ kind: 'unavailable' });
    expect(await raise('n1', 7)).toEqual({ kind: 'too_soon', retryAfterMs: minute });
  });

  it('that failed is told and may be tried again at once', async () => {
    const failure = new Error('away');
    let away = true;
    const { raise } = raises({ raiseGeneration: () => (away ? Promise.reject(failure) : Promise.resolve()) });
    expect(await raise('n1', 7)).toEqual({ kind: 'unavailable' });
    expect(errors).toEqual([['n1', failure]]);
    away = false;
    expect(await raise('n1', 7)).toEqual({ kind: 'raised' });
  });

  it('that failed does not hide one that another instance wrote meanwhile', async () => {
    const { raise, seen } = raises({
      raiseGeneration: async () => {
        clock.advance(1000);
        seen('n1', new Date(clock.now()).toISOString());
        throw new Error('conflict');
      },
    });
    expect(await raise('n1', 7)).toEqual({ kind: 'unavailable' });
    expect(await raise('n1', 7)).toEqual({ kind: 'too_soon', retryAfterMs: minute });
  });

  it('counts from the time in the log when another instance wrote it, unless that is a minute ago', async () => {
    const { raise, seen } = raises();
    const at = new Date(clock.now()).toISOString();
    clock.advance(minute - 5);
    seen('n1', at);
    expect(await raise('n1', 7)).toEqual({ kind: 'too_soon', retryAfterMs: 5 });
    clock.advance(5);
    seen('n2', at);
    expect(await raise('n2', 7)).toEqual({ kind: 'raised' });
  });

  it('is kept waiting for a minute at most by an instance whose clock is ahead', async () => {
    const { raise, seen } = raises();
    seen('n1', new Date(clock.now() + 60 * minute).toISOString());
    expect(await raise('n1', 7)).toEqual({ kind: 'too_soon', retryAfterMs: minute });
    clock.advance(minute);
    expect(await raise('n1', 7)).toEqual({ kind: 'raised' });
  });
});

describe('a version that no log can have produced', () => {
  it('is recorded once a minute for each node', () => {
    const { conflict } = raises();
    conflict('n1', 's1', 2n ** 53n);
    clock.advance(minute - 1);
    conflict('n1', 's2', 2n ** 54n);
    conflict('n2', 's3', 2n ** 64n - 1n);
    clock.advance(1);
    conflict('n1', 's4', 2n ** 55n);
    const reported = (nodeId: string, version: bigint) => ({
      type: 'AgentVersionConflict',
      data: { node_id: nodeId, reported: String(version) },
    });
    expect(facts).toEqual([
      ['n1', reported('n1', 2n ** 53n), 's1'],
      ['n2', reported('n2', 2n ** 64n - 1n), 's3'],
      ['n1', reported('n1', 2n ** 55n), 's4'],
    ]);
  });

  it('is recorded at the next request when it could not be recorded', async () => {
    let tries = 0;
    const { conflict } = raises({
      recordFact: async () => {
        tries += 1;
        throw new Error('away');
      },
    });
    conflict('n1', 's1', 2n ** 53n);
    conflict('n1', 's1', 2n ** 53n);
    expect(tries).toBe(1);
    await new Promise((resolve) => setImmediate(resolve));
    expect(errors).toEqual([['n1', new Error('away')]]);
    conflict('n1', 's1', 2n ** 53n);
    expect(tries).toBe(2);
    await new Promise((resolve) => setImmediate(resolve));
  });
});
