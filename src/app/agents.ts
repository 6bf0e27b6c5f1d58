/**
 * Serves agents on the core: their reports, their transport, the claims of commands, the loops that keep facts and
 * credentials up to date, and this instance's place among the others. See `docs/architecture.md`.
 */
import { openCommandClaims, type CommandClaims } from '../instance/command-claims.js';
import { joinCluster, type Membership } from '../instance/membership.js';
import { liveInstances } from '../instance/instance-lease.js';
import { createJoin } from '../commands/join-tokens.js';
import { createCandidateProof } from '../commands/node-psks.js';
import { keepStandingFacts } from '../commands/standing-facts.js';
import { agentContext } from '../commands/system.js';
import type { AgentEvent } from '../domain/agents/facts.js';
import type { Config } from './config/config.js';
import { compilerVersion } from '../kernel/release.js';
import { startNodeCleanup, type NodeCleanup } from '../delivery/last-good.js';
import { shutdownMs } from '../kernel/closers.js';
import { joinTokenIn } from '../kernel/ids.js';
import { logsWarning } from '../kernel/logger.js';
import { openDiagnostics, type DiagnosticsStore } from '../reports/diagnostics.js';
import { createCarriers } from '../reports/history/carriers.js';
import { watchCredentials } from './credentials.js';
import { standingFactMetrics, type Measured } from './metrics.js';
import { openReports, type Known, type ReportsService } from '../reports/reports.js';
import { openSharedHellos, type SharedHellos } from '../instance/shared-hellos.js';
import { createAgentTransport } from '../transport/agent/agent-transport.js';
import { startListener } from '../transport/listener/listener.js';
import type { Core } from './core.js';
import { cannotListen } from './installation/installation.js';

export interface Agents {
  readonly reports: ReportsService;
  readonly membership: Membership;
  readonly claims: CommandClaims;
  readonly diagnostics: DiagnosticsStore;
  /** The address that agents connect to: `host:port`. */
  readonly address: string;
  readonly measured: readonly Measured[];
}

/** Listening when it resolves. @param known see `ReportsDeps` @throws ServiceError `unavailable`, StartError */
export async function createAgents(core: Core, config: Config, known: Known = []): Promise<Agents> {
  const { clock, ids, logger, closers, instanceId, eventStore, readStore, projections, delivery, queries } = core;
  const { clocks, health, fleet, readOnly, accountsView } = core;
  const isShared = config.mongoUrl !== undefined;
  const deletionTime = (): number | undefined => clocks.deletionTime(projections.newestAt());
  const reports = await openReports({
    readStore,
    instanceId,
    clock,
    logger,
    deletionTime,
    // With a read store in the data folder, there are no other instances.
    liveInstances: isShared
      ? async () => (await liveInstances(readStore)).map(({ instance_id }) => instance_id)
      : undefined,
    known: [...known].filter(([nodeId]) => queries.node(nodeId) !== undefined),
    isGone: (nodeId) => core.committed.upToDate() && queries.node(nodeId) === undefined,
    carriers: createCarriers(queries),
    recordsHistory: config.history,
  });
  closers.add('reports', reports);
  const claims = await openCommandClaims({
    readStore,
    clock,
    logger,
    deletionTime,
    queued: () => [...queries.nodeIds()].map((id) => [id, queries.node(id)?.commands ?? []] as const),
  });
  closers.add('command claims', claims);
  const diagnostics = await openDiagnostics({
    readStore,
    clock,
    logger,
    deletionTime,
    exists: (nodeId) => delivery.node(nodeId) !== undefined,
    agentVersion: (nodeId) => core.agentFacts.of(nodeId)?.agent_version ?? null,
    asked: (nodeId) => claims.asked(delivery.node(nodeId)?.commands ?? []),
    answered: claims.answered,
  });
  closers.add('diagnostics', diagnostics);
  closers.add('reports of deleted nodes', forgetDeletedNodes(core, [reports, diagnostics]));
  const sharedHellos =
    isShared && config.agents.reality !== undefined
      ? await openSharedHellos({
          readStore,
          logger,
          away: () => health.away('read store') !== undefined,
          deletionTime,
        })
      : undefined;
  if (sharedHellos !== undefined) closers.add('shared hellos', sharedHellos);
  const transport = await openTransport(core, config.agents, { reports, claims, diagnostics, sharedHellos });
  const standingFacts = keepStandingFacts(
    {
      eventStore,
      leases: readStore.leases,
      instanceId,
      clock: clocks.shared,
      ids,
      logger,
      facts: core.agentFacts,
      nodeIds: queries.nodeIds,
      holderOf: (nodeId) => reports.presence(nodeId)?.instance_id,
    },
    readOnly,
  );
  closers.add('standing facts', standingFacts);
  const credentials = watchCredentials({ fleet: queries, gateway: fleet, logger, now: clocks.now, readOnly });
  closers.add('credentials', credentials);
  const membership = await joinCluster({
    readStore,
    instanceId,
    clock,
    logger,
    compilerVersion,
    revision: queries.revision,
    accounts: () => accountsView.accounts.revision.value,
    onTokensEnded: accountsView.onTokensEnded,
    onRevoked: delivery.onRevoked,
    onSessionOpened: (listener) => onSessionOpened(core, ({ instance_id }, at) => listener(instance_id, at)),
    sessionsEnded: transport.sessionsEnded,
    activity: reports.activity,
  });
  closers.add('instance lease', membership);
  return {
    reports,
    membership,
    claims,
    diagnostics,
    address: transport.address,
    measured: [
      transport,
      diagnostics,
      { metrics: reports.trafficMetrics },
      { metrics: () => standingFactMetrics(standingFacts) },
      credentials,
    ],
  };
}

