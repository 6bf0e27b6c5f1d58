/**
 * The stores of the demo: embedded ones, those that the environment names, or the test servers of a checkout. External
 * ones must be empty, because the demo writes into them; this is checked here before anything starts.
 */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { readConfig } from '../../src/app/config/config.js';
import { systemClock } from '../../src/kernel/clock.js';
import { openStores } from '../../src/storage/open-stores.js';
import { whatIsThere } from '../../src/storage/log-archive/import-log.js';
import { CommandError, plainLogger } from '../maintenance/command-line.js';
import { allStreams } from '../../src/kernel/event.js';
import { importedProjections } from '../maintenance/installation.js';

type Variables = Readonly<Record<string, string>>;

export interface DemoStores {
  /** The variables with which the service finds them, in addition to the data folder. */
  readonly env: Variables;
  /** Their location, as text without credentials. */
  readonly text: string;
  close(): Promise<void>;
}

export interface DemoStoreOptions {
  /** Use the test servers, whatever the environment says. */
  readonly testServers: boolean;
  /** The service's data folder, which holds the embedded stores. */
  readonly dataDir: string;
  readonly env: { readonly [name: string]: string | undefined };
}

const variables = ['SVC_EVENTSTORE_URL', 'SVC_MONGODB_URL', 'SVC_MASTER_KEY', 'SVC_MASTER_KEY_FILE'] as const;

/** How long to wait for an external store. */
const giveUpMs = 15_000;

/** @throws CommandError, ConfigError, StoreSettingError, ServiceError `unavailable` */
export async function openDemoStores(options: DemoStoreOptions): Promise<DemoStores> {
  const servers = options.testServers ? await startTestServers() : undefined;
  const given = servers?.env ?? withoutEmpty(options.env);
  try {
    const stores = await namedStores(given, options.dataDir);
    return {
      ...stores,
      async close() {
        await stores.close();
        await servers?.close();
      },
    };
  } catch (error) {
    await servers?.close();
    throw error;
  }
}

async function namedStores(given: Variables, dataDir: string): Promise<DemoStores> {
  const { SVC_EVENTSTORE_URL: log, SVC_MONGODB_URL: mongo } = given;
  if (log === undefined && mongo === undefined) {
    return { env: {}, text: 'Log and read models: embedded, in a temporary folder', close: async () => undefined };
  }
  const database = mongo === undefined ? undefined : withOwnDatabase(mongo);
  const env: Variables = { ...given, ...(database === undefined ? {} : { SVC_MONGODB_URL: database }) };
  const config = readConfig({ ...env, SVC_DATA_DIR: dataDir });
  await assertEmpty(dataDir, config.eventStoreUrl, config.mongoUrl);
  const place = (name: string, url: string | undefined): string =>
    url === undefined ? 'embedded, in a temporary folder' : `${name}, ${withoutCredentials(url)}`;
  return {
    env,
    text: [
      `Log: ${place('EventStoreDB', config.eventStoreUrl)}`,
      `Read models: ${place('MongoDB', config.mongoUrl)}`,
      log === undefined
        ? 'The demo deletes what it writes, unless SVC_MONGODB_URL names a database.'
        : 'The demo does not delete what it writes.',
    ].join('\n'),
    async close() {
      if (log === undefined && database !== undefined && database !== mongo) await dropDatabase(database);
    },
  };
}

async function assertEmpty(dataDir: string, eventStoreUrl?: string, mongoUrl?: string): Promise<void> {
  const stores = await openStores({
    dataDir,
    eventStoreUrl,
    mongoUrl,
    clock: systemClock,
    logger: plainLogger,
    giveUpMs,
  });
  try {
    const signal = new AbortController().signal;
    const content = await whatIsThere({ ...stores, streams: allStreams, projections: importedProjections, signal });
    if (content === undefined) return;
    throw new CommandError(
      `The demo needs empty stores: ${content}. Set SVC_EVENTSTORE_URL and SVC_MONGODB_URL to others; for a MongoDB URL ` +
        'without a database the demo creates one.',
    );
  } finally {
    await stores.close();
  }
}

async function dropDatabase(url: string): Promise<void> {
  const { MongoClient } = await import('mongodb');
  const client = new MongoClient(url, { serverSelectionTimeoutMS: giveUpMs });
  try {
    await client.db().dropDatabase();
  } finally {
    await client.close();
  }
}

/** The URL, with a new random database if it names none. @internal exported for tests */
export function withOwnDatabase(url: string): string {
  const match = /^(mongodb(?:\+srv)?:\/\/[^/?]+)\/?(?:\?(.*))?$/.exec(url);
  if (match === null) return url;
  const [, server = '', query = ''] = match;
  const options = new URLSearchParams(query);
  // The driver looks credentials up in the URL's database unless authSource names another.
  if (server.includes('@') && !options.has('authSource')) options.set('authSource', 'admin');
  const text = options.toString();
  return `${server}/svc_demo_${randomBytes(6).toString('hex')}${text === '' ? '' : `?${text}`}`;
}

/** Only the hosts and the database of a URL. @internal exported for tests */
export function withoutCredentials(url: string): string {
  return url.replace(/^([a-z+]+:\/\/)(?:.*@)?/, '$1').replace(/\?.*$/s, '');
}

function withoutEmpty(env: DemoStoreOptions['env']): Variables {
  return Object.fromEntries(
    variables.flatMap((name) => {
      const value = env[name];
      return value === undefined || value === '' ? [] : [[name, value]];
    }),
  );
}

const startWithinMs = 30_000;

/** Starts `test/servers/stores.ts`, which only a checkout has. @throws CommandError */
async function startTestServers(): Promise<{ readonly env: Variables; close(): Promise<void> }> {
  // In the checkout, seen from dist/scripts/stack; or compiled, next to this file's folder, when a test runs the demo.
  const path = ['../../../test/servers/stores.ts', '../../test/servers/stores.js']
    .map((relative) => fileURLToPath(new URL(relative, import.meta.url)))
    .find((candidate) => existsSync(candidate));
  if (path === undefined) throw new CommandError('--test-servers works only in a checkout of the project.');
  const compiler = path.endsWith('.ts') ? ['--import', 'tsx'] : [];
  const child = spawn(process.execPath, [...compiler, path], { stdio: ['pipe', 'pipe', 'inherit'] });
  const ended = once(child, 'exit');
  const timer = setTimeout(() => child.kill('SIGKILL'), startWithinMs);
  const env: Record<string, string> = {};
  for await (const line of createInterface({ input: child.stdout })) {
    const [, name, value] = /^(SVC_\w+)=(.*)$/.exec(line) ?? [];
    if (name !== undefined && value !== undefined) env[name] = value;
    if (line === 'ready') break;
  }
  clearTimeout(timer);
  if (child.exitCode !== null || child.signalCode !== null || Object.keys(env).length === 0) {
    throw new CommandError('The test servers did not start.');
  }
  return {
    env,
    async close() {
      child.stdin.end();
      await ended;
    },
  };
}
