/**
 * REST on the core: the handlers of accounts and commands, tokens, readiness, metrics, and the server that takes
 * requests. See `docs/architecture.md`.
 */
import { createAccountHandlers, createProfileRevertHandlers } from '../accounts/handlers.js';
import { openTokenUses } from '../accounts/token-uses.js';
import { createCredentialHandlers } from '../commands/credentials.js';
import { createFleetFileHandlers } from '../commands/fleet-file.js';
import type { CommandHandlers } from '../commands/handlers-port.js';
import { createJoinTokenHandlers } from '../commands/join-tokens.js';
import { createServiceIdentityHandlers } from '../commands/node-psks.js';
import { createNodeHandlers } from '../commands/nodes.js';
import {
  createChainHandlers,
  createPolicyHandlers,
  createResourceHandlers,
  createSettingsHandlers,
} from '../commands/resources.js';
import { createRevertHandlers } from '../commands/revert.js';
import { createRolloutCommands, createRolloutHandlers } from '../commands/rollouts.js';
import type { Fleet } from '../domain/fleet/fleet.js';
import type { Config } from './config/config.js';
import type { Closers } from '../kernel/closers.js';
import { createMetrics } from '../instance/metrics.js';
import { watchProjectionLag } from '../instance/projection-lag.js';
import { bodyHashBlinder } from '../security/passwords.js';
import { createLoginLimiter } from '../security/login-limiter.js';
import { serviceMetrics, type Measured } from './metrics.js';
import { keepRecent } from '../feed/recent.js';
import { formatEndpoint } from '../channel/reality/endpoint.js';
import { buildRest } from '../transport/rest/build.js';
import { createDeployPlaces, createStreamPlaces } from '../transport/rest/checks/waiting-places.js';
import type { AnswersUnderWay, Readiness, RestApp, RestDeps, ServedTls } from '../transport/rest/deps.js';
import { openAgentProgram } from '../transport/rest/machines/agent-program.js';
import { createAnswersUnderWay } from '../transport/rest/server/answers-under-way.js';
import { createRequestCounts } from '../transport/rest/server/request-records.js';
import { createRestSockets } from '../transport/rest/server/sockets.js';
import type { Agents } from './agents.js';
import type { BackupParts } from './backups.js';
import type { Core } from './core.js';
import { observeOf, startJudging } from './judging.js';
import { version } from '../kernel/version.js';
import type { WebhookParts } from './webhooks.js';

export interface RestOptions {
  readonly config: Config;
  readonly tls: ServedTls | undefined;
  /** Metrics of the process around the service. */
  readonly ofProcess: Measured;
}

/** All that REST calls. */
export async function createRestDeps(
  core: Core,
  {
    agents,
    webhooks,
    backups,
  }: { readonly agents: Agents; readonly webhooks: WebhookParts; readonly backups: BackupParts },
  options: RestOptions,
): Promise<RestDeps & { readonly answers: AnswersUnderWay }> {
  const { clock, ids, logger, closers, refusals, requestLog, projections, delivery, queries, followers } = core;
  const { health, clocks } = core;
  const { trustedProxies } = options.config.http;
  const { reports, membership } = agents;
  const readStoreAway = (): boolean => health.away('read store') !== undefined;
  const commands = await createHandlers(core, agents, webhooks.handlers, readStoreAway);
  const readiness = (): Readiness => {
    const reasons = [...clocks.problems(), ...followers.notReady(readStoreAway()), ...core.signingKey.problems()];
    const ready = reasons.length === 0 && health.away('event store') === undefined;
    return { ready, reasons: [...health.reasons(), ...reasons, ...membership.problems()] };
  };
  const rest = {
    sockets: createRestSockets({ trustedProxies, refusals }),
    answers: createAnswersUnderWay({ refusals }),
    waitingDeploys: createDeployPlaces(),
    eventStreams: createStreamPlaces(),
    requests: createRequestCounts(),
  };
  const counts = await startJudging(core, reports, commands.rollouts);
  const lag = watchProjectionLag({
    newest: () => Math.max(core.appends.newestPosition(), core.committed.fleet().position.value),
    held: () => projections.status().position,
    clock,
  });
  closers.add('projection lag', lag);
  const others = [...agents.measured, webhooks, backups, options.ofProcess];
  const sources = serviceMetrics(core, { ready: () => readiness().ready, counts, rest, lag, others });
  const metrics = closers.add('metrics', createMetrics(sources, clock));
  return {
    ...rest,
    commands,
    fleet: queries,
    projections,
    serviceIdentity: () => ({
      first: { public_key: core.serviceKeys.first, since: core.identity.at.since },
      served: core.committed.fleet().singletons.identity.value,
    }),
    agentFacts: core.agentFacts,
    held: followers,
    feed: core.feed,
    recent: await keepRecent({ feed: core.feed, projections, readStoreAway }),
    webhooks: webhooks.service,
    backups: backups.service,
    delivery,
    reports,
    counts,
    statusLedger: core.statusLedger,
    commandsDelivered: agents.claims.delivered,
    diagnostics: agents.diagnostics,
    clock,
    ids,
    logger,
    refusals,
    requestLog,
    sessionsEnded: membership.sessionsEnded,
    activity: membership.activity,
    readiness,
    commandsRefused: () => health.away('event store') ?? clocks.problems()[0],
    readStoreAway,
    metrics: () => metrics.text(),
  };
}

