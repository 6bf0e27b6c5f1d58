/**
 * Wiring, in one place: opens the stores, starts what follows the log, then what serves, and closes in reverse order.
 * No rule of the service lives here. See `docs/architecture.md` for the flow that this file connects.
 */
import { randomUUID } from 'node:crypto';
import { createAccountHandlers } from './accounts/handlers.js';
import { followAccounts } from './accounts/view.js';
import { accountsAggregate, fleetAggregate } from './commands/aggregate.js';
import { openDataKeyStore } from './start/data-keys.js';
import { createFactRecorder, setFactRetention } from './commands/facts.js';
import { ensureFirstAdmin } from './start/first-admin.js';
import { createGateway } from './commands/gateway.js';
import type { CommandHandlers } from './commands/handlers-port.js';
import { createNodeHandlers } from './commands/nodes.js';
import type { Gateway } from './commands/port.js';
import { createChainHandlers, createSettingsHandlers, createUpstreamHandlers } from './commands/resources.js';
import { ensureServiceIdentity, WrongMasterKeyError } from './start/service-identity.js';
import { agentContext, systemContext } from './commands/system.js';
import type { Config } from './config.js';
import { readTls } from './config.js';
import { createDelivery } from './delivery/delivery.js';
import { compilerVersion } from './domain/compile/version.js';
import { fleetOf } from './domain/fleet/checkpoint.js';
import type { FleetCommand } from './domain/fleet/events.js';
import type { Fleet } from './domain/fleet/fleet.js';
import { followerMetrics } from './start/follower-metrics.js';
import { sleep } from './kernel/background.js';
import { systemClock } from './kernel/clock.js';
import { createClosers, shutdownMs } from './kernel/closers.js';
import type { Closers } from './kernel/closers.js';
import { errorText, ServiceError } from './kernel/errors.js';
import { streams } from './kernel/event.js';
import { formatHostPort } from './kernel/host-port.js';
import { randomIds } from './kernel/ids.js';
import type { Logger } from './kernel/logger.js';
import { backoff, storeRetry } from './kernel/retry.js';
import { ofAnotherLog } from './projections/engine/another-log.js';
import { startProjections } from './projections/projections.js';
import { notReady, readOnlyReason } from './start/readiness.js';
import { createKeyring } from './security/keyring.js';
import type { Keyring } from './security/keyring.js';
import { createLoginLimiter } from './security/login-limiter.js';
import { loadMasterKey } from './security/master-key-source.js';
import { createPasswordHasher } from './security/passwords.js';
import { createTokens } from './security/tokens.js';
import { DataFolderError, openStores, StoreSettingError } from './storage/open-stores.js';
import type { OpenStores } from './storage/open-stores.js';
import { lastRevision } from './storage/event-store.js';
import { readImportMarker } from './storage/log-archive/import-marker.js';
import { liveInstances, startInstanceLease } from './cluster/instance-lease.js';
import { createMetrics } from './operations/metrics.js';
import { createSessionCuts } from './cluster/session-cuts.js';
import { watchStores } from './operations/store-health.js';
import { openCommandClaims } from './cluster/command-claims.js';
import { createTelemetry } from './telemetry/telemetry.js';
import { waitForLog, waitForProjections } from './start/waits.js';
import { buildRest } from './transport/rest/build.js';
import { answerWhileStarting } from './transport/rest/while-starting.js';
import { createAgentTransport } from './transport/agent/agent-transport.js';
import { startListener } from './transport/listener/listener.js';

export const version = '0.1.0';

/** The start can't go on; the message is one sentence for the person who started the service. */
export class StartError extends Error {}

export interface RunningApp {
  /** Where REST listens. */
  readonly url: string;
  /** Where agents connect: `host:port`. */
  readonly agents: string;
  /** Drains agents, finishes what is accepted, closes the stores. */
  close(): Promise<void>;
}

