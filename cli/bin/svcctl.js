#!/usr/bin/env node
/** Starts the command line, which is built first when it is not yet. */
import { stderr } from 'node:process';
import { pathToFileURL } from 'node:url';
import { buildCli, built } from '../build.js';

const ready = await buildCli().then(
  () => true,
  () => false,
);
if (ready) await import(pathToFileURL(built).href);
else {
  stderr.write('svcctl: not built; run npm ci && npm run build in the repository\n');
  process.exitCode = 3;
}
