/**
 * Part of `npm run types`: writes the types of the console's client from the OpenAPI document of this very code, so that a
 * change of the API that the console does not follow fails to compile. They are not committed.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { execPath, exit, stderr } from 'node:process';
import { fileURLToPath } from 'node:url';
import { onEmptyFolder } from './on-empty-folder.js';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const types = join(root, 'console/src/shared/api/openapi.gen.ts');
/** What the types were made from. */
const source = join(root, 'dist/console-openapi.json');
/** In the workspace, with the older TypeScript that the generator needs. */
const generator = join(root, 'console/node_modules/openapi-typescript/bin/cli.js');
const timeoutMs = 60_000;

const document = await onEmptyFolder(async (url) => (await fetch(`${url}/openapi.json`)).text());
if (existsSync(types) && existsSync(source) && readFileSync(source, 'utf8') === document) exit(0);
const options = { encoding: 'utf8', input: document, timeout: timeoutMs } as const;
const made = spawnSync(execPath, [generator, '--output', types], options);
if (made.status !== 0) {
  stderr.write(`openapi-typescript failed: ${made.error?.message ?? made.stderr}\n`);
  exit(1);
}
mkdirSync(dirname(source), { recursive: true });
writeFileSync(source, document);
