/**
 * REST of the service as the app composes it, on embedded stores in a temporary folder, called through `inject`. Not
 * here: agents that connect (an agent of a test holds its place at delivery and its presence itself) and Argon2 (too
 * slow for hundreds of sign-ins). A test forces a state that it cannot reach otherwise with `vi.spyOn` on `deps` or
 * `followers`.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { LightMyRequestResponse } from 'fastify';
import { userField } from '../../src/accounts/fields.js';
import { createAgents } from '../../src/app/agents.js';
import { readConfig, type Config } from '../../src/app/config/config.js';
import { createCore, type Core, type Replaced } from '../../src/app/core.js';
import type { Followers } from '../../src/projections/followers.js';
import { createRest, createRestDeps, type RestOptions } from '../../src/app/rest.js';
import { startBackups } from '../../src/app/backups.js';
import { startWebhooks, type WebhookCore } from '../../src/app/webhooks.js';
import { systemContext } from '../../src/commands/system.js';
import type { SnapshotPush } from '../../src/delivery/port.js';
import type { Role } from '../../src/domain/accounts/user.js';
import type { CommandClaims } from '../../src/instance/command-claims.js';
import { systemClock, timestamp, type Clock } from '../../src/kernel/clock.js';
import { createClosers } from '../../src/kernel/closers.js';
import { allStreams, holdsFacts, streams, type RecordedEvent } from '../../src/kernel/event.js';
import type { Logger } from '../../src/kernel/logger.js';
import type { Diagnostics } from '../../src/reports/port.js';
import type { ReportsService } from '../../src/reports/reports.js';
import type { PasswordHasher } from '../../src/security/passwords.js';
import { openStores, type OpenStores } from '../../src/storage/open-stores.js';
import type { ReadStore } from '../../src/storage/read-store.js';
import { createDeployPlaces, type WaitingBounds } from '../../src/transport/rest/checks/waiting-places.js';
import type { RestApp, RestDeps } from '../../src/transport/rest/deps.js';
import { readAll } from '../storage/contract/appending.js';
import { fleetGatewayOf, type FleetGateway } from './command-fixture.js';
import { openSession, until } from './delivery-fixture.js';
import { openApiAnswers, type OpenApiAnswers } from './openapi-answers.js';
import { projectRoot } from './project-root.js';
import { append, sessionOpened } from './read-side.js';
import { heartbeatFactsOf, type Reported } from './reported-tables.js';

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

export type LogLine = { readonly level: string; readonly message: string; readonly [field: string]: unknown };

/** An agent with a live session. */
export interface ConnectedAgent {
  /** Receives the next snapshot that is pushed to it. */
  receive(): Promise<SnapshotPush>;
  apply(push: SnapshotPush): Promise<void>;
  reject(push: SnapshotPush): Promise<void>;
  /** A heartbeat of this session, stored when it returns. */
  report(facts: Partial<Reported>): Promise<void>;
  disconnect(): Promise<void>;
}

export interface RestFixture {
  readonly app: RestApp;
  readonly deps: RestDeps;
  /** Where agents connect: `host:port`. */
  readonly agents: string;
  /** Holds all files of the stores. */
  readonly folder: string;
  readonly stores: Pick<Core, 'eventStore' | 'readStore' | 'statusLedger'>;
  /** Runs commands that no request stands for. */
  readonly gateway: FleetGateway;
  readonly reports: ReportsService;
  readonly claims: CommandClaims;
  /** Takes what agents find when they check themselves. */
  readonly diagnostics: Diagnostics;
  /** What commands wait for before they answer. */
  readonly followers: Followers;
  /** Bytes of answers that clients have not taken. */
  waitingBytes(): number;
  /** `svc_webhook_lag_seconds`. */
  webhookLagSeconds(): number;
  /** Log lines, as one text each. */
  readonly logged: string[];
  /** The same, with the fields of each. */
  logLines(): readonly LogLine[];
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
  /** The position of the last event of a command. Facts do not count: they are written by themselves, and later. */
  position(): Promise<number>;
  close(): Promise<void>;
}

