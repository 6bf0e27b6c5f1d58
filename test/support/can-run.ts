/** Whether a program is installed here and answers. */
import { spawnSync } from 'node:child_process';

export const canRun = (program: string, ...args: readonly string[]): boolean =>
  spawnSync(program, args, { stdio: 'ignore', timeout: 20_000, killSignal: 'SIGKILL' }).status === 0;
