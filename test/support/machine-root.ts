/**
 * A machine for `/join.sh`: a root of its own below a temporary folder, and programs that stand in for `id`, `systemctl`,
 * `journalctl` and `curl`. The stand-in of systemd runs what the unit says; that of curl asks the service, and the agent of this
 * machine. Everything else is this machine's.
 */
import { spawn, type ChildProcess, type ChildProcessWithoutNullStreams } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from './snapshots.js';

interface Ended {
  readonly code: number | null;
  readonly output: string;
}

interface Started {
  readonly child: ChildProcessWithoutNullStreams;
  readonly output: () => string;
  readonly ended: Promise<Ended>;
}

export interface Machine {
  /** A path of the machine as a path of this one. */
  path(absolute: string): string;
  has(absolute: string): boolean;
  text(absolute: string): string;
  /** Every file that is there, links included. */
  files(): readonly string[];
  /** Calls of the stand-ins with their arguments. */
  calls(): readonly string[];
  /** Starts the text of the script. @param shell its command */
  start(
    script: string,
    shell: readonly string[],
    args: readonly string[],
    env?: Readonly<Record<string, string>>,
  ): Started;
  /** Starts it as a file on a terminal, whose keys are what is written to its `stdin`. */
  startOnTerminal(script: string): Started;
  /** What the agent logs. */
  journal(): string;
  /** Replaces a program. @param text of a shell script; undefined: it is missing */
  replace(name: string, text: string | undefined): void;
  close(): void;
}

const stopAgent = `if [ -e "$MACHINE/pid" ]; then
  group=$(cat "$MACHINE/pid")
  kill -- "$group" 2>/dev/null
  while kill -0 -- "$group" 2>/dev/null; do /bin/sleep 0.05; done
  rm -f "$MACHINE/pid"
fi`;

const systemctl = `
unit="$MACHINE/root/etc/systemd/system/gateway-agent.service"
start() {
  rm -f "$MACHINE/failed"
  (
    set -a
    SVC_AGENT_STATE_DIR="$MACHINE/root/var/lib/gateway-agent"
    SVC_AGENT_METRICS_ADDR="127.0.0.1:$METRICS_PORT"
    . "$MACHINE/root/etc/gateway-agent/env"
    set +a
    setsid sh -c "$(sed -n 's/^ExecStart=//p' "$unit") || touch '$MACHINE/failed'" >>"$MACHINE/journal" 2>&1 </dev/null &
    echo "-$!" >"$MACHINE/pid"
  )
}
case "$1" in
restart) ${stopAgent}; start ;;
enable) [ -e "$MACHINE/pid" ] || start ;;
disable) [ -e "$unit" ] || exit 1; ${stopAgent} ;;
is-failed) [ -e "$MACHINE/failed" ] ;;
esac
`;

const programs: Readonly<Record<string, string>> = {
  id: 'echo 0',
  systemctl,
  journalctl: 'cat "$MACHINE/journal"',
  // The port of the agent is the same on all machines that have no other setting.
  curl: `
for word; do
  shift
  set -- "$@" "$(printf %s "$word" | sed "s#127.0.0.1:9105#127.0.0.1:$METRICS_PORT#")"
done
exec /usr/bin/curl "$@"
`,
  sleep: 'exec /bin/sleep 0.4',
};

export async function createMachine(): Promise<Machine> {
  const folder = mkdtempSync(join(tmpdir(), 'machine-'));
  const [root, bin] = [join(folder, 'root'), join(folder, 'bin')];
  const metricsPort = await freePort();
  const calls = join(folder, 'calls');
  for (const path of [
    bin,
    ...['usr/local/lib', 'etc/systemd/system', 'var/lib', 'run/systemd/system'].map((at) => join(root, at)),
  ])
    mkdirSync(path, { recursive: true });
  writeFileSync(calls, '');
  const path = (absolute: string): string => join(root, absolute);
  const replace = (name: string, text: string | undefined): void => {
    const file = join(bin, name);
    if (text === undefined) return rmSync(file);
    writeFileSync(file, `#!/bin/sh\necho "${name} $*" >>"${calls}"\n${text}\n`);
    chmodSync(file, 0o755);
  };
  for (const [name, text] of Object.entries(programs)) replace(name, text);
  const children: ChildProcess[] = [];
  const journal = join(folder, 'journal');
  const ofRoot = (script: string): string =>
    script.replaceAll(/(?<=[\s=])\/(?:usr|etc|var|run)\/(?=\S)/g, (at) => root + at);

  function spawned([command = '', ...args]: readonly string[], env: Readonly<Record<string, string>> = {}): Started {
    const child = spawn(command, args, {
      env: { PATH: `${bin}:/usr/bin:/bin`, MACHINE: folder, METRICS_PORT: String(metricsPort), ...env },
    });
    children.push(child);
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += String(chunk)));
    const ended = new Promise<Ended>((resolve) => child.once('close', (code) => resolve({ code, output })));
    return { child, output: () => output, ended };
  }

  return {
    path,
    has: (absolute) => existsSync(path(absolute)),
    text: (absolute) => readFileSync(path(absolute), 'utf8'),
    files: () =>
      readdirSync(root, { recursive: true, withFileTypes: true })
        .filter((entry) => !entry.isDirectory())
        .map((entry) => join(entry.parentPath, entry.name).slice(root.length))
        .toSorted(),
    calls: () => readFileSync(calls, 'utf8').trim().split('\n'),
    start(script, shell, args, env) {
      const started = spawned([...shell, '-s', '--', ...args], env);
      started.child.stdin.on('error', () => undefined);
      started.child.stdin.end(ofRoot(script));
      return started;
    },
    startOnTerminal(script) {
      const file = join(folder, 'join.sh');
      writeFileSync(file, ofRoot(script));
      return spawned(['script', '-qec', `dash ${file}`, '/dev/null']);
    },
    journal: () => (existsSync(journal) ? readFileSync(journal, 'utf8') : ''),
    replace,
    close() {
      for (const child of children) child.kill('SIGKILL');
      const pid = join(folder, 'pid');
      try {
        if (existsSync(pid)) process.kill(Number(readFileSync(pid, 'utf8')), 'SIGKILL');
      } catch {
        // It has ended.
      }
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
