/**
 * The core of an instance: the installation, the parts that follow the log, the gateways that write to it, and
 * delivery. Serves nobody: `agents.ts` and `rest.ts` build on it. See `docs/architecture.md`.
 */
import { randomUUID } from 'node:crypto';
import { accountsAggregate, fleetAggregate } from '../commands/aggregate.js';
import { createFactRecorder, setRetentions } from '../commands/facts.js';
import { createGateway } from '../commands/gateway.js';
import { agentContext } from '../commands/system.js';
import type { Config } from './config/config.js';
import { createDelivery } from '../delivery/delivery.js';
import { createBudgetedLogger } from '../kernel/budgeted-logger.js';
import { systemClock, type Clock } from '../kernel/clock.js';
import type { Closers } from '../kernel/closers.js';
import { streams } from '../kernel/event.js';
import { watchForeignEvents } from '../storage/foreign-events.js';
import { randomIds, type Ids } from '../kernel/ids.js';
import { limits } from '../kernel/limits.js';
import type { Logger } from '../kernel/logger.js';
import { createSampledLog } from '../kernel/sampled-log.js';
import { measureAppends } from '../instance/append-metrics.js';
import { createFeed } from '../feed/feed.js';
import { accountNames, fleetNames } from '../feed/names.js';
import { watchStores } from '../instance/store-health.js';
import { createHistory, type HistoryOptions } from '../projections/history/history.js';
import { openAccounts, type CommittedAccounts } from '../projections/accounts.js';
import { openCommittedFleet, type CommittedFleet } from '../projections/fleet/committed-fleet.js';
import { fleetQueries } from '../projections/fleet/fleet-queries.js';
import { followInMemory } from '../projections/log-follower.js';
import { startProjections } from '../projections/projections.js';
import { openAgentFacts } from '../reports/facts.js';
import { createPasswordHasher, type PasswordHasher } from '../security/passwords.js';
import { createServiceKeys } from '../security/service-keys.js';
import { createTokens } from '../security/tokens.js';
import { openStatusLedger } from '../status/ledger.js';
import { createCommandMetrics } from './command-metrics.js';
import { raiseCompilerVersion, whenWritable } from './first-commands.js';
import { ensureFirstAdmin } from './first-admin.js';
import { createFollowers } from '../projections/followers.js';
import { damagedLog, openInstallation, type Installation, type InstallationDeps } from './installation/installation.js';
import { remedyFor, watchReadStore } from './installation/read-store-binding.js';
import { foldSigningKey } from './installation/signing-key.js';
import { missingHead, recordHeads, recordHeadsDaily, type HeadOf } from './installation/log-heads.js';

export type Core = Awaited<ReturnType<typeof createCore>>;

export interface CoreOptions {
  readonly config: Config;
  readonly logger: Logger;
  readonly closers: Closers;
  /** Called with a sentence when this process must end at once: its stores are no longer the ones it opened. */
  mustEnd(sentence: string): void;
  /** Called when the read store has been emptied: this instance must restart. */
  onEmptied(): void;
  /** See `StoreSettings`. */
  onWaiting(store: string, reason: string | undefined): void;
  /** For tests. */
  readonly replaced?: Replaced;
}

/** Parts that a test replaces. */
export interface Replaced extends Pick<InstallationDeps, 'openStores'> {
  readonly clock?: Clock;
  readonly hasher?: PasswordHasher;
  readonly history?: Partial<HistoryOptions>;
}

