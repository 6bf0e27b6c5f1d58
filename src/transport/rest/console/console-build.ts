/**
 * The built console in memory: its pages, and its hashed files with their compressed variants. Read at the first request and
 * kept, so that one instance serves one build. `console-routes.ts` serves it.
 */
import { readFile, readdir } from 'node:fs/promises';
import { dirname, extname, join } from 'node:path';
import { findBuilt } from '../../../kernel/files.js';
import type { Compressed } from '../answers/accepted.js';

/** The codings of compressed variants, best first, with their file extensions. */
const codings = [
  ['br', '.br'],
  ['gzip', '.gz'],
] as const;

/** The placeholder for the style nonce, which `console/vite.config.ts` puts into the page. */
const noncePlaceholder = '__CSP_NONCE__';

const contentTypes: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

export interface ConsoleFile extends Compressed {
  readonly contentType: string;
}

export type ConsolePage = 'index' | 'docs';

export interface ConsoleBuild {
  /** A page with this nonce; `docs` is the page of `/docs`. */
  page(name: ConsolePage, nonce: string): string;
  /** By file name, as in `/console/assets/NAME`. */
  readonly assets: ReadonlyMap<string, ConsoleFile>;
}

/** The folder of the built console; undefined when there is none. */
export function findConsole(): string | undefined {
  const page = findBuilt('console/index.html', import.meta.url);
  return page === undefined ? undefined : dirname(page);
}

/** @throws Error of the system when a file cannot be read */
export async function readConsole(folder: string): Promise<ConsoleBuild> {
  const template = (name: ConsolePage): Promise<string> => readFile(join(folder, `${name}.html`), 'utf8');
  const pages = { index: await template('index'), docs: await template('docs') };
  const assetsFolder = join(folder, 'assets');
  const names = new Set(await readdir(assetsFolder));
  const assets = new Map<string, ConsoleFile>();
  for (const name of names) {
    const contentType = contentTypes[extname(name)];
    if (contentType === undefined) continue;
    const variants = codings
      .filter(([, ending]) => names.has(name + ending))
      .map(async ([coding, ending]) => ({ coding, bytes: await readFile(join(assetsFolder, name + ending)) }));
    const plain = await readFile(join(assetsFolder, name));
    assets.set(name, { contentType, plain, variants: await Promise.all(variants) });
  }
  return { page: (name, nonce) => pages[name].replaceAll(noncePlaceholder, nonce), assets };
}
