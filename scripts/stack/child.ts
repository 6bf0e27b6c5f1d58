/**
 * Runs a part of a program in a separate process, from TypeScript or from the build, and calls it over IPC; both ends
 * are here. For the simulator and the benchmarks; `service.ts` starts the service itself.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';

interface Question {
  readonly id: number;
  readonly what: string;
  readonly body: unknown;
}

type Answer =
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly failed: string }
  | { readonly events: readonly unknown[] };

export interface Child {
  readonly pid: number;
  /** @throws Error that the child's handler threw; after `timeoutMs`; when the child exits */
  ask<T>(what: string, body?: unknown, timeoutMs?: number): Promise<T>;
  /** Called with the events that the child has sent by itself. */
  onEvents(listener: (events: readonly unknown[]) => void): void;
  /** SIGTERM, then SIGKILL after 5 s. */
  close(): Promise<void>;
}

const killAfterMs = 5_000;

/**
 * @param module URL of the child's module, without its extension
 * @param execArgv arguments for Node, for example `--expose-gc`
 */
export function forkChild(module: URL, args: readonly string[] = [], execArgv: readonly string[] = []): Child {
  const fromSource = import.meta.url.endsWith('.ts');
  const entry = `${fileURLToPath(module)}.${fromSource ? 'ts' : 'js'}`;
  const name = basename(fileURLToPath(module));
  const child = fork(entry, args, {
    execArgv: [...(fromSource ? ['--import', 'tsx'] : ['--enable-source-maps']), ...execArgv],
    serialization: 'advanced',
    // Standard output is reserved for the report.
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const ended = once(child, 'exit');
  const waiting = new Map<number, { resolve: (value: unknown) => void; reject: (error: Error) => void }>();
  let listener: (events: readonly unknown[]) => void = () => undefined;
  let last = 0;
  child.on('message', (message) => {
    const answer = message as Answer;
    if ('events' in answer) return listener(answer.events);
    const pending = waiting.get(answer.id);
    waiting.delete(answer.id);
    if ('failed' in answer) pending?.reject(new Error(`${name}: ${answer.failed}`));
    else pending?.resolve(answer.value);
  });
  child.once('exit', (code, signal) => {
    for (const { reject } of waiting.values()) reject(new Error(`${name} exited with ${code ?? signal}`));
    waiting.clear();
  });
  return {
    pid: child.pid ?? -1,
    async ask<T>(what: string, body?: unknown, timeoutMs = 60_000): Promise<T> {
      if (!child.connected) throw new Error(`${name} has exited`);
      const id = (last += 1);
      let timer: NodeJS.Timeout | undefined;
      try {
        return (await new Promise<unknown>((resolve, reject) => {
          waiting.set(id, { resolve, reject });
          timer = setTimeout(
            () => reject(new Error(`${name} did not answer "${what}" within ${timeoutMs} ms`)),
            timeoutMs,
          );
          child.send({ id, what, body } satisfies Question);
        })) as T;
      } finally {
        clearTimeout(timer);
        waiting.delete(id);
      }
    },
    onEvents(next) {
      listener = next;
    },
    async close() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill('SIGTERM');
      const timer = setTimeout(() => child.kill('SIGKILL'), killAfterMs);
      await ended;
      clearTimeout(timer);
    },
  };
}

/** Events are collected for this long, because a message for each would cost more than the agents. */
const collectMs = 5;

type Handlers = { readonly [what: string]: (body: never) => unknown };

/** The child's end: answers each question with its handler's result. The process exits when the parent disconnects. */
export function answerParent<Event = never>(handlers: Handlers): { send(event: Event): void } {
  const answerWith = (answer: Answer): void => void process.send?.(answer);
  let collected: Event[] = [];
  process.on('message', (message) => {
    const { id, what, body } = message as Question;
    const handle = handlers[what] as ((body: unknown) => unknown) | undefined;
    Promise.resolve()
      .then(() => {
        if (handle === undefined) throw new Error(`no handler for "${what}"`);
        return handle(body);
      })
      .then(
        (value) => answerWith({ id, value }),
        (error: unknown) =>
          answerWith({ id, failed: error instanceof Error ? (error.stack ?? error.message) : String(error) }),
      );
  });
  process.once('disconnect', () => process.exit(0));
  return {
    send(event) {
      collected.push(event);
      if (collected.length > 1) return;
      setTimeout(() => {
        answerWith({ events: collected });
        collected = [];
      }, collectMs);
    },
  };
}
