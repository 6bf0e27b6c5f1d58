/**
 * Runs maintenance commands one after the other in one process, each with its own arguments and environment, because
 * starting a process for each takes longer than the commands. Argument: the runs, as JSON. Prints their outcomes as JSON.
 */
import { writeSync } from 'node:fs';
import { runMaintenance } from '../../../scripts/maintenance/commands.js';
import type { MaintenanceRun, ScriptOutcome } from '../../support/programs.js';

const runs = JSON.parse(process.argv[2] ?? '[]') as readonly MaintenanceRun[];
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

for (const { name, args, env } of runs) {
  [out, err] = ['', ''];
  for (const variable of Object.keys(process.env)) if (variable.startsWith('SVC_')) delete process.env[variable];
  Object.assign(process.env, env);
  process.exitCode = undefined;
  await runMaintenance([name, ...args]);
  outcomes.push({ code: Number(process.exitCode ?? 0), out, err });
}
process.exitCode = 0;
writeSync(1, JSON.stringify(outcomes));