/** Resolves when it holds the log and has made the writes of a start. @throws StartError, ServiceError `unavailable` */
export async function createCore({ config, logger, closers, mustEnd, ...options }: CoreOptions) {
  const { replaced = {} } = options;
  const [clock, ids] = [replaced.clock ?? systemClock, randomIds];
  const logs = openLogs(clock, logger, closers);
  const { openStores } = replaced;
  const opening = { clock, ids, logger, closers, onTakenOver: mustEnd, onWaiting: options.onWaiting, openStores };
  const installation = await openInstallation(config, opening);
  const { readStore, keyring, logChain, clocks, identity } = installation;
  const watchedLog = watchForeignEvents(installation.eventStore, logger);
  const appends = measureAppends(watchedLog.eventStore, clock);
  const { eventStore } = appends;

  const opened = { ...installation, ...logs, eventStore, clock, ids, logger, closers };
  const folds = await openFolds(opened, config, mustEnd);
  const { projections, committed, accountsView, agentFacts, followers, signingKey } = folds;

  // Commands.
  const readOnly = (): string | undefined => followers.readOnlyReason() ?? clocks.problems()[0];
  const base = { ...opened, ...folds };
  const gateways = openGateways({ ...base, readOnly });
  const { fleet } = gateways;
  const history = createHistory({ eventStore, logChain, logger, ...replaced.history });
  const serviceKeys = createServiceKeys({
    firstPrivate: identity.staticPrivate,
    keyring,
    served: () => committed.fleet().singletons.identity.value,
  });
  const delivery = await createDelivery({
    ...base,
    async raiseGeneration(nodeId, reported) {
      const command = { type: 'RaiseNodeGeneration', id: nodeId, reported } as const;
      await fleet.execute(command, agentContext(nodeId, 'config request'), () => undefined);
    },
    recordFact: folds.facts.agent,
    nodeFacts: agentFacts.of,
    compileEarlier: history.compileEarlier,
  });
  closers.add('delivery', delivery);
  const inMemory = followInMemory({
    eventStore,
    logger,
    folds: [committed, agentFacts, folds.statusLedger, accountsView, signingKey],
  });
  closers.add('log follower', inMemory);
  await followers.caughtUp(logger);
  const headOf = headsIn({ signingKey, committed, accountsView });
  const damage = followers.damage() ?? (await missingHead(eventStore, headOf));
  if (damage !== undefined) throw damagedLog(damage);
  // Created after the folds, because it starts with their names.
  const feed = createFeed({
    eventStore,
    projections,
    committed: () => [fleetNames(committed.fleet()), accountNames(accountsView.accounts)],
    installationId: identity.installationId,
    answered: () => Math.max(committed.position(), accountsView.position()),
    clock,
    logger,
  });
  closers.add('event feed', feed);

  const hasher = closers.add('password hasher', replaced.hasher ?? createPasswordHasher());
  await writeFirst({ ...base, ...gateways, headOf, hasher, readOnly }, config);
  closers.add('read store watch', await watchReadStore(readStore, options.onEmptied));
  const stores = { 'event store': eventStore, 'read store': readStore };
  const health = closers.add('store health', await watchStores(stores, logger));

  return {
    ...base,
    ...gateways,
    instanceId: randomUUID(),
    appends,
    foreignEvents: watchedLog.foreign,
    serviceKeys,
    queries: fleetQueries(committed, clock),
    feed,
    delivery,
    hasher,
    health,
    /** Why nothing may be written now; undefined if writing is allowed. */
    readOnly,
    /** To be closed before REST, so that no request waits for a long fold. */
    history,
  };
}

interface Opened extends Installation {
  readonly clock: Clock;
  readonly ids: Ids;
  readonly logger: Logger;
  readonly closers: Closers;
}

