/** Callers that wait for the answer to their command: told in time, and what they are told then. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { tuning } from '../../src/commands/tuning.js';
import { createWaitingCallers, type CallAnswer } from '../../src/commands/waiting-callers.js';
import { ServiceError } from '../../src/kernel/errors.js';

describe('waiting callers', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
  afterEach(() => void vi.useRealTimers());
  const call = (command: string) => ({ command, context: {} as never, select: () => undefined });
  const textOf = (answer: CallAnswer): string => (answer.kind === 'refused' ? answer.error.message : answer.kind);

  test('are told in time that nothing was written, unless their command may be on its way', async () => {
    const callers = createWaitingCallers<unknown, string>();
    const answers = ['a', 'b', 'c'].map((command) => callers.add(call(command)).then(textOf));
    expect([callers.count, callers.all().map(({ command }) => command)]).toEqual([3, ['a', 'b', 'c']]);
    callers.beginGroup(2);
    vi.advanceTimersByTime(tuning.commandAnswerMs - 1);
    expect(callers.count).toBe(3);
    vi.advanceTimersByTime(1);
    expect(await Promise.all(answers)).toEqual([
      expect.stringContaining('it may have been'),
      expect.stringContaining('it may have been'),
      expect.stringContaining('nothing was written'),
    ]);
    // Those in the group keep their place until it is settled.
    expect(callers.all().map(({ command }) => command)).toEqual(['a', 'b']);
    callers.endGroup();
    expect(callers.count).toBe(0);
  });

  test('leave with their group, and those behind it stay', async () => {
    const callers = createWaitingCallers<unknown, string>();
    const late = ['a', 'b', 'c'].map((command) => callers.add(call(command)));
    callers.beginGroup(2);
    callers.endGroup();
    callers.endGroup();
    expect(callers.all().map(({ command }) => command)).toEqual(['c']);
    callers.all()[0]?.answer({ kind: 'done', commandId: '', events: [], position: 1, result: undefined });
    expect(await late[2]).toMatchObject({ kind: 'done' });
    expect(vi.getTimerCount()).toBe(2);
  });

  test('are all refused when the log cannot be read, and the next ones wait as before', async () => {
    const callers = createWaitingCallers<unknown, string>();
    const answers = ['a', 'b'].map((command) => callers.add(call(command)).then(textOf));
    callers.beginGroup(1);
    callers.refuseAll(new ServiceError('unavailable', 'away'));
    expect([await Promise.all(answers), callers.count]).toEqual([['away', 'away'], 0]);
    const next = callers.add(call('c')).then(textOf);
    vi.advanceTimersByTime(tuning.commandAnswerMs);
    expect([await next, callers.count]).toEqual([expect.stringContaining('nothing was written'), 0]);
  });
});
