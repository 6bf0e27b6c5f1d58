/** One line that shows how a simulation is going: redrawn on a terminal, otherwise printed every few seconds. */
import type { Second } from './result.js';
import { milliseconds } from './text-report.js';

interface Output {
  readonly isTTY?: boolean;
  write(text: string): unknown;
}

const plainEverySeconds = 5;
const clearLine = '\r\u001b[2K';

/** @internal exported for tests */
export function liveLine(agents: number, second: Second, rejects: number, refused: number): string {
  const count = (value: number): string => value.toLocaleString('en-US');
  const { connected, behind, p50, p99, cores } = second;
  const parts = [
    `${second.second} s`,
    `connected ${count(connected)}/${count(agents)}`,
    `converged ${count(Math.max(0, connected - behind))}`,
    `rejects ${count(rejects)}`,
    `refused ${count(refused)}`,
    `applied p50 ${p50 === null ? '–' : milliseconds(p50)}, p99 ${p99 === null ? '–' : milliseconds(p99)}`,
  ];
  return [...parts, ...(cores === null ? [] : [`service ${cores.toFixed(2)} cores`])].join('  ');
}

export function createLiveLine(agents: number, output: Output = process.stderr) {
  const terminal = output.isTTY === true;
  let rejects = 0;
  return {
    show(second: Second, refused: number): void {
      rejects += second.rejects;
      if (!terminal && second.second % plainEverySeconds !== 0) return;
      const line = liveLine(agents, second, rejects, refused);
      output.write(terminal ? `${clearLine}${line}` : `${line}\n`);
    },
    end(): void {
      if (terminal) output.write('\n');
    },
  };
}
