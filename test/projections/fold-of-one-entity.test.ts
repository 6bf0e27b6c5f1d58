/** The fold of one entity: one write for a batch of commands, nothing twice, and what happens at an event that cannot be applied. */
import { describe, expect, it } from 'vitest';
import type { RecordedCommand } from '../../src/kernel/event.js';
import { foldEntity, shortError, workOf } from '../../src/projections/engine/fold.js';
import type { ReadModel } from '../../src/projections/read-model.js';
import { commandOf, eventOf } from '../support/recorded-events.js';

describe('the fold of one entity', () => {
  /** Counts events; an `N` changes nothing, an `X` cannot be applied. */
  const model: ReadModel<{ readonly count: number }> = {
    name: 'counts',
    keys: ({ type }) => (type === 'O' ? [] : type === 'B' ? ['a', 'b', 'a'] : ['a']),
    evolve(fields, { type }) {
      if (type === 'X') throw new Error('a bug');
      return type === 'N' ? fields : { count: (fields?.count ?? 0) + 1 };
    },
  };
  const fold = (commands: readonly RecordedCommand[], document?: { position: number; fields: { count: number } }) =>
    foldEntity(
      model as unknown as ReadModel,
      'a',
      document === undefined ? undefined : { id: 'a', ...document },
      workOf(model as unknown as ReadModel, commands).get('a') ?? [],
    );

  it('has one step for each command, with the events that concern the entity', () => {
    const both = commandOf(eventOf(1, 'B'), eventOf(2, 'O'), eventOf(3));
    const work = workOf(model as unknown as ReadModel, [both, commandOf(eventOf(4, 'O')), commandOf(eventOf(5))]);
    const positions = [...work].map(([id, steps]) => [
      id,
      steps.map(({ events }) => events.map(({ position }) => position)),
    ]);
    expect(positions).toEqual([
      ['a', [[1, 3], [5]]],
      ['b', [[1]]],
    ]);
  });

  it('is one write at the position of the last command that changed it', () => {
    expect(fold([commandOf(eventOf(1), eventOf(2)), commandOf(eventOf(3, 'N'))])).toEqual({
      write: { id: 'a', position: 2, fields: { count: 2 } },
      poisoned: undefined,
    });
    expect(fold([commandOf(eventOf(3, 'N'))])).toEqual({ write: undefined, poisoned: undefined });
  });

  it('skips what its document already reflects', () => {
    const commands = [commandOf(eventOf(1)), commandOf(eventOf(2)), commandOf(eventOf(3))];
    expect(fold(commands, { position: 2, fields: { count: 2 } }).write).toMatchObject({
      position: 3,
      fields: { count: 3 },
    });
    expect(fold(commands, { position: 3, fields: { count: 3 } }).write).toBeUndefined();
    expect(fold([commandOf(eventOf(0))]).write).toMatchObject({ position: 0 });
  });

  it('stays as the command before left it when one cannot be applied', () => {
    const poisonedAt = (position: number): object => ({ position, error: 'Error: a bug' });
    expect(fold([commandOf(eventOf(1)), commandOf(eventOf(2), eventOf(3, 'X')), commandOf(eventOf(4))])).toEqual({
      write: { id: 'a', position: 1, fields: { count: 1 } },
      poisoned: poisonedAt(3),
    });
    expect(fold([commandOf(eventOf(1, 'X'))])).toEqual({ write: undefined, poisoned: poisonedAt(1) });
    expect(shortError(new Error('x'.repeat(2000)))).toHaveLength(500);
  });
});
