/** CPU time of another process. Linux only. */
import { readFile } from 'node:fs/promises';

/** Linux counts CPU time in ticks of 10 ms. */
const ticksPerSecond = 100;

/** User and system seconds of a process with its threads, from the kernel. */
export async function processorSeconds(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
  // The program name, in parentheses, may contain spaces; the times are the 12th and 13th fields after it.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
}
