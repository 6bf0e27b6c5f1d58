/**
 * The wiring, read from top to bottom: opens the installation, starts the followers of the log, then the commands, then
 * what serves agents and REST. Everything closes in reverse order. No rule of the service lives here.
 * See `docs/architecture.md`.
 */
import { randomUUID } from 'node:crypto';
import { createAccountHandlers } from './accounts/handlers.js';
import { followAccounts } from './accounts/view.js';
import { openCommandClaims } from './cluster/command-claims.js';
import { joinCluster } from './cluster/membership.js';
import { accountsAggregate, fleetAggregate } from './commands/aggregate.js';
import { createGateway } from './commands/gateway.js';
import { createFactRecorder, setRetentions } from './commands/facts.js';
import { agentContext } from './commands/system.js';
import type { Config } from './config/config.js';
import { readTls } from './config/tls-files.js';
import { createDelivery } from './delivery/delivery.js';
import { compilerVersion } from './domain/compile/version.js';
import { createHistory } from './history/history.js';
import { createBudgetedLogger } from './kernel/budgeted-logger.js';
import { systemClock } from './kernel/clock.js';
import { shutdownMs } from './kernel/closers.js';
import type { Closers } from './kernel/closers.js';
import { errorText } from './kernel/errors.js';
import { streams } from './kernel/event.js';
import { formatHostPort } from './kernel/host-port.js';
import type { HostPort } from './kernel/host-port.js';
import { randomIds } from './kernel/ids.js';
import type { Logger } from './kernel/logger.js';
import { createSampledLog } from './kernel/sampled-log.js';
import { measureAppends } from './operations/append-metrics.js';
import { createMetrics } from './operations/metrics.js';
import { watchProjectionLag } from './operations/projection-lag.js';
import { watchStores } from './operations/store-health.js';
import { openCommittedFleet } from './projections/fleet/committed-fleet.js';
import { fleetQueries } from './projections/fleet/fleet-queries.js';
import { startProjections } from './projections/projections.js';
import { bodyHashBlinder } from './security/body-hashes.js';
import { createLoginLimiter } from './security/login-limiter.js';
import { createPasswordHasher } from './security/passwords.js';
import { createTokens } from './security/tokens.js';
import { createCommandHandlers } from './start/command-handlers.js';
import { createCommandMetrics } from './start/command-metrics.js';
import { raiseCompilerVersion } from './start/compiler-version.js';
import { watchCredentials } from './start/credentials.js';
import { ensureFirstAdmin } from './start/first-admin.js';
import { followerMetrics } from './start/follower-metrics.js';
import { createFollowers } from './start/followers.js';
import { openInstallation } from './start/installation.js';
import { ensureLogChain } from './start/log-chain.js';
import { retriedStart } from './start/retried-start.js';
import { forgetDeletedNodes } from './start/revocations.js';
import { followSigningKey } from './start/signing-key.js';
import { serviceMetrics } from './start/service-metrics.js';
import type { Measured } from './start/service-metrics.js';
import { keepStandingFacts } from './start/standing-facts.js';
import { StartError } from './start/start-error.js';
import { whenWritable } from './start/when-writable.js';
import { lastKnown } from './telemetry/last-known.js';
import { createTelemetry } from './telemetry/telemetry.js';
import { createAgentTransport } from './transport/agent/agent-transport.js';
import { startListener } from './transport/listener/listener.js';
import { buildRest } from './transport/rest/build.js';
import type { Readiness } from './transport/rest/deps.js';
import { createRequestCounts } from './transport/rest/server/request-records.js';
import { createAnswersUnderWay } from './transport/rest/server/answers-under-way.js';
import { createRestSockets } from './transport/rest/server/sockets.js';
import { createWaitingPlaces } from './transport/rest/checks/waiting-places.js';
import { answerWhileStarting } from './transport/rest/server/while-starting.js';
import { entryBeside } from './workers/conversation.js';
import { createWorkerPool } from './workers/pool.js';

const version = '0.1.0';

export interface RunningApp {
  /** Where REST listens. */
  readonly url: string;
  /** Where agents connect: `host:port`. */
  readonly agents: string;
  /** Drains agents, finishes accepted requests, closes the stores. */
  close(): Promise<void>;
}

