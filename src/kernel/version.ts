/**
 * What this build is: the version, which only package.json states, and the commit that it was built from. A bundle has both
 * built in, because no such files are beside it. Implements `docs/contract/joining.md#what-a-release-is`.
 */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { compilerVersion, dataFormat } from './release.js';

/** Defined by the bundler. */
declare const PRODUCT_VERSION: string | undefined;
declare const PRODUCT_COMMIT: string | undefined;

export const version = typeof PRODUCT_VERSION === 'string' ? PRODUCT_VERSION : statedVersion();

/** Twelve digits, with `-dirty` if files had changed since; `unknown` for a build outside a clone. */
const commit = typeof PRODUCT_COMMIT === 'string' ? PRODUCT_COMMIT : stampedCommit();

/** `VERSION+COMMIT`. */
export const build = `${version}+${commit}`;

export const release = { version, commit, compiler_version: compilerVersion, format: dataFormat } as const;

/** What `--version` of a program prints. */
export const versionLine = (program: string): string =>
  `${program} ${build} (compiler version ${compilerVersion}, format ${dataFormat})`;

/** From the first package.json above this file, which is the product's, both for the sources and for compiled files. */
function statedVersion(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, 'package.json'))) {
    if (folder === dirname(folder)) throw new Error('package.json is missing: the version is unknown');
    folder = dirname(folder);
  }
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { readonly version: string };
  return manifest.version;
}

/** From the file that `npm run build` writes beside what it compiles; the sources have none. */
function stampedCommit(): string {
  const stamp = fileURLToPath(new URL('../../commit', import.meta.url));
  return existsSync(stamp) ? readFileSync(stamp, 'utf8').trim() : 'unknown';
}