/** No resource has it. */
export const unknownId = '00000000-0000-4000-8000-000000000000';
/** The password of every user. */
export const password = 'correct horse battery';
/** The body of a REALITY credential over a key, with the first of its names as its target. */
export const realityOver = (
  x25519_credential_id: string,
  name: string,
  names: readonly string[],
  more: object = {},
) => ({
  name,
  key_type: 'reality',
  x25519_credential_id,
  server_names: names,
  short_ids: ['ab'],
  target_host: names[0],
  target_port: 443,
  ...more,
});
/** How long a GET waits for a position that does not come; the service itself waits two seconds. */
const reachedWithinMs = 200;
/** The built programs of the worker threads: they start faster than through a compiler. */
const compiled = (program: string): URL => pathToFileURL(join(projectRoot, `dist/test-programs/src/${program}.js`));
const workerEntry = compiled('projections/history/worker');
const backupThread = compiled('backups/archive-thread');
/** Of instances that share stores; the URL is never opened. */
const sharedSettings = {
  masterKey: { inline: Buffer.alloc(32, 7).toString('base64'), file: undefined },
  mongoUrl: 'mongodb://shared/svc',
};
const offlineAfterMs = 60_000;
/** Reports of nodes whose session does not matter. */
const noSession = { session_id: '', instance_id: 'one', pushed_generation: 0, pushed_at: null };
/** How long a start may take on a busy machine. */
const patienceMs = 20_000;

interface RestChoices
  extends
    Partial<Pick<Config, 'tokenTtlSeconds' | 'webhookAllow' | 'publicUrl' | 'serveAgent' | 'mail'>>,
    Partial<Pick<Config['http'], 'corsOrigins' | 'trustedProxies' | 'metricsToken'>>,
    Pick<Replaced, 'hasher' | 'history'> {
  readonly waitingDeploys?: WaitingBounds;
  /** Stores in memory that several instances share; none of them closes the stores. */
  readonly shared?: Pick<OpenStores, 'eventStore' | 'readStore'>;
  /** What stands before the read store, as an outage does. */
  readonly before?: (readStore: ReadStore) => ReadStore;
}

/** Looks no name up. */
const noNames = ((_host: string, _options: object, callback: (error: Error, addresses: []) => void) =>
  callback(Object.assign(new Error('no name server'), { code: 'ENOTFOUND' }), [])) as unknown as WebhookCore['lookup'];

