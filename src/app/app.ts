/**
 * The service, assembled from its parts: the core, agents on it, and REST. Until it is up, its REST port answers that
 * it is starting. Contains no rules of the service. See `docs/architecture.md`.
 */
import { createAgents } from './agents.js';
import { createCore } from './core.js';
import { createRest, createRestDeps } from './rest.js';
import type { Config } from './config/config.js';
import { systemClock } from '../kernel/clock.js';
import { createClosers, type Closers } from '../kernel/closers.js';
import { errorText, ServiceError } from '../kernel/errors.js';
import type { Logger } from '../kernel/logger.js';
import type { Known } from '../reports/reports.js';
import type { Measured } from './metrics.js';
import { cannotListen, StartError } from './installation/installation.js';
import { watchTls } from './served-tls.js';
import { fullDisk } from '../storage/open-stores.js';
import { isDiskFull } from '../storage/store-access.js';
import { startBackups } from './backups.js';
import { startWebhooks } from './webhooks.js';
import type { ServedTls } from '../transport/rest/deps.js';
import { answerWhileStarting } from '../transport/rest/server/while-starting.js';
import { sleep } from '../kernel/background.js';
import { backoff, storeRetry } from '../kernel/retry.js';

interface Running extends Omit<RunningApp, 'reload'> {
  /** The last reports of the nodes: the store that had them may be empty when the service restarts. */
  known(): Known;
}

export interface RunningApp {
  /** Where REST listens. */
  readonly url: string;
  /** The address that agents connect to: `host:port`. */
  readonly agents: string;
  /** Reads the certificate of REST again. Does nothing without one. Never rejects. */
  reload(): Promise<void>;
  /** Drains agents, finishes accepted requests, closes the stores. */
  close(): Promise<void>;
}

/**
 * Starts the service; until it is up, its REST port answers that it is starting. It restarts by itself when its read
 * store has been emptied, and refills it.
 * @param mustEnd called with a sentence when this process must end at once: its stores are no longer the ones it opened
 * @param ofProcess metrics of the process around the service, for `/metrics`
 * @throws StartError, ConfigError
 */
export async function startApp(
  config: Config,
  logger: Logger,
  mustEnd: (sentence: string) => void,
  ofProcess: Measured = { metrics: () => [] },
): Promise<RunningApp> {
  const tls = config.http.tls && (await watchTls(config.http.tls, { logger, clock: systemClock }));
  let closing = false;
  const begin = (from: Config, known?: Known): Promise<Running> =>
    startOnce({ config: from, known, tls, logger, mustEnd, ofProcess, onEmptied: () => void restart() });

  async function restart(): Promise<void> {
    if (closing) return;
    logger.warn({}, 'the read store was emptied; this instance restarts and refills it');
    const before = await running;
    running = before.close().then(() => begin(onPortsOf(before, config), before.known()));
    await running.catch((error: unknown) =>
      mustEnd(error instanceof StartError ? error.message : `The service could not restart: ${errorText(error)}`),
    );
  }

  let running = begin(config);
  try {
    const { url, agents } = await running;
    return {
      url,
      agents,
      reload: async () => tls?.reload(),
      async close() {
        closing = true;
        // Not awaited: a folder that does not answer must not hold up the rest.
        void tls?.close();
        await (await running).close();
      },
    };
  } catch (error) {
    void tls?.close();
    throw error;
  }
}

/** The config with the ports that the system chose the first time. */
function onPortsOf({ url, agents }: Running, config: Config): Config {
  const { http, agents: transport } = config;
  return {
    ...config,
    http: { ...http, listen: { ...http.listen, port: Number(new URL(url).port) } },
    agents: { ...transport, listen: { ...transport.listen, port: Number(agents.slice(agents.lastIndexOf(':') + 1)) } },
  };
}

async function startOnce(options: StartOptions): Promise<Running> {
  const { config, tls, logger } = options;
  const { listen } = config.http;
  // Nobody knows a port chosen by the system before the service is up.
  const waits = new Map<string, string>();
  const starting =
    listen.port === 0
      ? undefined
      : await answerWhileStarting(listen, tls, config.http.trustedProxies, () => [...waits.values()]).catch(
          cannotListen('SVC_HTTP_LISTEN_ADDR', listen),
        );
  const start: Start = {
    freePort: async () => starting?.close(),
    onWaiting(store, reason) {
      if (reason === undefined) waits.delete(store);
      else waits.set(store, reason);
    },
  };
  try {
    const externalStores = config.eventStoreUrl !== undefined || config.mongoUrl !== undefined;
    return await retriedStart((closers) => wire(options, closers, start), { externalStores, logger });
  } catch (error) {
    await start.freePort();
    throw isDiskFull(error) && !(error instanceof StartError) ? new StartError(fullDisk(config.dataDir)) : error;
  }
}

interface StartOptions {
  readonly config: Config;
  /** See `Running`. */
  readonly known: Known | undefined;
  readonly tls: ServedTls | undefined;
  readonly logger: Logger;
  mustEnd(sentence: string): void;
  /** See `CoreOptions`. */
  onEmptied(): void;
  readonly ofProcess: Measured;
}

/** The server that answers on the REST port until the service is up. */
interface Start {
  freePort(): Promise<void>;
  /** See `StoreSettings`. */
  onWaiting(store: string, reason: string | undefined): void;
}

async function wire(options: StartOptions, closers: Closers, start: Start): Promise<Running> {
  const { config, tls, logger, mustEnd, onEmptied, ofProcess } = options;
  if (config.readStoreHere) {
    logger.warn({}, 'the read store is in the data folder: no other instance may run on this event log');
  }
  const { onWaiting } = start;
  const core = await createCore({ config, logger, closers, mustEnd, onEmptied, onWaiting });
  const agents = await createAgents(core, config, options.known);
  const webhooks = await startWebhooks(core, config);
  closers.add('webhooks', webhooks.service);
  const backups = await startBackups(core, config);
  closers.add('backups', backups.service);
  const restOptions = { config, tls, ofProcess };
  const deps = await createRestDeps(core, { agents, webhooks, backups }, restOptions);
  const rest = await createRest(deps, agents.address, restOptions, closers);
  // Before REST, so that no request waits for a long fold.
  closers.add('history', core.history);
  await start.freePort();
  const address = await rest.listen({ host: config.http.listen.host, port: config.http.listen.port });
  const url = tls === undefined ? address : address.replace('http:', 'https:');
  const { reality } = config.agents;
  const agents_come_by = reality === undefined ? 'h2c' : reality.allowH2c ? 'reality or h2c' : 'reality';
  logger.info({ url, agents: agents.address, agents_come_by, instance_id: core.instanceId }, 'the service is up');
  return { url, agents: agents.address, close: () => closers.closeAll(), known: agents.reports.known };
}

/** @throws anything that stops the start for good, which is everything but an external store that is `unavailable` */
async function retriedStart<T>(
  start: (closers: Closers) => Promise<T>,
  { externalStores, logger }: { readonly externalStores: boolean; readonly logger: Logger },
): Promise<T> {
  for (let attempt = 0; ; attempt += 1) {
    const closers = createClosers(logger);
    try {
      return await start(closers);
    } catch (error) {
      await closers.closeAll();
      if (!externalStores || !(error instanceof ServiceError) || error.code !== 'unavailable') throw error;
      logger.warn({ error: errorText(error) }, 'a store became unreachable during the start; starting again');
      await sleep(backoff(storeRetry, attempt));
    }
  }
}
