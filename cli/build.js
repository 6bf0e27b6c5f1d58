/**
 * Bundles the command line into one file, `cli/dist/main.js`, unless that is newer than its sources. Part of
 * `npm run build`, and of the first use from a clone.
 */
import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { argv } from 'node:process';
import { fileURLToPath } from 'node:url';

const folder = dirname(fileURLToPath(import.meta.url));
export const built = join(folder, 'dist', 'main.js');

function newest(path) {
  const { mtimeMs } = statSync(path);
  if (!statSync(path).isDirectory()) return mtimeMs;
  return Math.max(...readdirSync(path).map((name) => newest(join(path, name))));
}

/** The repository's package.json, which states the version. */
const manifest = join(dirname(folder), 'package.json');

function upToDate() {
  const sources = join(folder, 'src');
  if (!existsSync(built)) return false;
  if (!existsSync(sources)) return true;
  return Math.max(...[sources, join(folder, 'package.json'), manifest].map(newest)) <= statSync(built).mtimeMs;
}

/** Packages in CommonJS expect `require`. */
const banner = "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);";

/** @throws Error when the development packages are not installed */
export async function buildCli() {
  if (upToDate()) return;
  const { build } = await import('esbuild');
  await build({
    entryPoints: [join(folder, 'src', 'main.ts')],
    outfile: built,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    banner: { js: banner },
    define: { PRODUCT_VERSION: JSON.stringify(JSON.parse(readFileSync(manifest, 'utf8')).version) },
    logLevel: 'error',
  });
}

/** A machine that only runs the service lacks these packages, and does not build the command line. */
function isInstalled() {
  const { devDependencies } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const { paths } = createRequire(import.meta.url).resolve;
  return Object.keys(devDependencies).every((name) => paths(name).some((path) => existsSync(join(path, name))));
}

if (argv[1] === fileURLToPath(import.meta.url) && isInstalled()) await buildCli();