export async function startRest(
  {
    waitingDeploys,
    hasher = plainPasswords,
    history,
    before = (readStore) => readStore,
    shared,
    ...settings
  }: RestChoices = {},
  clock: Clock = systemClock,
): Promise<RestFixture> {
  const { logger, logged } = notedLogger();
  const closers = createClosers(logger);
  const folder = mkdtempSync(join(tmpdir(), 'rest-'));
  closers.add('folder', { close: () => rmSync(folder, { recursive: true, force: true }) });
  const defaults = readConfig({
    SVC_DATA_DIR: folder,
    SVC_HTTP_LISTEN_ADDR: '127.0.0.1:0',
    SVC_REALITY_LISTEN_ADDR: '127.0.0.1:0',
    SVC_ADMIN_PASSWORD: password,
  });
  const config: Config = {
    ...defaults,
    ...settings,
    ...(shared === undefined ? {} : sharedSettings),
    http: { ...defaults.http, ...settings },
  };
  const core = await createCore({
    config,
    logger,
    closers,
    mustEnd: fail,
    onEmptied: () => fail('the read store was emptied'),
    onWaiting: () => undefined,
    replaced: {
      clock,
      hasher,
      history: { entry: workerEntry, ...history },
      async openStores(store) {
        const opened = shared === undefined ? await openStores(store) : { ...shared, close: async () => undefined };
        return { ...opened, readStore: before(opened.readStore) };
      },
    },
  });
  const { accounts, accountsView, committed, delivery, eventStore, fleet, followers, ids, instanceId } = core;
  const { keyring, projections, tokens: issued } = core;
  const gateway = fleetGatewayOf(fleet, committed);
  const agents = await createAgents(core, config);
  const { claims, diagnostics, reports } = agents;
  // No test asks a name server.
  const webhooks = await startWebhooks({ ...core, lookup: noNames }, config);
  closers.add('webhooks', webhooks.service);
  const backups = await startBackups(core, config, backupThread);
  closers.add('backups', backups.service);
  const options: RestOptions = { config, tls: undefined, ofProcess: { metrics: () => [] } };
  const made = await createRestDeps(core, { agents, webhooks, backups }, options);
  const deps: RestDeps = {
    ...made,
    held: {
      position: followers.position,
      reached: (position, timeoutMs) => followers.reached(position, Math.min(timeoutMs, reachedWithinMs)),
    },
    ...(waitingDeploys === undefined ? {} : { waitingDeploys: createDeployPlaces(waitingDeploys) }),
  };
  const app = await createRest(deps, agents.address, options, closers);
  closers.add('history', core.history);

  /** What the process of each node's agent runs; it outlives its sessions. */
  const runs = new Map<string, number>();
  const processOf = (nodeId: string) => ({ process_id: '', runs_generation: runs.get(nodeId) ?? null });
  async function createUser(role: Role): Promise<void> {
    const id = ids.next();
    const sealed = keyring.seal(Buffer.from(password), userField(id, 'password'));
    const user = { id, username: role, role, display_name: null, email: null, password: sealed };
    const command = { type: 'CreateUser', ...user, onlyIfFirst: false } as const;
    await accounts.execute(command, systemContext('test'), () => undefined);
  }
  // The start has created the admin.
  const created = [...accountsView.accounts.users.values()].map(({ username }) => username);
  await Promise.all((['operator', 'viewer'] as const).filter((role) => !created.includes(role)).map(createUser));
  const tokens = new Map<Role, string>();
  for (const { id, role, token_version: ver } of accountsView.accounts.users.values()) {
    tokens.set(role, issued.issue({ sub: id, role, ver }).token);
  }
  await until(() => deps.readiness().ready, 'the service is ready');
  const log: RestFixture['log'] = (stream = streams.fleet) => readAll(eventStore, stream);

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
    if (undescribed !== true) (await describedAnswers(app, config.http)).check(method, url, answer);
    return answer;
  }

  return {
    app,
    deps,
    agents: agents.address,
    folder,
    stores: core,
    gateway,
    reports,
    claims,
    diagnostics,
    followers,
    waitingBytes: made.answers.waitingBytes,
    webhookLagSeconds: webhooks.service.lagSeconds,
    logged,
    logLines: () => logged.map(lineOf),
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
      const presence = { session_id: sessionId, instance_id: instanceId, pushed_generation: 0, pushed_at: null };
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
        async report(facts) {
          reports.alive(
            nodeId,
            presence,
            offlineAfterMs,
            heartbeatFactsOf({ ...quiet, ...processOf(nodeId), ...facts }),
          );
          await reports.flush();
        },
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
    log,
    async position() {
      const logs = await Promise.all(allStreams.filter((stream) => !holdsFacts(stream)).map(log));
      return Math.max(...logs.map((events) => events.at(-1)?.position ?? 0));
    },
    close: () => closers.closeAll(),
  };
}

/** What the documents of fixtures say, by the only option that they differ in: making one takes longer than most tests. */
const described = new Map<boolean, Promise<OpenApiAnswers>>();

function describedAnswers(app: RestApp, { metricsToken }: Config['http']): Promise<OpenApiAnswers> {
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

function fail(sentence: string): never {
  throw new Error(sentence);
}

/** What `notedLogger` made a text of. */
function lineOf(text: string): LogLine {
  const [, level = '', message = '', fields = '{}'] = /^(\w+) ([^{]*) (\{.*\})$/.exec(text) ?? [];
  return { level, message, ...JSON.parse(fields) };
}

function notedLogger(): { readonly logger: Logger; readonly logged: string[] } {
  const logged: string[] = [];
  const note = (level: string) => (fields: object, message: string) =>
    void logged.push(`${level} ${message} ${JSON.stringify(fields)}`);
  return { logger: { debug: note('debug'), info: note('info'), warn: note('warn'), error: note('error') }, logged };
}
