/**
 * `npm run test:servers`: builds the servers for tests that are not written in JavaScript, unless they are up to date.
 * `npm test` does this first. Without Go or its modules, the suites that need these servers are skipped, and `npm test`
 * lists them at its end.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ferretDbBinary } from './ferretdb-process.js';
import { realityBinary } from './reality-process.js';

interface GoServer {
  readonly name: string;
  readonly folder: string;
  readonly binary: string;
  readonly tags: readonly string[];
}

const servers: readonly GoServer[] = [
  { name: 'FerretDB', folder: 'ferretdb', binary: ferretDbBinary, tags: ['-tags', 'ferretdb_no_postgresql'] },
  { name: 'the reference implementation of REALITY', folder: 'reality', binary: realityBinary, tags: [] },
];

/** Of one step; the modules come over the network. */
const withinMs = 15 * 60_000;

const sourceOf = ({ folder }: GoServer): string => fileURLToPath(new URL(folder, import.meta.url));

function go(server: GoServer, ...args: readonly string[]): boolean {
  const env = { ...process.env, CGO_ENABLED: '0' };
  const { status } = spawnSync('go', args, {
    cwd: sourceOf(server),
    env,
    stdio: ['ignore', 'ignore', 'inherit'],
    timeout: withinMs,
  });
  return status === 0;
}

const modified = (path: string): number => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;

function isFresh(server: GoServer): boolean {
  const source = sourceOf(server);
  const newest = Math.max(...readdirSync(source).map((file) => modified(join(source, file))));
  return modified(server.binary) > newest;
}

function skipped({ binary }: GoServer, reason: string): void {
  // With an old binary the suites would run against another server than the sources describe.
  rmSync(binary, { force: true });
  process.stderr.write(`test servers: ${reason}, so suites that need it are skipped\n`);
}

function build(server: GoServer): void {
  const { name, binary, tags } = server;
  if (isFresh(server)) console.log(`test servers: ${name} is up to date`);
  else if (!go(server, 'version')) skipped(server, `Go is missing, so ${name} cannot be built`);
  else if (!go(server, 'mod', 'download')) skipped(server, `the Go modules of ${name} cannot be fetched`);
  else {
    mkdirSync(dirname(binary), { recursive: true });
    console.log(`test servers: building ${name}, some minutes the first time`);
    if (!go(server, 'build', '-trimpath', '-buildvcs=false', ...tags, '-o', binary, '.')) {
      process.stderr.write(`test servers: ${name} cannot be built\n`);
      process.exitCode = 1;
    }
  }
}

for (const server of servers) build(server);
