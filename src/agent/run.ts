/**
 * `gateway-agent run`: the agent of the node that the environment or `identity.json` names, until a signal ends it; a
 * machine that is not a node yet joins first. Logs one JSON line per event.
 */
import { hostname } from 'node:os';
import { pino, stdTimeFunctions } from 'pino';
import { withDeadline, timedOut } from '../kernel/background.js';
import { agentKeysFrom } from '../channel/noise/control-psk.js';
import { shutdownMs } from '../kernel/closers.js';
import { logCryptoLibrary } from '../kernel/crypto/crypto.js';
import { errorText } from '../kernel/errors.js';
import { formatHostPort } from '../kernel/host-port.js';
import type { Logger } from '../kernel/logger.js';
import { logOutput } from '../kernel/log-output.js';
import { startAgent, agentVersion } from './agent.js';
import {
  namesNode,
  readAgentConfig,
  readJoinSettings,
  stateDirOf,
  type AgentConfig,
  type Environment,
  type LogLevel,
} from './config.js';
import type { ReadPsks } from './control/psk-choice.js';
import { exitCodes } from './exit-codes.js';
import { joinMachine } from './joining.js';
import { startMetricsServer } from './metrics-server.js';
import { readIdentity, type Identity } from './state-directory.js';

const loggerOf = (level: LogLevel, base: { readonly node?: string }): Logger =>
  pino(
    { level, base, timestamp: stdTimeFunctions.isoTime, formatters: { level: (label) => ({ level: label }) } },
    logOutput(process.env),
  );

/**
 * @param environment not `process.env`, from which the secrets have been removed
 * @returns the exit code
 * @throws AgentConfigError, StateError
 */
export async function run(environment: Environment): Promise<number> {
  // The waits between connections do not keep the process alive, but the agent must run until it is stopped.
  const alive = setInterval(() => undefined, 60_000);
  const stop = new Promise<string>((resolve) => {
    // Not once: npm hands on a Ctrl-C that the terminal has sent too, and a second signal must not cut the stop short.
    process.on('SIGTERM', () => resolve('SIGTERM'));
    process.on('SIGINT', () => resolve('SIGINT'));
  });
  try {
    let identity = namesNode(environment) ? undefined : await readIdentity(stateDirOf(environment));
    if (identity === undefined && !namesNode(environment) && (environment['SVC_JOIN_TOKEN'] ?? '') !== '') {
      // A request under way is repeated by the next start.
      const joined = await Promise.race([joinFirst(environment), stop.then(() => exitCodes.done)]);
      if (typeof joined === 'number') return joined;
      identity = joined;
    }
    const stateDir = identity === undefined ? undefined : stateDirOf(environment);
    return await serve(readAgentConfig(environment, identity), stateDir, stop);
  } finally {
    clearInterval(alive);
  }
}

/** @returns the exit code of a machine that must not join */
async function joinFirst(environment: Environment): Promise<Identity | number> {
  const { token, endpoint, logLevel } = readJoinSettings(environment);
  const logger = loggerOf(logLevel, {});
  logger.info({ version: agentVersion, service: formatHostPort(endpoint) }, 'joining');
  const joined = await joinMachine({
    token,
    endpoint,
    name: hostname(),
    stateDir: stateDirOf(environment),
    patienceMs: Infinity,
    onRetry: (reason, waitMs) => logger.warn({ reason, retry_in_ms: waitMs }, 'not joined yet'),
  });
  if (joined.kind === 'joined') {
    logger.info({ node: joined.identity.node_id, name: joined.name }, 'joined');
    return joined.identity;
  }
  logger.error({ reason: joined.message }, 'the service does not let this machine join');
  return exitCodes.refused;
}

/** @param stateDir undefined for a node that the environment names */
async function serve(config: AgentConfig, stateDir: string | undefined, stop: Promise<string>): Promise<number> {
  const logger = loggerOf(config.logLevel, { node: config.nodeId });
  logger.info(
    { version: agentVersion, service: formatHostPort(config.endpoint), psk_fingerprint: config.keys.fingerprint },
    'agent starting',
  );
  logCryptoLibrary(logger);
  const readPsks = stateDir === undefined ? undefined : pskReader(stateDir, config.nodeId, logger);
  const agent = await startAgent({ config, logger, ...(readPsks === undefined ? {} : { readPsks }) });
  // Without a listener it would end the process.
  process.on('SIGHUP', () => void agent.reload());
  const told =
    config.metrics &&
    (await startMetricsServer(config.metrics, agent).catch((error: unknown) => {
      throw new Error(`SVC_AGENT_METRICS_ADDR: ${errorText(error)}`);
    }));
  if (told !== undefined) logger.info({ address: told.address }, 'metrics are served');
  logger.info({ signal: await stop }, 'agent stopping');
  const closed = await withDeadline(Promise.all([agent.close(), told?.close()]), shutdownMs);
  if (closed === timedOut) {
    logger.error({}, 'the agent did not stop in time');
    return exitCodes.failed;
  }
  logger.info({}, 'agent stopped');
  return exitCodes.done;
}

/** The PSKs that the identity file has, for as long as it is this node's. */
function pskReader(stateDir: string, nodeId: string, logger: Logger): ReadPsks {
  return async () => {
    try {
      const identity = await readIdentity(stateDir);
      if (identity?.node_id !== nodeId) return [];
      const texts = [identity.control_psk, identity.former_control_psk ?? ''];
      return texts.map(agentKeysFrom).flatMap((keys) => (keys.ok ? [keys.value] : []));
    } catch (error) {
      logger.warn({ error: errorText(error) }, 'the identity file is not read; the PSK in use stays');
      return [];
    }
  };
}
