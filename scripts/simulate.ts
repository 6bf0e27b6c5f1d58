/**
 * Simulates a fleet of agents and reports how the service coped. `--help` shows the options; `scripts/simulate/` is the
 * simulator. Progress goes to standard error, the report to standard output.
 */
import { writeFile } from 'node:fs/promises';
import { CommandError, exitCodes, runCommand, say, type ExitCode } from './maintenance/command-line.js';
import { createProgressBar } from './maintenance/progress-bar.js';
import { openInstallation, type Installation } from './simulate/installation.js';
import { startHopTraffic, type HopTraffic } from './simulate/hop-traffic.js';
import { createLiveLine } from './simulate/live-line.js';
import { hasConverged, hopsCarried, tenth, type Result } from './simulate/result.js';
import { play } from './simulate/run.js';
import { readScenario, usage, type Scenario } from './simulate/scenario.js';
import { createSite } from './simulate/site.js';
import { htmlReport, svgReport } from './simulate/svg-report.js';
import { textReport } from './simulate/text-report.js';

async function simulate(scenario: Scenario, installation: Installation, signal: AbortSignal): Promise<Result> {
  const began = performance.now();
  const bar = createProgressBar('creating', 'nodes');
  const run = Date.now().toString(36);
  const site = await createSite(installation.rest, run, scenario.agents, signal, (nodes) =>
    bar.update(nodes / scenario.agents, nodes),
  ).finally(() => bar.finish());
  const line = createLiveLine(scenario.agents);
  let traffic: HopTraffic | undefined;
  try {
    const { hops: kinds, keep } = scenario;
    if (kinds.length > 0) traffic = await startHopTraffic(installation, { kinds, keep, prefix: `sim-hops-${run}-` });
    const setUpSeconds = tenth((performance.now() - began) / 1_000);
    const played = await play({ scenario, installation, site, setUpSeconds, signal, onSecond: line.show });
    const hops = (await traffic?.stop()) ?? [];
    traffic = undefined;
    return { ...played, hops };
  } finally {
    line.end();
    await traffic?.stop();
    // A folder that will be deleted needs no cleanup.
    if (!installation.own && !scenario.keep) await site.remove();
  }
}

async function main(argv: readonly string[], signal: AbortSignal): Promise<ExitCode> {
  const scenario = readScenario(argv);
  const installation = await openInstallation(scenario, process.env['SVC_SIM_PASSWORD']);
  let result: Result;
  try {
    result = await simulate(scenario, installation, signal);
  } finally {
    await installation.close();
  }
  const { reportFile } = scenario;
  if (reportFile !== undefined) {
    const report = reportFile.endsWith('.svg') ? svgReport(result) : htmlReport(result);
    await writeFile(reportFile, report).catch((error: unknown) => {
      throw new CommandError(`--report: cannot write ${reportFile}: ${String(error)}`);
    });
  }
  say(scenario.json ? JSON.stringify(result) : textReport(result));
  if (signal.aborted) return exitCodes.interrupted;
  return hasConverged(result) && hopsCarried(result) ? exitCodes.done : exitCodes.failed;
}

await runCommand(usage, main);