/** Starts the service; its REST port tells meanwhile that it does. @throws StartError, ConfigError */
export async function startApp(config: Config, logger: Logger): Promise<RunningApp> {
  const tls = readTls(config.http.tls);
  const { host, port } = config.http.listen;
  // A port that the system chooses is known to nobody before the service is up.
  const starting = port === 0 ? undefined : await answerWhileStarting({ host, port }, tls).catch(cannotListen(config));
  try {
    return await startAgain(config, tls, logger, async () => starting?.close());
  } catch (error) {
    await starting?.close();
    throw error;
  }
}

const cannotListen =
  ({ http }: Config) =>
  (error: unknown): never => {
    throw new StartError(
      `Nothing can listen on SVC_HTTP_LISTEN_ADDR ${formatHostPort(http.listen)}: ${errorText(error)}.`,
    );
  };

/** Starts, again when an external store goes away on the way. */
async function startAgain(
  config: Config,
  tls: ReturnType<typeof readTls>,
  logger: Logger,
  freePort: () => Promise<void>,
): Promise<RunningApp> {
  const external = config.eventStoreUrl !== undefined || config.mongoUrl !== undefined;
  for (let tries = 0; ; tries += 1) {
    const closers = createClosers(logger);
    try {
      return await wire(config, tls, logger, closers, freePort);
    } catch (error) {
      await closers.closeAll();
      if (
        error instanceof DataFolderError ||
        error instanceof StoreSettingError ||
        error instanceof WrongMasterKeyError
      ) {
        throw new StartError(error.message);
      }
      if (!external || !(error instanceof ServiceError) || error.code !== 'unavailable') throw error;
      logger.warn({ error: errorText(error) }, 'a store went away during the start, which begins again');
      await sleep(backoff(storeRetry, tries));
    }
  }
}