/**
 * Starts the service; until it is up, its REST port answers that it is starting.
 * @param mustEnd called with a sentence when this process must end at once: its stores are no longer the ones it opened
 * @param ofProcess what `/metrics` shows of the process around the service
 * @throws StartError, ConfigError
 */
export async function startApp(
  config: Config,
  logger: Logger,
  mustEnd: (sentence: string) => void,
  ofProcess: Measured = { metrics: () => [] },
): Promise<RunningApp> {
  const tls = readTls(config.http.tls);
  const { listen } = config.http;
  // Nobody knows a port that the system chooses before the service is up.
  const waits = new Map<string, string>();
  const starting =
    listen.port === 0
      ? undefined
      : await answerWhileStarting(listen, tls, config.http.trustedProxies, () => [...waits.values()]).catch(
          cannotListen(listen),
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
    return await retriedStart((closers) => wire(config, tls, logger, mustEnd, ofProcess, closers, start), {
      externalStores,
      logger,
    });
  } catch (error) {
    await start.freePort();
    throw error;
  }
}

/** What answers on the REST port until the service is up. */
interface Start {
  freePort(): Promise<void>;
  /** See `StoreSettings`. */
  onWaiting(store: string, reason: string | undefined): void;
}

const cannotListen =
  (listen: HostPort) =>
  (error: unknown): never => {
    throw new StartError(`Nothing can listen on SVC_HTTP_LISTEN_ADDR ${formatHostPort(listen)}: ${errorText(error)}.`);
  };

