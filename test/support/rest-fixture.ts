/**
 * REST over the real service on embedded stores in a temporary folder: commands, accounts, read models, delivery and
 * telemetry, called through `inject`. Not here: the agent transport (an agent of a test holds its place at delivery and
 * its presence itself), Argon2 (too slow for hundreds of sign-ins), and what watches the stores. A test forces a state
 * that it cannot reach otherwise with `vi.spyOn` on `deps` or `followers`.
 */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { LightMyRequestResponse } from 'fastify';
import type { Role } from '../../src/domain/accounts/user.js';
import { createCommandHandlers } from '../../src/app/command-handlers.js';
import { systemContext } from '../../src/commands/system.js';
import { createDelivery } from '../../src/delivery/delivery.js';
import type { SnapshotPush } from '../../src/delivery/port.js';
import { userField } from '../../src/accounts/fields.js';
import { compilerVersion } from '../../src/domain/compile/version.js';
import { createFeed } from '../../src/feed/feed.js';
import { accountNames, fleetNames } from '../../src/feed/names.js';
import { keepRecent } from '../../src/feed/recent.js';
import { createHistory } from '../../src/projections/history/history.js';
import type { HistoryOptions } from '../../src/projections/history/history.js';
import { systemClock, timestamp } from '../../src/kernel/clock.js';
import type { Clock } from '../../src/kernel/clock.js';
import { createClosers } from '../../src/kernel/closers.js';
import { formatHostPort } from '../../src/kernel/host-port.js';
import type { RecordedEvent } from '../../src/kernel/event.js';
import { agentStreams, streams } from '../../src/kernel/event.js';
import { randomIds } from '../../src/kernel/ids.js';
import type { Logger } from '../../src/kernel/logger.js';
import { createBudgetedLogger } from '../../src/kernel/budgeted-logger.js';
import { createSampledLog } from '../../src/kernel/sampled-log.js';
import { openCommittedFleet } from '../../src/projections/fleet/committed-fleet.js';
import { fleetQueries } from '../../src/projections/fleet/fleet-queries.js';
import { openAgentFacts } from '../../src/reports/facts.js';
import { followInMemory } from '../../src/projections/log-follower.js';
import { startProjections } from '../../src/projections/projections.js';
import type { PasswordHasher } from '../../src/security/passwords.js';
import { generateX25519 } from '../../src/kernel/crypto/crypto.js';
import type { WebhookCore } from '../../src/app/webhooks.js';
import { startWebhooks } from '../../src/app/webhooks.js';
import { createFollowers } from '../../src/app/followers.js';
import type { Followers } from '../../src/app/followers.js';
import type { CommandClaims } from '../../src/instance/command-claims.js';
import { openCommandClaims } from '../../src/instance/command-claims.js';
import { keepCounts } from '../../src/reports/counts.js';
import { createCarriers } from '../../src/reports/history/carriers.js';
import { openReports } from '../../src/reports/reports.js';
import type { ReportsService } from '../../src/reports/reports.js';
import { buildRest } from '../../src/transport/rest/build.js';
import type { RestApp, RestDeps, RestOptions } from '../../src/transport/rest/build.js';
import { createRequestCounts } from '../../src/transport/rest/server/request-records.js';
import { createAnswersUnderWay } from '../../src/transport/rest/server/answers-under-way.js';
import { createRestSockets } from '../../src/transport/rest/server/sockets.js';
import { createDeployPlaces, createStreamPlaces } from '../../src/transport/rest/checks/waiting-places.js';
import type { WaitingBounds } from '../../src/transport/rest/checks/waiting-places.js';
import type { ReadStore } from '../../src/storage/read-store.js';
import { startAccounts } from './accounts-fixture.js';
import { fleetGatewayOn, openCommandFixture } from './command-fixture.js';
import type { FleetGateway } from './command-fixture.js';
import { openSession, until } from './delivery-fixture.js';
import type { OpenApiAnswers } from './openapi-answers.js';
import { openApiAnswers } from './openapi-answers.js';
import { projectRoot } from './project-root.js';
import { append, sessionOpened } from './read-side.js';
import { heartbeatFactsOf } from './reported-tables.js';
import type { Reported } from './reported-tables.js';
import type { TemporaryStores } from './temporary-stores.js';