async function wire(
  config: Config,
  tls: ReturnType<typeof readTls>,
  logger: Logger,
  closers: Closers,
  freePort: () => Promise<void>,
): Promise<RunningApp> {
  const [clock, ids, instanceId] = [systemClock, randomIds, randomUUID()];

  const { dataDir, eventStoreUrl, mongoUrl } = config;
  const stores = await openStores({ dataDir, eventStoreUrl, mongoUrl, clock, logger });
  closers.add('stores', () => stores.close());
  const { eventStore, readStore } = stores;
  if ((await readImportMarker(readStore))?.state === 'running') {
    throw new StartError('The stores hold half of an import: run npm run log:import with the same file again.');
  }
  const foreign = await ofAnotherLog(eventStore, readStore);
  if (foreign !== undefined) {
    throw new StartError(`The start is refused, for ${foreign}. Run npm run projections:rebuild, then start again.`);
  }
  const keyring = await openKeyring(config, stores);
  closers.add('keyring', () => keyring.close());
  const identity = await ensureServiceIdentity({ eventStore, keyring, clock, ids });
  await setFactRetention(eventStore);

  const facts = createFactRecorder({ eventStore, clock, ids, logger });
  closers.add('facts', () => facts.close());
  const view = followAccounts(eventStore, logger);
  closers.add('accounts', () => view.close());
  const projections = await startProjections({ eventStore, readStore, clock, logger });
  closers.add('projections', () => projections.close());

  // Delivery may ask for a command before the gateway, which starts from delivery's fold, is there.
  const late: { gateway?: Gateway<Fleet, FleetCommand> } = {};
  const delivery = await createDelivery({
    eventStore,
    readStore,
    keyring,
    clock,
    logger,
    async raiseGeneration(nodeId, reported) {
      await late.gateway?.execute(
        { type: 'RaiseNodeGeneration', id: nodeId, reported },
        agentContext(nodeId, 'config request'),
        () => undefined,
      );
    },
    recordFact: (nodeId, fact) => facts.agent(nodeId, fact, 'agent session'),
    nodeFacts: async (nodeId) => (await projections.nodes.get(nodeId))?.agent,
  });
  closers.add('delivery', () => delivery.close());
  // A verifier that no longer counts is made unreadable, whoever replaced it; also one replaced just before a crash.
  delivery.onRevoked((_nodeId, replaced) => {
    if (replaced === undefined) return;
    keyring.shred(replaced.key_id).catch((error: unknown) => {
      logger.warn({ error: errorText(error) }, 'a replaced PSK verifier could not be shredded');
    });
  });
  await waitForLog(eventStore, delivery, logger);
  await waitForProjections(projections, logger);
  await view.caughtUp();

  const readOnly = (): string | undefined => readOnlyReason(delivery, projections, view);
  const applied = async (stream: string, revision: number, timeoutMs: number): Promise<boolean> => {
    const waits = [projections.applied(stream, revision, timeoutMs)];
    if (stream === streams.fleet) waits.push(delivery.waitFor(revision, timeoutMs));
    if (stream === streams.accounts) waits.push(view.applied(stream, revision, timeoutMs));
    return (await Promise.all(waits)).every(Boolean);
  };
  // Generations, settings and users are shown from folds of their own: they have to be as far as the read models.
  const reached = async (position: number, timeoutMs: number): Promise<boolean> => {
    const until = clock.monotonic() + timeoutMs;
    if (!(await projections.reached(position, timeoutMs))) return false;
    const folded = [streams.fleet, streams.accounts].map((stream) => {
      const revision = projections.revision(stream);
      return revision === undefined || applied(stream, revision, Math.max(0, until - clock.monotonic()));
    });
    return (await Promise.all(folded)).every(Boolean);
  };
  const gatewayOptions = { eventStore, projections: { applied }, clock, ids, logger, readOnly };
  const gateway = await createGateway(fleetAggregate(fleetOf(delivery.captureCommitted())), gatewayOptions);
  late.gateway = gateway;
  closers.add('fleet gateway', () => gateway.close());
  const accounts = await createGateway(accountsAggregate(), gatewayOptions);
  closers.add('accounts gateway', () => accounts.close());
  if (readOnly() === undefined) {
    // Here and nowhere else: a running instance never raises the number again that an operator has lowered.
    const raised = await gateway.execute(
      { type: 'RaiseCompilerVersion', version: compilerVersion },
      systemContext('start'),
      () => undefined,
    );
    if (raised.kind === 'done' && raised.events.length > 0) {
      logger.info({ compiler_version: compilerVersion }, 'the compiler version is raised: every node is touched');
    }
  }

  const hasher = createPasswordHasher();
  closers.add('password hasher', () => hasher.close());
  const { adminPassword: password } = config;
  if (readOnly() === undefined)
    await ensureFirstAdmin({ gateway: accounts, view, keyring, hasher, ids, logger, password, dataDir });

  const telemetry = await createTelemetry({ readStore, clock, logger });
  closers.add('telemetry', () => telemetry.close());
  delivery.onRevoked((nodeId) => {
    if (delivery.node(nodeId) !== undefined) return;
    telemetry.forget([nodeId]).catch((error: unknown) => {
      logger.warn({ error: errorText(error), node_id: nodeId }, 'the telemetry of a deleted node could not be deleted');
    });
  });
  const position = (): number => projections.status().position;
  const health = await watchStores({ 'event store': eventStore, 'read store': readStore }, logger);
  closers.add('store health', () => health.close());

  const claims = await openCommandClaims({ readStore, clock, logger });
  closers.add('command claims', () => claims.close());
  const agents = await createAgentTransport(
    {
      delivery,
      telemetry,
      facts,
      keyring,
      clock,
      logger,
      instanceId,
      servicePrivate: identity.staticPrivate,
      listen: startListener,
      async reportAddress(nodeId, public_ipv4, public_ipv6) {
        const command = { type: 'ReportNodeAddress', id: nodeId, public_ipv4, public_ipv6 } as const;
        await gateway.execute(command, agentContext(nodeId, 'hello'), () => undefined);
      },
      storesAway: () => health.problems().length > 0,
      claimCommands: (nodeId) => claims.claim(nodeId, delivery.node(nodeId)?.commands ?? []),
    },
    config.agents,
  );
  closers.add('agent transport', () => agents.close(shutdownMs));
  projections.onAgentFact((fact) => {
    if (fact.type !== 'AgentSessionOpened') return;
    const { node_id, session_id, instance_id } = fact.data;
    agents.noteSessionOpened(node_id, session_id, instance_id);
  });

  const cuts = createSessionCuts({
    instanceId,
    clock,
    logger,
    revision: () => delivery.revision(),
    sessionsEnded: (nodeId, timeoutMs) => agents.sessionsEnded(nodeId, timeoutMs),
    liveInstances: () => liveInstances(readStore),
    publish: () => lease.publish(),
  });
  delivery.onRevoked((nodeId) => cuts.revoked(nodeId));
  const lease = await startInstanceLease({
    readStore,
    instanceId,
    clock,
    logger,
    position,
    cut: () => cuts.cut(),
    compilerVersion,
  });
  closers.add('instance lease', () => lease.close());

  const limiter = createLoginLimiter({ clock });
  closers.add('login limiter', () => limiter.close());
  const tokens = createTokens({ seed: identity.signingSeed, ttlSeconds: config.tokenTtlSeconds, clock });
  const commands: CommandHandlers = {
    nodes: createNodeHandlers({ gateway, keyring, servicePublic: identity.staticPublic, clock, ids, logger }),
    upstreams: createUpstreamHandlers(gateway, ids),
    chains: createChainHandlers(gateway, ids),
    settings: createSettingsHandlers(gateway),
    accounts: createAccountHandlers({ gateway: accounts, view, keyring, hasher, limiter, tokens, facts }),
  };
  const readiness = (): { ready: boolean; reasons: readonly string[] } => {
    const reasons = [...health.problems(), ...notReady(delivery, projections, view)];
    return { ready: reasons.length === 0, reasons };
  };
  const metrics = createMetrics([
    { name: 'svc_ready', help: '1 when this instance should get traffic.', read: () => (readiness().ready ? 1 : 0) },
    { name: 'svc_store_problems', help: 'Stores that do not answer.', read: () => health.problems().length },
    ...followerMetrics(delivery, projections),
    ...agents.metricSources(),
  ]);
  closers.add('metrics', () => metrics.close());
  const rest = await buildRest(
    {
      commands,
      projections: { ...projections, reached },
      delivery,
      telemetry,
      clock,
      ids,
      logger,
      sessionsEnded: (nodeId, timeoutMs) => cuts.ended(nodeId, timeoutMs),
      readiness,
      storesAway: () => (health.problems().length === 0 ? undefined : health.problems().join(', ')),
      metrics: () => metrics.text(),
    },
    {
      version,
      corsOrigins: config.http.corsOrigins,
      trustedProxies: config.http.trustedProxies,
      metricsToken: config.http.metricsToken,
      tls,
    },
  );
  closers.add('rest', () => rest.close());
  await freePort();
  const url = await rest.listen({ host: config.http.listen.host, port: config.http.listen.port });
  logger.info({ url, agents: agents.address, instance_id: instanceId }, 'the service is up');
  return { url, agents: agents.address, close: () => closers.closeAll() };
}

/**
 * The keyring under the master key. A missing key is made only for an installation without secrets: a lost one must not
 * be replaced in silence. @throws StartError
 */
async function openKeyring(config: Config, { eventStore, readStore }: OpenStores): Promise<Keyring> {
  const mayCreate = (await lastRevision(eventStore, streams.service)) === undefined;
  const loaded = await loadMasterKey({ ...config.masterKey, dataDir: config.dataDir, mayCreate });
  if (!loaded.ok) throw new StartError(`The master key can not be used: ${loaded.error}.`);
  return createKeyring({ masterKey: loaded.value.masterKey, store: await openDataKeyStore(readStore) });
}
