/** Stops a process, and waits until it has stopped: on a busy machine some of its threads go on for a while. */
import type { ChildProcess } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { platform } from 'node:os';
import { eventually } from './eventually.js';

export async function freeze(child: ChildProcess): Promise<void> {
  child.kill('SIGSTOP');
  if (platform() !== 'linux') return;
  await eventually(() => runningThreads(child.pid ?? 0)).toEqual([]);
}

/** States of the threads that have not stopped; a thread that ends meanwhile has none. */
async function runningThreads(pid: number): Promise<readonly string[]> {
  const tasks = await readdir(`/proc/${pid}/task`);
  const states = await Promise.all(
    tasks.map(async (task) => {
      const text = await readFile(`/proc/${pid}/task/${task}/stat`, 'utf8').catch(() => '');
      // The name before the state is in parentheses and may hold anything.
      return text.slice(text.lastIndexOf(')') + 2)[0] ?? 'T';
    }),
  );
  return states.filter((state) => state !== 'T');
}
