/**
 * `npm run agent:check`: the conformance kit for agents, a control service that plays the whole protocol with one agent
 * and names each sentence of the documents that it breaks. `scripts/agent-check/` is the kit; see
 * `docs/how-to/write-an-agent.md`.
 */
import { writeFile } from 'node:fs/promises';
import { errorText } from '../src/kernel/errors.js';
import { parseHostPort } from '../src/kernel/host-port.js';
import { agentCommand, type AgentEnvironment } from './agent-check/agent-process.js';
import { checkAgent } from './agent-check/check.js';
import { isConforming, jsonReport, scenarioText, summaryText } from './agent-check/report.js';
import { scenarios } from './agent-check/scenarios.js';
import type { Scenario } from './agent-check/play.js';
import { exitCodes, parseArguments, runCommand, say, UsageError, type ExitCode } from './maintenance/command-line.js';

/** Says nothing about the agent. */
const kitFailed = exitCodes.usage;

const usage = `Usage: npm run agent:check -- ENDPOINT [options]

Listens on ENDPOINT (host:port) as a control service, plays the protocol at an agent, and names each sentence of the
documents that the agent breaks. The agent must be able to run a RAW TCP rule on 127.0.0.1, beside the kit.

  --start COMMAND   starts the agent, once for each scenario, several at once, with SVC_AGENT_ID, SVC_CONTROL_ENDPOINT and
                    SVC_CONTROL_PSK in its environment. Without it, the kit shows them, and the scenarios follow each other
  --only NAMES      these scenarios, with commas
  --slow            also those that wait as long as an agent has to: five minutes and more
  --json FILE       the report as JSON
  --verbose         shows what the agent writes
  --list            names the scenarios

Exit codes: 0 nothing broken, 1 something broken or not played to its end, 2 wrong arguments, or the kit itself could not
run.`;

function chosen(names: readonly string[], isSlow: boolean): readonly Scenario[] {
  const unknown = names.find((name) => !scenarios.some((scenario) => scenario.name === name));
  if (unknown !== undefined) throw new UsageError(`--only: there is no scenario ${unknown}; --list names them`);
  if (names.length > 0) return scenarios.filter(({ name }) => names.includes(name));
  return scenarios.filter((scenario) => isSlow || scenario.isSlow !== true);
}

function announce(environment: AgentEnvironment): void {
  say('Start the agent with this environment:\n');
  for (const [name, value] of Object.entries(environment)) say(`${name}=${value}`);
  say('');
}

async function main(argv: readonly string[], signal: AbortSignal): Promise<ExitCode> {
  const { positional, flags, values } = parseArguments(argv, ['--slow', '--verbose', '--list'], 1, [
    '--start',
    '--only',
    '--json',
  ]);
  if (flags.has('--list')) {
    for (const { name, about, isSlow } of scenarios) say(`${name}: ${about}${isSlow === true ? ' (--slow)' : ''}`);
    return exitCodes.done;
  }
  const at = parseHostPort(positional[0] ?? '');
  if (at === undefined) throw new UsageError('ENDPOINT: expected host:port to listen on, such as 127.0.0.1:8443');
  const names = values('--only').flatMap((list) => list.split(','));
  const command = values('--start').at(-1);
  const heard = (text: string): void => void (flags.has('--verbose') && process.stderr.write(text));
  const results = await checkAgent({
    at,
    scenarios: chosen(names, flags.has('--slow')),
    ...(command === undefined ? { announce } : { starter: agentCommand(command), heard }),
    onResult: (result) => say(scenarioText(result)),
    signal,
  });
  say(summaryText(results));
  const file = values('--json').at(-1);
  if (file !== undefined) {
    await writeFile(file, jsonReport(results));
  }
  if (signal.aborted) return exitCodes.interrupted;
  const outcomes = new Set(results.map(({ outcome }) => outcome));
  if (outcomes.has('failed') && !outcomes.has('broken')) return kitFailed;
  return isConforming(results) ? exitCodes.done : exitCodes.failed;
}

await runCommand(usage, async (argv, signal) => {
  try {
    return await main(argv, signal);
  } catch (error) {
    if (error instanceof UsageError) throw error;
    process.stderr.write(`The kit cannot run: ${errorText(error)}\n`);
    return kitFailed;
  }
});