async function wire(
  config: Config,
  tls: ReturnType<typeof readTls>,
  logger: Logger,
  mustEnd: (sentence: string) => void,
  ofProcess: Measured,
  closers: Closers,
  start: Start,
): Promise<RunningApp> {
  const [clock, ids, instanceId] = [systemClock, randomIds, randomUUID()];
  // Everything that a stranger can cause is logged here, so that no flood of it fills a disk.
  const refusals = createSampledLog({ clock, write: (fields, message) => logger.warn(fields, message) });
  closers.add('refusals', () => refusals.close());
  const requestLog = createBudgetedLogger({ logger, clock, what: 'requests' });
  closers.add('request log', () => requestLog.close());
  const sessionLog = createBudgetedLogger({ logger, clock, what: 'changes of sessions' });
  closers.add('session log', () => sessionLog.close());

  // Stores, keyring, identity.
  const opening = { clock, ids, logger, closers, onTakenOver: mustEnd, onWaiting: start.onWaiting };
  const installation = await openInstallation(config, opening);
  const { readStore, keyring, logChain, identity, clocks } = installation;
  const appends = measureAppends(installation.eventStore, clock);
  const { eventStore } = appends;

  // The followers of the log.
  const facts = createFactRecorder({ eventStore, clock, ids, logger });
  closers.add('facts', () => facts.close());
  const accountsView = followAccounts(eventStore, logChain, logger);
  closers.add('accounts', () => accountsView.close());
  const projections = await startProjections({
    eventStore,
    readStore,
    clock,
    logger,
    onAnotherLog: (found) =>
      mustEnd(`The service ends, for ${found}. Run npm run projections:rebuild, then start it again.`),
  });
  closers.add('projections', () => projections.close());
  const workers = createWorkerPool({ entry: entryBeside(import.meta.url, 'worker'), logger });
  const committed = await openCommittedFleet({ eventStore, logger, logChain });
  closers.add('committed fleet', () => committed.close());
  const followers = createFollowers({ eventStore, committed, projections, accounts: accountsView, logChain, clock });
  const readOnly = (): string | undefined => followers.readOnlyReason() ?? clocks.problems()[0];
  const sharedTime = clocks.now;
  const gatewayOptions = { eventStore, clock, ids, logger, logChain, readOnly, sharedTime };
  const commandMetrics = createCommandMetrics(clock);
  const fleet = commandMetrics.counted(
    createGateway(
      fleetAggregate,
      { state: committed.fleet, fold: committed.fold, catchUp: committed.catchUp },
      gatewayOptions,
    ),
  );
  closers.add('fleet gateway', () => fleet.close());
  const accounts = commandMetrics.counted(createGateway(accountsAggregate, accountsView, gatewayOptions));
  closers.add('accounts gateway', () => accounts.close());
  const delivery = await createDelivery({
    committed,
    eventStore,
    readStore,
    keyring,
    clock,
    logger,
    sessionLog,
    async raiseGeneration(nodeId, reported) {
      const command = { type: 'RaiseNodeGeneration', id: nodeId, reported } as const;
      await fleet.execute(command, agentContext(nodeId, 'config request'), () => undefined);
    },
    recordFact: facts.agent,
    nodeFacts: projections.agents.get,
    compileEarlier: createHistory({ eventStore, logChain, workers }),
  });
  closers.add('delivery', () => delivery.close());
  committed.start();
  await followers.caughtUp(logger);

  // Commands.
  const hasher = createPasswordHasher();
  closers.add('password hasher', () => hasher.close());
  const firstCommands = async (): Promise<void> => {
    await setRetentions(eventStore);
    await ensureLogChain(streams.fleet, fleet, logChain, logger);
    await ensureLogChain(streams.accounts, accounts, logChain, logger);
    await raiseCompilerVersion(fleet, logger);
    const { adminPassword: password, dataDir } = config;
    await ensureFirstAdmin({ gateway: accounts, view: accountsView, keyring, hasher, ids, logger, password, dataDir });
  };
  const waiting = await whenWritable(readOnly, firstCommands, logger);
  closers.add('first commands', () => waiting.close());
  const limiter = createLoginLimiter({ clock });
  closers.add('login limiter', () => limiter.close());
  const tokens = createTokens({ seed: identity.signingSeed, ttlSeconds: config.tokenTtlSeconds, clock });
  const signingKey = followSigningKey({ eventStore, keyring, tokens, current: identity.signingPublic, logger });
  closers.add('signing key', () => signingKey.close());
  const { staticPublic: servicePublic, staticPrivate: servicePrivate } = identity;
  const accountHandlers = createAccountHandlers({
    gateway: accounts,
    view: accountsView,
    keyring,
    hasher,
    limiter,
    tokens,
    facts,
    ids,
    logger,
    tokensEnded: (revision, timeoutMs) => cluster.tokensEnded(revision, timeoutMs),
    blindBodyHash: bodyHashBlinder(servicePrivate),
  });
  const audit = projections.auditTrail;
  const changes = {
    fleet,
    accounts,
    accountHandlers,
    keyring,
    servicePublic,
    projections,
    audit,
  };
  const commands = createCommandHandlers({ ...changes, clock, ids });

  // Agents.
  const queries = fleetQueries(committed, clock);
  const telemetry = await createTelemetry({ readStore, clock, logger });
  closers.add('telemetry', () => telemetry.close());
  forgetDeletedNodes(delivery, telemetry, logger);
  const health = await watchStores({ 'event store': eventStore, 'read store': readStore }, logger);
  closers.add('store health', () => health.close());
  const storeProblems = (): readonly string[] => [...health.problems(), ...clocks.problems()];
  const claims = await openCommandClaims({
    readStore,
    clock,
    logger,
    queued: () => [...queries.nodeIds()].map((id) => [id, queries.node(id)?.commands ?? []] as const),
  });
  closers.add('command claims', () => claims.close());
  const agents = await createAgentTransport(
    {
      delivery,
      telemetry,
      facts,
      keyring,
      clock,
      logger,
      sessionLog,
      refusals,
      instanceId,
      servicePrivate,
      listen: (options, accept) => startListener({ ...options, reality: config.agents.reality }, accept),
      async reportAddress(nodeId, public_ipv4, public_ipv6) {
        const command = { type: 'ReportNodeAddress', id: nodeId, public_ipv4, public_ipv6 } as const;
        await fleet.execute(command, agentContext(nodeId, 'hello'), () => undefined);
      },
      storesAway: () => storeProblems().length > 0,
      hasCommands: (nodeId) => (delivery.node(nodeId)?.commands.length ?? 0) > 0,
      claimCommands: (nodeId) => claims.claim(nodeId, delivery.node(nodeId)?.commands ?? []),
    },
    config.agents,
  );
  closers.add('agent transport', () => agents.close(shutdownMs));
  projections.onAgentFact((fact, at) => {
    // A fact that is written again is of a session that was opened long ago.
    if (fact.type !== 'AgentSessionOpened' || fact.data.again_at !== undefined) return;
    const { node_id, session_id, instance_id } = fact.data;
    agents.noteSessionOpened(node_id, session_id, instance_id, at);
  });
  const standingFacts = keepStandingFacts({
    fleet: queries,
    eventStore,
    readStore,
    projections,
    telemetry,
    instanceId,
    clock,
    ids,
    logger,
    readOnly,
  });
  closers.add('standing facts', () => standingFacts.close());
  const credentials = watchCredentials({ fleet: queries, gateway: fleet, logger, now: sharedTime, readOnly });
  closers.add('credentials', () => credentials.close());
  const cluster = await joinCluster({
    readStore,
    instanceId,
    clock,
    logger,
    compilerVersion,
    alone: config.mongoUrl === undefined,
    position: () => projections.status().position,
    revision: queries.revision,
    accounts: () => accountsView.accounts.revision.value,
    onTokensEnded: accountsView.onTokensEnded,
    onRevoked: delivery.onRevoked,
    sessionsEnded: agents.sessionsEnded,
    heartbeatsPerMinute: telemetry.heartbeatsPerMinute,
  });
  closers.add('instance lease', () => cluster.close());

  // REST.
  const readStoreAway = (): boolean => health.away('read store');
  const reports = lastKnown({ agents: projections.agents, telemetry, away: readStoreAway });
  const readiness = (): Readiness => {
    const reasons = [...clocks.problems(), ...followers.notReady(readStoreAway()), ...signingKey.problems()];
    const ready = reasons.length === 0 && !health.away('event store');
    return { ready, reasons: [...health.reasons(), ...reasons] };
  };
  const { corsOrigins, trustedProxies, metricsToken } = config.http;
  const sockets = createRestSockets({ trustedProxies, refusals });
  const answers = createAnswersUnderWay({ refusals });
  const waitingDeploys = createWaitingPlaces();
  const lag = watchProjectionLag({
    newest: () => Math.max(appends.newestPosition(), committed.fleet().position.value),
    held: () => projections.status().position,
    clock,
  });
  closers.add('projection lag', () => lag.close());
  const requests = createRequestCounts();
  const metrics = createMetrics(
    serviceMetrics({
      ready: () => readiness().ready,
      storeProblems: () => health.problems().length,
      clockDifferences: clocks.differences,
      starved: () => eventStore.starved(),
      timeToApplied: delivery.timeToApplied,
      facts,
      refusals,
      logs: { requests: requestLog, sessions: sessionLog },
      rest: { sockets, answers, waitingDeploys, requests },
      parts: [
        health,
        appends,
        commandMetrics,
        lag,
        { metrics: () => followerMetrics(committed, delivery, projections, logChain) },
        agents,
        standingFacts,
        credentials,
        ofProcess,
      ],
    }),
    clock,
  );
  closers.add('metrics', () => metrics.close());
  const rest = await buildRest(
    {
      commands,
      fleet: queries,
      projections: { ...projections, agents: reports.agents },
      held: followers,
      delivery,
      telemetry: reports.telemetry,
      clock,
      ids,
      logger,
      refusals,
      requestLog,
      requests,
      sockets,
      answers,
      waitingDeploys,
      sessionsEnded: cluster.sessionsEnded,
      heartbeatsPerMinute: async () =>
        readStoreAway() ? telemetry.heartbeatsPerMinute() : cluster.heartbeatsPerMinute(),
      readiness,
      commandsRefused: () => (health.away('event store') ? 'the event store is out of reach' : clocks.problems()[0]),
      readStoreAway,
      telemetryStale: reports.stale,
      metrics: () => metrics.text(),
    },
    { version, corsOrigins, trustedProxies, metricsToken, tls },
  );
  closers.add('rest', () => rest.close());
  // Before REST, so that no request waits for a long job. No thread is started before there are requests.
  closers.add('workers', () => workers.close());
  await start.freePort();
  const url = await rest.listen({ host: config.http.listen.host, port: config.http.listen.port });
  logger.info({ url, agents: agents.address, instance_id: instanceId }, 'the service is up');
  return { url, agents: agents.address, close: () => closers.closeAll() };
}