type Transport = Awaited<ReturnType<typeof createAgentTransport>>;

/** Listening when it resolves. @throws StartError */
async function openTransport(
  core: Core,
  options: Config['agents'],
  parts: Pick<Agents, 'reports' | 'claims' | 'diagnostics'> & { readonly sharedHellos: SharedHellos | undefined },
): Promise<Transport> {
  const { clock, clocks, delivery, fleet, health, agentFacts } = core;
  const { reports, claims, diagnostics, sharedHellos } = parts;
  const transport = await createAgentTransport(
    {
      delivery,
      telemetry: reports,
      facts: core.facts,
      keyring: core.keyring,
      clock: clocks.shared,
      logger: core.logger,
      sessionLog: core.sessionLog,
      refusals: core.refusals,
      instanceId: core.instanceId,
      serviceKeys: core.serviceKeys,
      proveCandidate: createCandidateProof({ gateway: fleet, clock }),
      listen: (listening, accept) =>
        startListener({ ...listening, reality: options.reality, sharedHellos }, accept).catch(
          cannotListen('SVC_REALITY_LISTEN_ADDR', options.listen),
        ),
      async reportAddress(nodeId, public_ipv4, public_ipv6) {
        const command = { type: 'ReportNodeAddress', id: nodeId, public_ipv4, public_ipv6 } as const;
        await fleet.execute(command, agentContext(nodeId, 'hello'), () => undefined);
      },
      join: createJoin({
        gateway: fleet,
        keyring: core.keyring,
        serviceKeys: core.serviceKeys,
        clock,
        ids: core.ids,
        eventStore: core.eventStore,
        // The fact of a session that has just begun is on its way to the log.
        hasConnected: (nodeId) => agentFacts.of(nodeId).connected_once || reports.presence(nodeId) !== undefined,
        holdsFacts: agentFacts.holds,
      }),
      storesAway: () => health.problems().length + clocks.problems().length > 0,
      hasCommands: (nodeId) =>
        (delivery.node(nodeId)?.commands ?? []).some(({ expires_at }) => Date.parse(expires_at) > clock.now()),
      claimCommands: (nodeId) => claims.claim(nodeId, delivery.node(nodeId)?.commands ?? []),
      diagnostics,
    },
    options,
  );
  core.closers.add('agent transport', { close: () => transport.close(shutdownMs) });
  onSessionOpened(core, ({ node_id, session_id, instance_id }, at) =>
    transport.noteSessionOpened(node_id, session_id, instance_id, at),
  );
  return transport;
}

type SessionOpened = Extract<AgentEvent, { readonly type: 'AgentSessionOpened' }>['data'];

/** Calls back for each session that any instance opens. @param listener with the time, RFC 3339 */
function onSessionOpened({ agentFacts }: Core, listener: (session: SessionOpened, at: string) => void): void {
  agentFacts.onFact(({ fact, at }) => {
    // Rewritten facts belong to sessions that were opened long ago.
    if (fact.type === 'AgentSessionOpened' && fact.data.again_at === undefined) listener(fact.data, at);
  });
}

/**
 * Deletes the reports of deleted nodes, and tries again while the read store is away. The agent transport ends their
 * sessions by itself. @internal exported for tests
 */
export function forgetDeletedNodes(
  { committed, delivery, logger }: Pick<Core, 'committed' | 'delivery' | 'logger'>,
  kept: readonly Pick<ReportsService, 'forget'>[],
): NodeCleanup {
  const cleanup = startNodeCleanup({
    mayRemove: committed.upToDate,
    isDeleted: (nodeId) => delivery.node(nodeId) === undefined,
    async remove(nodeId) {
      await Promise.all(kept.map((one) => one.forget([nodeId])));
    },
    onError: (node_id, error) =>
      logsWarning(logger, 'the reports of a deleted node could not be deleted', { node_id })(error),
  });
  delivery.onRevoked((nodeId) => {
    if (joinTokenIn(nodeId) === undefined) cleanup.add(nodeId);
  });
  return cleanup;
}
