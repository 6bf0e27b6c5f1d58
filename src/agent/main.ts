/**
 * `npm run agent`: environment in, one JSON line per happening out. Exit code 0 after SIGTERM or SIGINT, 2 when the
 * environment can't be used, 1 when something failed that should not.
 */
import { pino, stdTimeFunctions } from 'pino';
import { withDeadline, timedOut } from '../kernel/background.js';
import { errorText } from '../kernel/errors.js';
import { startAgent } from './agent.js';
import { AgentConfigError, readAgentConfig } from './config.js';
import type { AgentConfig } from './config.js';
import { formatHostPort } from '../kernel/host-port.js';
import { agentVersion } from './version.js';
import { shutdownMs } from '../kernel/closers.js';

async function run(config: AgentConfig): Promise<number> {
  const logger = pino({
    level: config.logLevel,
    base: { node: config.nodeId },
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (level) => ({ level }) },
  });
  logger.info(
    { version: agentVersion, service: formatHostPort(config.endpoint), psk_fingerprint: config.keys.fingerprint },
    'agent starting',
  );
  const agent = await startAgent({ config, logger });
  // Waits between connections keep no process alive; the agent is to live until it is told otherwise.
  const alive = setInterval(() => undefined, 60_000);
  const signal = await new Promise<string>((resolve) => {
    process.once('SIGTERM', () => resolve('SIGTERM'));
    process.once('SIGINT', () => resolve('SIGINT'));
  });
  logger.info({ signal }, 'agent stopping');
  const closed = await withDeadline(agent.close(), shutdownMs);
  clearInterval(alive);
  if (closed === timedOut) {
    logger.error({}, 'the agent did not stop in time');
    return 1;
  }
  logger.info({}, 'agent stopped');
  return 0;
}

async function main(): Promise<number> {
  let config: AgentConfig;
  try {
    config = readAgentConfig(process.env);
  } catch (error) {
    if (!(error instanceof AgentConfigError)) throw error;
    process.stderr.write(`${error.message}\n`);
    return 2;
  }
  // What has been read need not be found again, in a core dump or a child's environment.
  delete process.env['SVC_CONTROL_PSK'];
  return run(config);
}

try {
  process.exitCode = await main();
} catch (error) {
  process.stderr.write(`${errorText(error)}\n`);
  process.exitCode = 1;
}