/** The server, which does not listen yet. @param agents where they connect: `host:port` */
export async function createRest(
  deps: RestDeps,
  agents: string,
  { config, tls }: RestOptions,
  closers: Closers,
): Promise<RestApp> {
  const { corsOrigins, trustedProxies, metricsToken } = config.http;
  const controlEndpoint = controlEndpointOf(agents, config.agents);
  const { publicUrl, serveAgent } = config;
  const addresses = { corsOrigins, publicUrl, controlEndpoint };
  const agentProgram = serveAgent ? openAgentProgram() : async () => undefined;
  const options = { version, ...addresses, agentProgram, trustedProxies, metricsToken, tls };
  return closers.add('rest', await buildRest(deps, options));
}

/**
 * The endpoint by which an agent reaches this instance at a host, unless the settings say another; with several names and
 * short ids, the first ones.
 */
function controlEndpointOf(address: string, { reality, publicEndpoint }: Config['agents']): (host: string) => string {
  if (publicEndpoint !== undefined) return () => publicEndpoint;
  // The port of the agents' listener, even if the system chose it.
  const port = Number(address.slice(address.lastIndexOf(':') + 1));
  const [serverName] = reality?.serverNames ?? [];
  const [shortId] = reality?.shortIds ?? [];
  if (reality === undefined || serverName === undefined || shortId === undefined)
    return (host) => formatEndpoint({ host, port });
  const access = { publicKey: Buffer.from(reality.keys.publicKey), shortId, serverName };
  return (host) => formatEndpoint({ host, port, reality: access });
}

/** Everything REST calls to change something or to sign somebody in. */
async function createHandlers(
  core: Core,
  { membership, reports }: Agents,
  webhookHandlers: CommandHandlers['webhooks'],
  away: () => boolean,
): Promise<CommandHandlers> {
  const { clock, ids, logger, closers, keyring, identity, fleet, accounts, projections, tokens } = core;
  const limiter = closers.add('login limiter', createLoginLimiter({ clock }));
  const { accountsView } = core;
  const uses = await openTokenUses({
    readStore: core.readStore,
    clock,
    logger,
    away,
    isGone: (id) =>
      accountsView.caughtUp() && accountsView.failure() === undefined && !accountsView.accounts.apiTokens.byId.has(id),
  });
  closers.add('uses of API tokens', uses);
  const committed = (): Fleet => core.committed.fleet();
  const observe = observeOf(reports);
  const { gateway, plan } = createRolloutCommands({ gateway: fleet, fleet: committed, observe, clock, ids });
  const writing = { gateway, keyring, serviceKeys: core.serviceKeys, clock, ids };
  const { sessionsEnded } = membership;
  const joinTokens = createJoinTokenHandlers({ ...writing, logger, sessionsEnded });
  const accountHandlers = createAccountHandlers({
    gateway: accounts,
    view: accountsView,
    keyring,
    hasher: core.hasher,
    limiter,
    tokens,
    facts: core.facts,
    uses,
    refusals: core.refusals,
    clock,
    ids,
    logger,
    tokensEnded: membership.tokensEnded,
    deleteJoinTokens: joinTokens.removeThoseOf,
    blindBodyHash: bodyHashBlinder(identity.staticPrivate),
  });
  const audit = projections.auditTrail;
  const reverts = createRevertHandlers({ gateway, fleet: committed, projections, audit, plan });
  return {
    nodes: createNodeHandlers(writing),
    credentials: createCredentialHandlers(writing),
    resources: createResourceHandlers(gateway, ids),
    chains: createChainHandlers(gateway),
    policies: createPolicyHandlers(gateway),
    settings: createSettingsHandlers(gateway),
    rollouts: createRolloutHandlers({ gateway, fleet: committed, observe, projections, audit, reverts }),
    fleetFile: createFleetFileHandlers({ ...writing, fleet: committed, projections, audit, reverts }),
    reverts: {
      fleet: reverts,
      accounts: createProfileRevertHandlers({ gateway: accounts, projections, audit }),
    },
    accounts: accountHandlers,
    joinTokens,
    serviceIdentity: createServiceIdentityHandlers(writing),
    webhooks: webhookHandlers,
  };
}
