/**
 * `npm run agent`: reads the environment and logs one JSON line per event. Exit code 0 after SIGTERM or SIGINT, 2 if the
 * environment is unusable, 1 for an internal failure.
 */
import { realpathSync } from 'node:fs';
import { pino, stdTimeFunctions } from 'pino';
import { withDeadline, timedOut } from '../kernel/background.js';
import { shutdownMs } from '../kernel/closers.js';
import { logCryptoLibrary } from '../kernel/crypto/crypto.js';
import { errorText } from '../kernel/errors.js';
import { formatHostPort } from '../kernel/host-port.js';
import { logOutput } from '../kernel/log-output.js';
import { agentUnit } from '../kernel/units.js';
import { versionLine } from '../kernel/version.js';
import { agentName, startAgent, agentVersion } from './agent.js';
import { AgentConfigError, readAgentConfig, type AgentConfig } from './config.js';
import { startMetricsServer } from './metrics-server.js';

async function run(config: AgentConfig): Promise<number> {
  const logger = pino(
    {
      level: config.logLevel,
      base: { node: config.nodeId },
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (level) => ({ level }) },
    },
    logOutput(process.env),
  );
  logger.info(
    { version: agentVersion, service: formatHostPort(config.endpoint), psk_fingerprint: config.keys.fingerprint },
    'agent starting',
  );
  logCryptoLibrary(logger);
  const agent = await startAgent({ config, logger });
  const told = config.metrics === undefined ? undefined : await startMetricsServer(config.metrics, agent);
  if (told !== undefined) logger.info({ address: told.address }, 'metrics are served');
  // The waits between connections do not keep the process alive, but the agent must run until it is stopped.
  const alive = setInterval(() => undefined, 60_000);
  const signal = await new Promise<string>((resolve) => {
    process.once('SIGTERM', () => resolve('SIGTERM'));
    process.once('SIGINT', () => resolve('SIGINT'));
  });
  logger.info({ signal }, 'agent stopping');
  const closed = await withDeadline(Promise.all([agent.close(), told?.close()]), shutdownMs);
  clearInterval(alive);
  if (closed === timedOut) {
    logger.error({}, 'the agent did not stop in time');
    return 1;
  }
  logger.info({}, 'agent stopped');
  return 0;
}

const usage = `Usage: gateway-agent [--help | --version | --print-unit]

The reference agent of a node. It is configured by its environment:

  SVC_AGENT_ID                     the node's id
  SVC_CONTROL_ENDPOINT             http://host:port or reality://host:port?pbk=…&sid=…&sni=…
  SVC_CONTROL_PSK                  the node's control PSK, or SVC_CONTROL_PSK_FILE, a file with it
  SVC_CONTROL_REKEY_INTERVAL_SECS  how old the keys of a session may get
  SVC_AGENT_REJECT_UNSUPPORTED     false: run what it can of a snapshot, and report the rest
  SVC_AGENT_METRICS_ADDR           host:port for /healthz and /metrics
  SVC_LOG_LEVEL                    debug, info, warn or error

--print-unit prints the systemd unit that runs this file.
`;

/** What an argument asks for; undefined for an unknown one. */
function answerTo(argument: string): string | undefined {
  switch (argument) {
    case '--help':
      return usage;
    case '--version':
      return `${versionLine(agentName)}\n`;
    case '--print-unit':
      return agentUnit(process.execPath, realpathSync(process.argv[1] ?? ''));
    default:
      return undefined;
  }
}

async function main([argument]: readonly string[]): Promise<number> {
  if (argument !== undefined) {
    const answer = answerTo(argument);
    if (answer !== undefined) process.stdout.write(answer);
    else process.stderr.write(`gateway-agent: ${argument} is not one of its arguments\n\n${usage}`);
    return answer === undefined ? 2 : 0;
  }
  let config: AgentConfig;
  try {
    config = readAgentConfig(process.env);
  } catch (error) {
    if (!(error instanceof AgentConfigError)) throw error;
    process.stderr.write(`${error.message}\n`);
    return 2;
  }
  // The PSK must not stay in the environment, where a core dump or a child process would show it.
  delete process.env['SVC_CONTROL_PSK'];
  return run(config);
}

main(process.argv.slice(2)).then(
  // At once: parts that did not close in time must not keep the process alive.
  (code) => process.exit(code),
  (error: unknown) => {
    process.stderr.write(`${errorText(error)}\n`);
    process.exit(1);
  },
);