export interface Call {
  readonly role?: Role | 'nobody';
  /** Sent as JSON; a string or bytes as they are. */
  readonly body?: unknown;
  readonly headers?: Record<string, string>;
  /** The test makes the route answer as it never does by itself. */
  readonly undescribed?: true;
}

/** Parsed JSON: tests look into it freely. */
export type JsonData = ReturnType<typeof JSON.parse>;

/** An agent with a live session. */
export interface ConnectedAgent {
  /** Receives the next snapshot that is pushed to it. */
  receive(): Promise<SnapshotPush>;
  apply(push: SnapshotPush): Promise<void>;
  reject(push: SnapshotPush): Promise<void>;
  disconnect(): Promise<void>;
}

export interface RestFixture {
  readonly app: RestApp;
  readonly deps: RestDeps;
  /** Holds all files of the stores. */
  readonly folder: string;
  readonly stores: TemporaryStores;
  /** Runs commands that no request stands for. */
  readonly gateway: FleetGateway;
  readonly reports: ReportsService;
  readonly claims: CommandClaims;
  /** What commands wait for before they answer. */
  readonly followers: Followers;
  /** Bytes of answers that clients have not taken. */
  waitingBytes(): number;
  /** Log lines, as one text each. */
  readonly logged: string[];
  /** @throws Error when the OpenAPI document does not describe the answer */
  call(method: string, url: string, call?: Call): Promise<LightMyRequestResponse>;
  /** As `call`, for the data of a success. */
  data(method: string, url: string, call?: Call): Promise<JsonData>;
  /** An access token of the user with this name and role. */
  tokenOf(role: Role): string;
  /**
   * Opens a session of the node's agent, which has not applied anything yet.
   * @param heartbeat whether it sends its first heartbeat
   */
  connect(nodeId: string, heartbeat?: boolean): Promise<ConnectedAgent>;
  /** A heartbeat of the node's agent, stored when it returns. */
  report(nodeId: string, facts: Partial<Reported>): Promise<void>;
  /** Metrics of the node's agent, stored when it returns: by the id of each upstream, whether it is healthy. */
  reportUpstreams(nodeId: string, healthy: Readonly<Record<string, boolean>>): Promise<void>;
  /** Events of a stream, `svc-fleet` by default. */
  log(stream?: string): Promise<readonly RecordedEvent[]>;
  /** The position of the last event that is no cursor of a webhook: those are written whenever a delivery moves. */
  position(): Promise<number>;
  close(): Promise<void>;
}

/** The password of every user. */
export const password = 'correct horse battery';
const roles = ['admin', 'operator', 'viewer'] as const;
/** How long a GET waits for a position that does not come; the service itself waits two seconds. */
const reachedWithinMs = 200;
/** The built program of the worker threads: it starts faster than through a compiler. */
const workerEntry = pathToFileURL(join(projectRoot, 'dist/test-programs/src/projections/history/worker.js'));
const offlineAfterMs = 60_000;
/** Reports of nodes whose session does not matter. */
const noSession = { session_id: '', instance_id: 'one', pushed_generation: 0, pushed_at: null };
/** How long a start may take on a busy machine. */
const patienceMs = 20_000;

interface RestChoices extends Partial<RestOptions> {
  readonly waitingDeploys?: WaitingBounds;
  /** CIDRs of `SVC_WEBHOOK_ALLOW`. */
  readonly webhookAllow?: readonly string[];
  /** Instead of `plainPasswords`. */
  readonly hasher?: PasswordHasher;
  readonly history?: Partial<HistoryOptions>;
  /** Twelve hours by default. */
  readonly tokenTtlSeconds?: number;
  /** What stands before the read store, as an outage does. */
  readonly before?: (readStore: ReadStore) => ReadStore;
}

