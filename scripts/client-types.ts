/**
 * Part of `npm run types`: generates the API types of the console and the command line from the OpenAPI document of the
 * current code, so that they fail to compile when they do not follow a change of the API. The types are not committed.
 */
import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { execPath, exit, stderr } from 'node:process';
import { fileURLToPath } from 'node:url';
import { onEmptyFolder } from './on-empty-folder.js';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const types = ['console/src/shared/api/openapi.gen.ts', 'cli/src/api/openapi.gen.ts'].map((path) => join(root, path));
/** The document that the types are generated from. */
const source = join(root, 'dist/client-openapi.json');
/** In the workspace, with the older TypeScript that the generator needs. */
const generator = join(root, 'console/node_modules/openapi-typescript/bin/cli.js');
const timeoutMs = 60_000;

const document = await onEmptyFolder(async (url) => (await fetch(`${url}/openapi.json`)).text());
if (types.every((path) => existsSync(path)) && existsSync(source) && readFileSync(source, 'utf8') === document) exit(0);
const options = { encoding: 'utf8', input: document, timeout: timeoutMs } as const;
const [first = '', ...others] = types;
for (const path of types) mkdirSync(dirname(path), { recursive: true });
const made = spawnSync(execPath, [generator, '--output', first], options);
if (made.status !== 0) {
  stderr.write(`openapi-typescript failed: ${made.error?.message ?? made.stderr}\n`);
  exit(1);
}
for (const path of others) copyFileSync(first, path);
mkdirSync(dirname(source), { recursive: true });
writeFileSync(source, document);
