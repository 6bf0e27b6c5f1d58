/**
 * Bundles the command line into one file, `cli/dist/main.js`, unless that is newer than its sources. Part of
 * `npm run build`, and of the first use from a clone.
 */
import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { argv } from 'node:process';
import { fileURLToPath } from 'node:url';
import { commitOf } from '../scripts/commit.js';

const folder = dirname(fileURLToPath(import.meta.url));
export const built = join(folder, 'dist', 'main.js');

function newest(path) {
  const { mtimeMs } = statSync(path);
  if (!statSync(path).isDirectory()) return mtimeMs;
  return Math.max(...readdirSync(path).map((name) => newest(join(path, name))));
}

/** The repository, whose package.json states the version. */
const root = dirname(folder);
const manifest = join(root, 'package.json');
const release = join(root, 'src', 'kernel', 'release.ts');

function upToDate() {
  const sources = join(folder, 'src');
  if (!existsSync(built)) return false;
  if (!existsSync(sources)) return true;
  return Math.max(...[sources, join(folder, 'package.json'), manifest, release].map(newest)) <= statSync(built).mtimeMs;
}

/** Packages in CommonJS expect `require`. */
const banner =
  "#!/usr/bin/env node\nimport { createRequire } from 'node:module'; const require = createRequire(import.meta.url);";

/** What the command line says of itself. */
function productOf(commit) {
  const numbers = readFileSync(release, 'utf8');
  const numberOf = (name) => Number(new RegExp(`export const ${name} = (\\d+);`).exec(numbers)[1]);
  const { version } = JSON.parse(readFileSync(manifest, 'utf8'));
  return { version, commit, compiler_version: numberOf('compilerVersion'), format: numberOf('dataFormat') };
}

/** Bundles it unless it is up to date. @throws Error when the development packages are not installed */
export async function buildCli() {
  if (!upToDate()) await bundleCli(built, commitOf(root));
}

/** @returns the paths of what is in it, from the repository @throws as above */
export async function bundleCli(outfile, commit) {
  const { build } = await import('esbuild');
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: [join(folder, 'src', 'main.ts')],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    banner: { js: banner },
    define: { PRODUCT: JSON.stringify(productOf(commit)) },
    metafile: true,
    logLevel: 'error',
  });
  return Object.keys(metafile.inputs);
}

/** A machine that only runs the service lacks these packages, and does not build the command line. */
function isInstalled() {
  const { devDependencies } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const { paths } = createRequire(import.meta.url).resolve;
  return Object.keys(devDependencies).every((name) => paths(name).some((path) => existsSync(join(path, name))));
}

// Also when no source is newer, because the commit may be another.
if (argv[1] === fileURLToPath(import.meta.url) && isInstalled()) await bundleCli(built, commitOf(root));