/** Looks no name up. */
const noNames = ((_host: string, _options: object, callback: (error: Error, addresses: []) => void) =>
  callback(Object.assign(new Error('no name server'), { code: 'ENOTFOUND' }), [])) as unknown as WebhookCore['lookup'];

export async function startRest(
  {
    waitingDeploys,
    webhookAllow = [],
    hasher = plainPasswords,
    history: historyOptions,
    tokenTtlSeconds,
    before = (readStore) => readStore,
    ...options
  }: RestChoices = {},
  clock: Clock = systemClock,
): Promise<RestFixture> {
  const ids = randomIds;
  const { logger, logged } = notedLogger();
  const closers = createClosers(logger);
  const fixture = await openCommandFixture(clock);
  closers.add('stores', () => fixture.close());
  const { eventStore } = fixture.stores;
  const readStore = before(fixture.stores.readStore);

  const projections = await startProjections({ eventStore, readStore, clock, logger, deletionTime: () => undefined });
  closers.add('projections', () => projections.close());
  const refusals = createSampledLog({ clock, write: (fields, message) => logger.warn(fields, message) });
  closers.add('refusals', () => refusals.close());
  const accounts = await startAccounts(fixture, { hasher, refusals }, tokenTtlSeconds);
  closers.add('accounts', () => accounts.close());
  const { keyring, facts } = accounts;
  const { logChain } = fixture.options;
  const history = createHistory({ eventStore, logChain, logger, entry: workerEntry, ...historyOptions });
  closers.add('history', () => history.close());
  const committed = await openCommittedFleet({ eventStore, logger, logChain });
  closers.add('committed fleet', () => committed.close());
  const agentFacts = await openAgentFacts({ eventStore, sealing: logChain, logger });
  closers.add('agent facts', () => agentFacts.close());
  const gateway = fleetGatewayOn(committed, fixture.options);
  const delivery = await createDelivery({
    committed,
    eventStore,
    readStore,
    keyring,
    clock,
    logger,
    async raiseGeneration(nodeId, reported) {
      await gateway.run({ type: 'RaiseNodeGeneration', id: nodeId, reported });
    },
    recordFact: facts.agent,
    nodeFacts: agentFacts.of,
    compileEarlier: history.compileEarlier,
  });
  closers.add('delivery', () => delivery.close());
  const follower = followInMemory({ eventStore, logger, folds: [committed, agentFacts] });
  closers.add('log follower', () => follower.close());
  const folds = { committed, agentFacts, accounts: accounts.view };
  const followers = createFollowers({ eventStore, ...folds, projections, logChain, clock });
  const feed = createFeed({
    eventStore,
    projections,
    committed: () => [fleetNames(committed.fleet()), accountNames(accounts.view.accounts)],
    installationId: keyring.installationId,
    answered: () => Math.max(committed.position(), accounts.view.position()),
    clock,
    logger,
  });
  closers.add('event feed', () => feed.close());
  const queries = fleetQueries(committed, clock);
  const reports = await openReports({
    readStore,
    instanceId: 'one',
    clock,
    logger,
    carriers: createCarriers(queries),
  });
  closers.add('reports', () => reports.close());
  const counts = keepCounts({
    fleet: queries,
    agentFacts,
    reports,
    clock,
    logger,
    onTold: reports.onTold,
    onFact: (listener) => agentFacts.onFact(({ fact }) => listener(fact.data.node_id)),
    onBatch: committed.onBatch,
  });
  closers.add('counts', () => counts.close());
  const claims = await openCommandClaims({
    readStore,
    clock,
    logger,
    deletionTime: () => undefined,
    queued: () => [],
  });
  closers.add('command claims', () => claims.close());

  /** What the process of each node's agent runs; it outlives its sessions. */
  const runs = new Map<string, number>();
  const processOf = (nodeId: string) => ({ process_id: '', runs_generation: runs.get(nodeId) ?? null });
  const tokens = new Map<Role, string>();
  async function createUser(role: Role): Promise<void> {
    const id = ids.next();
    const sealed = await keyring.seal(Buffer.from(password), userField(id, 'password'));
    const user = { id, username: role, role, display_name: null, email: null, password: sealed };
    const command = { type: 'CreateUser', ...user, onlyIfFirst: false } as const;
    await accounts.gateway.execute(command, systemContext('test'), () => undefined);
    const ver = accounts.view.accounts.users.get(id)?.token_version ?? '';
    tokens.set(role, accounts.tokens.issue({ sub: id, role, ver }).token);
  }
  await Promise.all(roles.map(createUser));
  await gateway.run({ type: 'RaiseCompilerVersion', version: compilerVersion });
  await until(() => followers.notReady().length === 0, 'the service is ready');

  const requestLog = createBudgetedLogger({ logger, clock, what: 'requests', source: 'address' });
  closers.add('request log', () => requestLog.close());
  const answers = createAnswersUnderWay({ refusals });
  const webhooks = await startWebhooks(
    {
      eventStore,
      readStore,
      feed,
      keyring,
      ids,
      logger,
      instanceId: 'one',
      readOnly: () => undefined,
      committed,
      fleet: gateway,
      clocks: { shared: clock },
      health: { away: () => undefined },
      // No test asks a name server.
      lookup: noNames,
    },
    webhookAllow,
    { host: '127.0.0.1', port: 0 },
  );
  closers.add('webhooks', () => webhooks.service.close());
  const deps: RestDeps = {
    commands: createCommandHandlers({
      fleet: gateway,
      committed: committed.fleet,
      accounts: accounts.gateway,
      accountHandlers: accounts.handlers,
      webhookHandlers: webhooks.handlers,
      keyring,
      servicePublic: generateX25519().publicKey,
      projections,
      audit: projections.auditTrail,
      clock,
      ids,
    }),
    projections,
    agentFacts,
    held: {
      position: followers.position,
      reached: (position, timeoutMs) => followers.reached(position, Math.min(timeoutMs, reachedWithinMs)),
    },
    fleet: queries,
    delivery,
    reports,
    counts,
    commandsDelivered: claims.delivered,
    clock,
    ids,
    logger,
    refusals,
    requestLog,
    requests: createRequestCounts(),
    sockets: createRestSockets({ trustedProxies: options.trustedProxies ?? [], refusals }),
    answers,
    waitingDeploys: createDeployPlaces(waitingDeploys),
    eventStreams: createStreamPlaces(),
    feed,
    recent: await keepRecent({ feed, projections, readStoreAway: () => false }),
    webhooks: webhooks.service,
    sessionsEnded: async () => true,
    activity: reports.activity,
    readiness: () => ({ ready: followers.notReady().length === 0, reasons: followers.notReady() }),
    commandsRefused: () => undefined,
    readStoreAway: () => false,
    metrics: async () => '# HELP up Is it up.\n# TYPE up gauge\nup 1\n',
  };
  const app = await buildRest(deps, {
    version: '0.0.0',
    corsOrigins: [],
    trustedProxies: [],
    controlEndpoint: (host) => `http://${formatHostPort({ host, port: 8_443 })}`,
    ...options,
  });
  closers.add('rest', () => app.close());

  async function call(method: string, url: string, { role = 'admin', body, headers = {}, undescribed }: Call = {}) {
    const raw = typeof body === 'string' || Buffer.isBuffer(body);
    const answer = await app.inject({
      method: method as 'GET',
      url,
      headers: {
        ...(role === 'nobody' ? {} : { authorization: `Bearer ${tokens.get(role)}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { payload: raw ? body : JSON.stringify(body) }),
    });
    if (undescribed !== true) (await describedAnswers(app, options)).check(method, url, answer);
    return answer;
  }

  return {
    app,
    deps,
    folder: fixture.stores.folder,
    stores: fixture.stores,
    gateway,
    reports,
    claims,
    followers,
    waitingBytes: answers.waitingBytes,
    logged,
    call,
    async data(method, url, given) {
      const answer = await call(method, url, given);
      const parsed = answer.json();
      if (parsed.success !== true) throw new Error(`${method} ${url}: ${answer.statusCode} ${answer.body}`);
      return parsed.data;
    },
    tokenOf: (role) => tokens.get(role) ?? '',
    async connect(nodeId, heartbeat = true) {
      const sessionId = ids.next();
      const presence = { session_id: sessionId, instance_id: 'one', pushed_generation: 0, pushed_at: null };
      const opened = { ...sessionOpened(nodeId), at: timestamp(clock.now()) };
      const { position = 0 } = await append(eventStore, opened);
      await projections.reached(position, patienceMs);
      await reports.sessionOpened(nodeId, presence, offlineAfterMs);
      const first = heartbeatFactsOf({ ...quiet, ...processOf(nodeId) });
      if (heartbeat) reports.alive(nodeId, presence, offlineAfterMs, first);
      await reports.flush();
      const session = openSession(delivery, nodeId, sessionId);
      await session.ask();
      return {
        async receive() {
          let push = session.take();
          await until(() => (push ??= session.take()) !== undefined, 'a push');
          if (push === undefined) throw new Error('nothing was pushed');
          session.nodeSession.sent(push);
          return push;
        },
        apply(push) {
          runs.set(nodeId, push.generation);
          return session.apply(push);
        },
        reject: session.reject,
        async disconnect() {
          session.nodeSession.close();
          await reports.sessionEnded(nodeId, sessionId);
        },
      };
    },
    async report(nodeId, facts) {
      reports.alive(nodeId, noSession, offlineAfterMs, heartbeatFactsOf({ ...quiet, ...processOf(nodeId), ...facts }));
      await reports.flush();
    },
    async reportUpstreams(nodeId, healthy) {
      const upstreams = Object.entries(healthy).map(([cluster, one]) => ({
        cluster,
        healthy: one,
        requests: 1,
        errors: 0,
        latency_p99_ms: 1,
      }));
      const gateway = { requests: 1, errors: 0, worker_restarts: 0, latency_p50_ms: 1, latency_p99_ms: 1, upstreams };
      reports.metrics(nodeId, { connections: null, bandwidth: null, gateway }, processOf(nodeId));
      await reports.flush();
    },
    log: (stream) => fixture.log(stream),
    async position() {
      const { webhooks: _cursors, agentsPrefix: _prefix, ...others } = streams;
      const logs = await Promise.all([...Object.values(others), ...agentStreams].map((stream) => fixture.log(stream)));
      return Math.max(...logs.map((events) => events.at(-1)?.position ?? 0));
    },
    close: () => closers.closeAll(),
  };
}

/** What the documents of fixtures say, by the only option that they differ in: making one takes longer than most tests. */
const described = new Map<boolean, Promise<OpenApiAnswers>>();

function describedAnswers(app: RestApp, { metricsToken }: Partial<RestOptions>): Promise<OpenApiAnswers> {
  const key = metricsToken !== undefined;
  const made =
    described.get(key) ?? Promise.resolve(app.inject('/openapi.json')).then((answer) => openApiAnswers(answer.json()));
  described.set(key, made);
  return made;
}

const quiet: Reported = {
  cpu_usage: 0.25,
  memory_usage: 0.5,
  uptime_seconds: 60,
  link_metrics: [],
  runtime_listeners: [],
};

/** Stands in for Argon2, whose cost belongs to the tests of `security/passwords.ts`: a password is its own hash. */
export const plainPasswords: PasswordHasher = {
  hash: async (text) => ({ kind: 'hashed', phc: text }),
  verify: async (stored, text) => (stored === text ? 'match' : 'mismatch'),
  needsRehash: () => false,
  close: () => undefined,
};

function notedLogger(): { readonly logger: Logger; readonly logged: string[] } {
  const logged: string[] = [];
  const note = (level: string) => (fields: object, message: string) =>
    void logged.push(`${level} ${message} ${JSON.stringify(fields)}`);
  return { logger: { debug: note('debug'), info: note('info'), warn: note('warn'), error: note('error') }, logged };
}
