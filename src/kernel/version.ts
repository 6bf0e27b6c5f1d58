/** The version of the product, which only package.json states. A bundle has it built in, because no such file is beside it. */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Defined by the bundler. */
declare const PRODUCT_VERSION: string | undefined;

export const version = typeof PRODUCT_VERSION === 'string' ? PRODUCT_VERSION : statedVersion();

/** From the first package.json above this file, which is the product's for the sources and for what is compiled. */
function statedVersion(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, 'package.json'))) {
    if (folder === dirname(folder)) throw new Error('package.json is missing: the version is unknown');
    folder = dirname(folder);
  }
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { readonly version: string };
  return manifest.version;
}
