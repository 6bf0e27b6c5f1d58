/**
 * `npm run build:agent`, and the last step of a build: bundles the reference agent into one file, `dist/agent/gateway-agent.cjs`, which needs only
 * Node. Without the libsodium addon installed next to the file, the agent uses node:crypto and says so.
 */
import { execFileSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { argv, stdout } from 'node:process';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { version } from '../src/kernel/version.js';
import { commitOf } from './commit.js';

const timeoutMs = 60_000;
const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** @param outfile the path to write @param more options of esbuild @returns its size in bytes @throws Error with the compiler's output */
export function buildAgent(outfile: string, commit = commitOf(root), more: readonly string[] = []): number {
  const options = [
    join(root, 'src', 'agent', 'main.ts'),
    `--outfile=${outfile}`,
    '--bundle',
    '--minify-syntax',
    '--minify-whitespace',
    '--keep-names',
    '--platform=node',
    '--target=node20',
    '--format=cjs',
    '--external:sodium-native',
    `--banner:js=#!/usr/bin/env node\nconst ownUrl = require('node:url').pathToFileURL(__filename).href;`,
    '--define:import.meta.url=ownUrl',
    `--define:PRODUCT_VERSION=${JSON.stringify(version)}`,
    `--define:PRODUCT_COMMIT=${JSON.stringify(commit)}`,
    '--log-level=error',
    ...more,
  ];
  execFileSync(join(root, 'node_modules', 'esbuild', 'bin', 'esbuild'), options, { cwd: root, timeout: timeoutMs });
  return statSync(outfile).size;
}

if (argv[1] !== undefined && import.meta.url === pathToFileURL(argv[1]).href) {
  const outfile = join(root, 'dist', 'agent', 'gateway-agent.cjs');
  const bytes = buildAgent(outfile);
  stdout.write(`${outfile}: ${(bytes / 2 ** 20).toFixed(1)} MiB\n`);
}
