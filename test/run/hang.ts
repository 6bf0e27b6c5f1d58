/**
 * A reporter that ends a run in which nothing ends any more. A test's own bound cannot, while its worker never gets to its
 * timers: in a loop without end, or waiting for a program. Names the files that began and shows their processes; then kills
 * the workers, so that the run goes on and fails.
 */
import { spawnSync } from 'node:child_process';
import { env, kill, pid, stdout } from 'node:process';
import type { Reporter, TestModule } from 'vitest/node';

/** The longest file takes two minutes. */
const silentMs = Number(env['TEST_SILENT_MS'] ?? 600_000);

interface Process {
  readonly pid: number;
  readonly parent: number;
  /** Its state, its age, its processor time and its command. */
  readonly line: string;
}

function processes(): readonly Process[] {
  const columns = ['-o', 'pid=,ppid=,stat=,etime=,time=,args='];
  const { stdout: lines } = spawnSync('ps', ['-A', ...columns], { encoding: 'utf8', timeout: 10_000 });
  return lines.split('\n').map((line) => {
    const [own = 0, parent = 0] = line.trim().split(/\s+/, 2).map(Number);
    return { pid: own, parent, line };
  });
}

/** What a process started, and what that started; parents first. */
const startedBy = (parent: number, all: readonly Process[]): readonly Process[] =>
  all.filter((one) => one.parent === parent).flatMap((one) => [one, ...startedBy(one.pid, all)]);

function end({ pid: own }: Process): void {
  try {
    kill(own, 'SIGKILL');
  } catch {
    // It ended by itself.
  }
}

export class HangReporter implements Reporter {
  readonly #began = new Set<string>();
  #timer: NodeJS.Timeout | undefined;

  onTestModuleQueued({ relativeModuleId }: TestModule): void {
    this.#began.add(relativeModuleId);
    this.#wait();
  }

  onTestModuleEnd({ relativeModuleId }: TestModule): void {
    this.#began.delete(relativeModuleId);
    this.#wait();
  }

  onTestRunEnd(): void {
    clearTimeout(this.#timer);
  }

  #wait(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#end(), silentMs).unref();
  }

  #end(): void {
    const all = startedBy(pid, processes());
    const lines = [...this.#began, ...all.map(({ line }) => line)].join('\n  ');
    stdout.write(
      `\nHANGS: no test file ended for ${silentMs / 1_000} s. Those that began, and the processes:\n  ${lines}\n`,
    );
    const isWorker = ({ parent, line }: Process): boolean => parent === pid && line.includes('/vitest/dist/workers/');
    for (const worker of all.filter(isWorker)) [worker, ...startedBy(worker.pid, all)].forEach(end);
  }
}
