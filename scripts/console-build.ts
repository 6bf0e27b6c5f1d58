/**
 * The last step of a build: bundles the console into `dist/console`, with compressed variants of its files, unless that
 * is newer than all of its sources.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { argv, env, execPath, pid } from 'node:process';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { brotliCompressSync, gzipSync } from 'node:zlib';

/** The nearest folder above this script that contains the workspace; the script also runs from `dist`. */
function findRoot(from: string): string {
  return existsSync(join(from, 'console', 'vite.config.ts')) ? from : findRoot(dirname(from));
}

const root = findRoot(dirname(fileURLToPath(import.meta.url)));
const workspace = join(root, 'console');
const built = join(root, 'dist', 'console');
const timeoutMs = 120_000;

/** The newest modification time of a file, or of all files in a folder, except the workspace's packages. */
function newest(path: string): number {
  const { mtimeMs } = statSync(path);
  if (!statSync(path).isDirectory()) return mtimeMs;
  const names = readdirSync(path).filter((name) => name !== 'node_modules' && !name.endsWith('.gen.ts'));
  return Math.max(mtimeMs, ...names.map((name) => newest(join(path, name))));
}

function upToDate(): boolean {
  const page = join(built, 'index.html');
  if (!existsSync(page)) return false;
  const madeAt = statSync(page).mtimeMs;
  return [join(root, 'package-lock.json'), ...sources()].every((path) => newest(path) <= madeAt);
}

/** Without the workspace's own folder, whose time changes when files are generated into it. */
const sources = (): readonly string[] =>
  ['src', 'index.html', 'docs.html', 'package.json', 'tsconfig.json', 'vite.config.ts'].map((name) =>
    join(workspace, name),
  );

function compressAll(folder: string): void {
  for (const name of readdirSync(folder)) {
    const bytes = readFileSync(join(folder, name));
    writeFileSync(join(folder, `${name}.br`), brotliCompressSync(bytes));
    writeFileSync(join(folder, `${name}.gz`), gzipSync(bytes));
  }
}

/** @throws Error when the bundler fails, which has printed the reason */
export function buildConsole(): void {
  if (upToDate()) return;
  // Built beside it first: several builds may run at once, and a service may be reading the previous one.
  const fresh = join(root, 'dist', `console-${pid}`);
  mkdirSync(dirname(fresh), { recursive: true });
  const vite = join(root, 'node_modules', 'vite', 'bin', 'vite.js');
  const bundle = [vite, 'build', workspace, '--outDir', fresh, '--emptyOutDir', '--logLevel', 'warn'];
  // Tests set a different value, which would bundle React's development build.
  const environment = { ...env, NODE_ENV: 'production' };
  execFileSync(execPath, bundle, { stdio: 'inherit', timeout: timeoutMs, env: environment });
  compressAll(join(fresh, 'assets'));
  rmSync(built, { recursive: true, force: true });
  renameSync(fresh, built);
}

if (argv[1] !== undefined && import.meta.url === pathToFileURL(argv[1]).href) buildConsole();
