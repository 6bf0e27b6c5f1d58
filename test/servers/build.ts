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

const source = fileURLToPath(new URL('ferretdb', import.meta.url));

/** Of one step; the modules come over the network. */
const withinMs = 15 * 60_000;

function go(...args: readonly string[]): boolean {
  const env = { ...process.env, CGO_ENABLED: '0' };
  const { status } = spawnSync('go', args, {
    cwd: source,
    env,
    stdio: ['ignore', 'ignore', 'inherit'],
    timeout: withinMs,
  });
  return status === 0;
}

const modified = (path: string): number => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;

function isFresh(): boolean {
  const newest = Math.max(...readdirSync(source).map((file) => modified(join(source, file))));
  return modified(ferretDbBinary) > newest;
}

function skipped(reason: string): void {
  // With an old binary the suites would run against another server than the sources describe.
  rmSync(ferretDbBinary, { force: true });
  process.stderr.write(`test servers: ${reason}, so suites that need it are skipped\n`);
}

if (isFresh()) console.log('test servers: up to date');
else if (!go('version')) skipped('Go is missing, so FerretDB cannot be built');
else if (!go('mod', 'download')) skipped('the Go modules of FerretDB cannot be fetched');
else {
  mkdirSync(dirname(ferretDbBinary), { recursive: true });
  console.log('test servers: building FerretDB, some minutes the first time');
  if (!go('build', '-trimpath', '-buildvcs=false', '-tags', 'ferretdb_no_postgresql', '-o', ferretDbBinary, '.')) {
    process.stderr.write('test servers: FerretDB cannot be built\n');
    process.exitCode = 1;
  }
}