/** The parts that follow the log, before they do. */
async function openFolds(opened: Opened, { tokenTtlSeconds, dataDir }: Config, mustEnd: CoreOptions['mustEnd']) {
  const { eventStore, readStore, keyring, logChain, clocks, identity, clock, ids, logger, closers } = opened;
  const facts = createFactRecorder({ eventStore, clock: clocks.shared, ids, logger });
  const accountsView = closers.add('accounts', openAccounts(eventStore, logChain, logger));
  const tokens = createTokens({ seed: identity.signingSeed, ttlSeconds: tokenTtlSeconds, clock });
  const signingKey = foldSigningKey({ keyring, logChain, tokens, at: identity.at, logger });
  const projections = await startProjections({
    eventStore,
    readStore,
    logger,
    deletionTime: clocks.deletionTime,
    onAnotherLog: (found) => mustEnd(`The service ends: ${found}. ${remedyFor(dataDir)}`),
  });
  closers.add('projections', projections);
  closers.add('facts', {
    async close() {
      await facts.close();
      // The read models must hold the last writes, such as a sign-in, before they stop.
      const head = await eventStore.headPosition().catch(() => undefined);
      if (head !== undefined) await projections.reached(head, limits.rest.projectionWaitMs);
    },
  });
  const committed = closers.add('committed fleet', await openCommittedFleet({ eventStore, logger, logChain }));
  const sealing = logChain;
  const agentFacts = closers.add('agent facts', await openAgentFacts({ eventStore, sealing, logger }));
  const statusLedger = closers.add('status ledger', await openStatusLedger({ eventStore, sealing, logger }));
  const followed = { committed, accounts: accountsView, agentFacts };
  const followers = createFollowers({ eventStore, ...followed, projections, logChain, clock });
  return { facts, accountsView, tokens, signingKey, projections, committed, agentFacts, statusLedger, followers };
}

interface GatewayParts extends Opened {
  readonly committed: CommittedFleet;
  readonly accountsView: CommittedAccounts;
  readOnly(): string | undefined;
}

/** The gateways that all commands go through, counted. */
function openGateways(parts: GatewayParts) {
  const { committed, accountsView, closers } = parts;
  const options = { ...parts, sharedTime: parts.clocks.now };
  const commandMetrics = createCommandMetrics(parts.clock);
  const fleet = commandMetrics.counted(
    createGateway(fleetAggregate, { ...committed, state: committed.fleet }, options),
  );
  closers.add('fleet gateway', fleet);
  const accounts = commandMetrics.counted(
    createGateway(accountsAggregate, { ...accountsView, state: () => accountsView.accounts }, options),
  );
  closers.add('accounts gateway', accounts);
  return { fleet, accounts, commandMetrics };
}

function openLogs(clock: Clock, logger: Logger, closers: Closers) {
  const budgeted = (what: string, source: string) =>
    closers.add(`log of ${what}`, createBudgetedLogger({ logger, clock, what, source }));
  const write: Logger['warn'] = (fields, message) => logger.warn(fields, message);
  return {
    /** The log of events that strangers cause, sampled so that no flood fills a disk. */
    refusals: closers.add('refusals', createSampledLog({ clock, write })),
    requestLog: budgeted('requests', 'address'),
    sessionLog: budgeted('changes of sessions', 'node_id'),
  };
}

/** The heads of the log chains as the folds hold them. */
function headsIn({
  signingKey,
  committed,
  accountsView,
}: Pick<Core, 'signingKey' | 'committed' | 'accountsView'>): HeadOf {
  return (stream) => {
    if (stream === streams.service) {
      const { revision, logChain: chain } = signingKey.state();
      return { revision, chain };
    }
    const { revision, logChain: chain } = stream === streams.fleet ? committed.fleet() : accountsView.accounts;
    return { revision: revision.value, chain: chain.value };
  };
}

type FirstWriters = Pick<Core, 'eventStore' | 'logChain' | 'clock' | 'ids' | 'logger' | 'closers' | 'readOnly'> &
  Pick<Core, 'fleet' | 'accounts' | 'accountsView' | 'keyring' | 'hasher'> & { readonly headOf: HeadOf };

/** Writes the events of a start, at once or as soon as the instance may write. */
async function writeFirst(writers: FirstWriters, { adminPassword: password, dataDir }: Config): Promise<void> {
  const { fleet, accounts: gateway, accountsView: view, eventStore, ids, logger, closers, readOnly } = writers;
  const firstCommands = async (): Promise<void> => {
    await setRetentions(eventStore);
    await raiseCompilerVersion(fleet, ids, logger);
    await ensureFirstAdmin({ ...writers, gateway, view, password, dataDir });
    await recordHeads(writers);
  };
  closers.add('first commands', await whenWritable(readOnly, firstCommands, logger));
  closers.add('log heads', recordHeadsDaily(writers));
}
