/**
 * Runs scripts one after the other in one process, each with its own arguments and environment, because starting a process
 * for each takes longer than what they do. Argument: the runs, as JSON. Prints their outcomes as JSON.
 */
import { writeSync } from 'node:fs';
import type { ScriptOutcome, ScriptRun } from '../../support/programs.js';

const runs = JSON.parse(process.argv[2] ?? '[]') as readonly ScriptRun[];
const outcomes: ScriptOutcome[] = [];
let [out, err] = ['', ''];
process.stdout.write = (text) => {
  out += String(text);
  return true;
};
process.stderr.write = (text) => {
  err += String(text);
  return true;
};

for (const [index, { name, args, env }] of runs.entries()) {
  [out, err] = ['', ''];
  for (const variable of Object.keys(process.env)) if (variable.startsWith('SVC_')) delete process.env[variable];
  Object.assign(process.env, env);
  process.argv.splice(2, Infinity, ...args);
  process.exitCode = undefined;
  // A module of its own each time; what it imports is loaded once.
  await import(new URL(`../../../scripts/${name}.js?run=${index}`, import.meta.url).href);
  outcomes.push({ code: Number(process.exitCode ?? 0), out, err });
}
process.exitCode = 0;
writeSync(1, JSON.stringify(outcomes));
