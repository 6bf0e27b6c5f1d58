/**
 * The servers for the measurements of the external adapters: those of SVC_TEST_EVENTSTORE_URL and SVC_TEST_MONGODB_URL,
 * else the test servers as processes on temporary folders.
 */
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { withFolder } from './stack.js';

const startWithinMs = 60_000;
const killAfterMs = 5_000;

/** The folder of package.json, whether this runs from the sources or from the build. */
const project = ['..', '../..']
  .map((up) => fileURLToPath(new URL(up, import.meta.url)))
  .find((folder) => existsSync(`${folder}/package.json`));

interface Server {
  readonly firstLine: string;
  close(): Promise<void>;
}

/** Starts a process that prints its address as the first line and exits when its standard input ends or on a signal. */
async function start(command: string, args: readonly string[]): Promise<Server> {
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'ignore'], ...(project && { cwd: project }) });
  const ended = once(child, 'exit');
  const kill = (): void => void child.kill('SIGKILL');
  // Do not leave the process behind when a run is interrupted.
  process.once('exit', kill);
  const close = async (): Promise<void> => {
    process.off('exit', kill);
    child.kill('SIGTERM');
    const timer = setTimeout(kill, killAfterMs);
    await ended;
    clearTimeout(timer);
  };
  try {
    const lines = createInterface({ input: child.stdout });
    const [firstLine] = (await Promise.race([
      once(lines, 'line', { signal: AbortSignal.timeout(startWithinMs) }),
      ended.then(() => Promise.reject(new Error(`${command} exited during its start`))),
    ])) as [string];
    return { firstLine, close };
  } catch (error) {
    await close();
    throw error;
  }
}

const fromEnvironment = (variable: string): string | undefined => process.env[variable] || undefined;

/** The servers of this run, for the report. */
export function serversInUse(): { readonly event_store: string; readonly read_store: string } {
  return {
    event_store:
      fromEnvironment('SVC_TEST_EVENTSTORE_URL') === undefined ? "the tests' server, no flush" : 'a real server',
    read_store: fromEnvironment('SVC_TEST_MONGODB_URL') === undefined ? 'FerretDB on SQLite' : 'the named server',
  };
}

/**
 * Runs `use` with the URL of an EventStoreDB: a new one, or the one of the environment, which must be empty.
 * @throws Error when the server does not start
 */
export async function withEventStoreDb<T>(use: (url: string) => Promise<T>): Promise<T> {
  const url = fromEnvironment('SVC_TEST_EVENTSTORE_URL');
  if (url !== undefined) return use(url);
  return withFolder(async (folder) => {
    const server = await start(process.execPath, ['--import', 'tsx', 'test/servers/eventstoredb/main.ts', folder]);
    try {
      return await use(`esdb://127.0.0.1:${server.firstLine.split(' ')[1]}?tls=false`);
    } finally {
      await server.close();
    }
  });
}

/** True if there is a MongoDB, or FerretDB as its stand-in, which `npm run test:servers` builds. */
export function mongoDbAvailable(): boolean {
  return fromEnvironment('SVC_TEST_MONGODB_URL') !== undefined || existsSync(`${project}/dist/test-servers/ferretdb`);
}

/** Runs `use` with the URL of a new database. @throws Error when the server does not start */
export async function withMongoDb<T>(use: (url: string) => Promise<T>): Promise<T> {
  const database = `svc_bench_${randomUUID().replaceAll('-', '')}`;
  const url = fromEnvironment('SVC_TEST_MONGODB_URL');
  if (url !== undefined) return use(url.replace(/^(mongodb(?:\+srv)?:\/\/[^/?]+)(?:\/[^?]*)?/, `$1/${database}`));
  return withFolder(async (folder) => {
    const args = ['-data', folder, '-listen', '127.0.0.1:0', '-end-with-stdin'];
    const server = await start('dist/test-servers/ferretdb', args);
    try {
      return await use(`${server.firstLine.replace(/\/$/, '')}/${database}`);
    } finally {
      await server.close();
    }
  });
}
