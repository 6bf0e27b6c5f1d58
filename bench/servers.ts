/**
 * The servers that the adapters of larger installations are measured on: named by SVC_TEST_EVENTSTORE_URL and
 * SVC_TEST_MONGODB_URL, else those of the tests, each a process of its own with a folder that is removed. Not the
 * service, not the floors.
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

/** The folder of package.json, from the sources as well as from the build. */
const project = ['..', '../..']
  .map((up) => fileURLToPath(new URL(up, import.meta.url)))
  .find((folder) => existsSync(`${folder}/package.json`));

interface Server {
  readonly firstLine: string;
  close(): Promise<void>;
}

/** Starts a process whose first line says where it listens, and which ends with its standard input or by a signal. */
async function start(command: string, args: readonly string[]): Promise<Server> {
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'ignore'], ...(project && { cwd: project }) });
  const ended = once(child, 'exit');
  const kill = (): void => void child.kill('SIGKILL');
  // A run that is broken off must not leave it behind.
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
      ended.then(() => Promise.reject(new Error(`${command} ended at its start`))),
    ])) as [string];
    return { firstLine, close };
  } catch (error) {
    await close();
    throw error;
  }
}

const named = (variable: string): string | undefined => process.env[variable] || undefined;

/** What stands behind the figures, for the report. */
export function serversInUse(): { readonly event_store: string; readonly read_store: string } {
  return {
    event_store: named('SVC_TEST_EVENTSTORE_URL') === undefined ? "the tests' server, no flush" : 'a real server',
    read_store: named('SVC_TEST_MONGODB_URL') === undefined ? 'FerretDB on SQLite' : 'the named server',
  };
}

/**
 * Runs `use` with the URL of an EventStoreDB: a fresh one, or the one that is named, which has to be empty at the start.
 * @throws Error when it did not start
 */
export async function withEventStoreDb<T>(use: (url: string) => Promise<T>): Promise<T> {
  const url = named('SVC_TEST_EVENTSTORE_URL');
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

/** Whether there is one to measure on: FerretDB is built by `npm run test:servers`. */
export function mongoDbThere(): boolean {
  return named('SVC_TEST_MONGODB_URL') !== undefined || existsSync(`${project}/dist/test-servers/ferretdb`);
}

/** Runs `use` with the URL of a fresh database. @throws Error when the server did not start */
export async function withMongoDb<T>(use: (url: string) => Promise<T>): Promise<T> {
  const database = `svc_bench_${randomUUID().replaceAll('-', '')}`;
  const url = named('SVC_TEST_MONGODB_URL');
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
