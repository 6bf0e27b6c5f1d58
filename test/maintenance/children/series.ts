/**
 * Runs maintenance commands one after the other in one process, each with its own arguments and environment, because
 * starting a process for each takes longer than the commands. A line of standard input is a run, as JSON; its outcome is
 * answered with a line.
 */
import { writeSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { runMaintenance } from '../../../scripts/maintenance/commands.js';
import type { MaintenanceRun } from '../../support/programs.js';

let [out, err] = ['', ''];
process.stdout.write = (text) => {
  out += String(text);
  return true;
};
process.stderr.write = (text) => {
  err += String(text);
  return true;
};

for await (const line of createInterface({ input: process.stdin })) {
  const { name, args, env } = JSON.parse(line) as MaintenanceRun;
  [out, err] = ['', ''];
  for (const variable of Object.keys(process.env)) if (variable.startsWith('SVC_')) delete process.env[variable];
  Object.assign(process.env, env);
  process.exitCode = undefined;
  await runMaintenance([name, ...args]);
  writeSync(1, `${JSON.stringify({ code: Number(process.exitCode ?? 0), out, err })}\n`);
}
process.exitCode = 0;
