/** The commands of `svcctl` in this process: one run at a time has its streams and its environment. */
import process from 'node:process';

export interface Ran {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

interface CommandLine {
  run(args: readonly string[]): Promise<number>;
}

/** What the program says of itself; the build defines it. */
Object.assign(globalThis, { PRODUCT: { version: '0.0.0', commit: 'none', compiler_version: 0, format: 0 } });
/** Imported at run time: it is another package, with its own types of the web. */
const source = '../../../cli/src/run.js';
let commandLine: Promise<CommandLine> | undefined;
let last: Promise<unknown> = Promise.resolve();

/** @param env the whole environment */
export function runHere(args: readonly string[], env: Readonly<Record<string, string>>): Promise<Ran> {
  commandLine ??= import(/* @vite-ignore */ source) as Promise<CommandLine>;
  const loaded = commandLine;
  const ran = last.then(async () => captured(env, (await loaded).run, args));
  last = ran.catch(() => undefined);
  return ran;
}

async function captured(
  env: Readonly<Record<string, string>>,
  run: CommandLine['run'],
  args: readonly string[],
): Promise<Ran> {
  const own = { env: { ...process.env }, exitCode: process.exitCode };
  const [out, err] = [capture(process.stdout), capture(process.stderr)];
  try {
    setEnvironment(env);
    process.exitCode = undefined;
    const code = await run(args);
    return { code, out: out.text(), err: err.text() };
  } finally {
    out.end();
    err.end();
    setEnvironment(own.env);
    process.exitCode = own.exitCode;
  }
}

function setEnvironment(env: Readonly<Record<string, string | undefined>>): void {
  for (const name of Object.keys(process.env)) if (env[name] === undefined) delete process.env[name];
  Object.assign(process.env, env);
}

function capture(stream: NodeJS.WriteStream): { text(): string; end(): void } {
  let text = '';
  const own = stream.write;
  stream.write = ((chunk: string | Uint8Array, ...more: unknown[]): boolean => {
    text += Buffer.from(chunk as string).toString();
    const done = more.at(-1);
    if (typeof done === 'function') process.nextTick(done as () => void);
    return true;
  }) as typeof stream.write;
  return {
    text: () => text,
    end: () => void (stream.write = own),
  };
}
