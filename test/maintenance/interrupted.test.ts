/** What a signal makes of a maintenance command that waits for a store or a password. */
import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { CommandError, runCommand } from '../../scripts/maintenance/command-line.js';
import { runMaintenance } from '../../scripts/maintenance/commands.js';
import { ServiceError } from '../../src/kernel/errors.js';

let before: typeof process.exitCode;
beforeEach(() => {
  before = process.exitCode;
  vi.spyOn(process.stderr, 'write').mockReturnValue(true);
});
afterEach(() => {
  process.exitCode = before;
  vi.restoreAllMocks();
});

async function codeAfter(error: Error, isInterrupted: boolean): Promise<typeof process.exitCode> {
  await runCommand(
    'Usage',
    async (_argv, signal) => {
      if (isInterrupted) process.emit('SIGTERM');
      expect(signal.aborted).toBe(isInterrupted);
      throw error;
    },
    [],
  );
  return process.exitCode;
}
const away = new ServiceError('unavailable', 'EventStoreDB cannot be reached');

it('a command that a signal ends while a store is away was interrupted, and has not failed', async () => {
  expect(await codeAfter(away, true)).toBe(130);
  expect(await codeAfter(away, false)).toBe(1);
});

it('a fault that it has found meanwhile is one', async () => {
  expect(await codeAfter(new CommandError('The log is another one.'), true)).toBe(1);
});

it('a command that waits for a password is interrupted by the first signal', async () => {
  vi.spyOn(process, 'stdin', 'get').mockReturnValue(new PassThrough() as unknown as typeof process.stdin);
  const listeners = process.listenerCount('SIGINT');
  const ended = runMaintenance(['admin:reset-password', 'admin', '--stdin']);
  await vi.waitUntil(() => process.listenerCount('SIGINT') > listeners, { timeout: 30_000 });
  process.emit('SIGINT');
  await ended;
  expect(process.exitCode).toBe(130);
});
