/**
 * The stores that the demo runs on: embedded, those that the environment names, or the test servers of a checkout. The
 * demo writes into them, so external ones must be empty: looked at here, before anything is started.
 */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { readConfig } from '../../src/config.js';
import { systemClock } from '../../src/kernel/clock.js';
import { openStores } from '../../src/storage/open-stores.js';
import { whatIsThere } from '../../src/storage/log-archive/import-log.js';
import { CommandError, plainLogger } from '../maintenance/command-line.js';
import { archiveScope, importedProjections } from '../maintenance/installation.js';

type Variables = Readonly<Record<string, string>>;

export interface DemoStores {
  /** What the service needs to find them, beside the data folder. */
  readonly env: Variables;
  /** Where they are, for a person: without credentials. */
  readonly text: string;
  close(): Promise<void>;
}

export interface DemoStoreOptions {
  /** On the test servers, whatever the environment says. */
  readonly testServers: boolean;
  /** Of the demo's service: what is embedded lies there. */
  readonly dataDir: string;
  readonly env: { readonly [name: string]: string | undefined };
}

const variables = ['SVC_EVENTSTORE_URL', 'SVC_MONGODB_URL', 'SVC_MASTER_KEY', 'SVC_MASTER_KEY_FILE'] as const;

/** How long an external store is waited for. */
const giveUpMs = 15_000;

/** @throws CommandError, ConfigError, StoreSettingError, ServiceError `unavailable` */
export async function openDemoStores(options: DemoStoreOptions): Promise<DemoStores> {
  const servers = options.testServers ? await startTestServers() : undefined;
  const given = servers?.env ?? withoutEmpty(options.env);
  try {
    const found = await namedStores(given, options.dataDir);
    return {
      ...found,
      async close() {
        await found.close();
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
    return { env: {}, text: 'Log and read models: embedded, in a folder of their own', close: async () => undefined };
  }
  const own = mongo === undefined ? undefined : withOwnDatabase(mongo);
  const env: Variables = { ...given, ...(own === undefined ? {} : { SVC_MONGODB_URL: own }) };
  const config = readConfig({ ...env, SVC_DATA_DIR: dataDir });
  await assertEmpty(dataDir, config.eventStoreUrl, config.mongoUrl);
  const place = (name: string, url: string | undefined): string =>
    url === undefined ? 'embedded, in a folder of its own' : `${name}, ${withoutCredentials(url)}`;
  return {
    env,
    text: [
      `Log: ${place('EventStoreDB', config.eventStoreUrl)}`,
      `Read models: ${place('MongoDB', config.mongoUrl)}`,
      'What the demo writes stays there as long as the log does.',
    ].join('\n'),
    async close() {
      // Beside a log that stays its data keys have to stay as well; without one they are of no use.
      if (log === undefined && own !== undefined && own !== mongo) await dropDatabase(own);
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
    const scope = { prefix: archiveScope.prefix, collections: archiveScope.collections };
    const signal = new AbortController().signal;
    const found = await whatIsThere({ ...stores, ...scope, projections: importedProjections, signal });
    if (found === undefined) return;
    throw new CommandError(
      `The demo begins on empty stores: ${found}. Name others in SVC_EVENTSTORE_URL and SVC_MONGODB_URL; a MongoDB ` +
        'URL without a database gets one of its own.',
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

/** The URL, with a database that nobody else has when it names none. */
export function withOwnDatabase(url: string): string {
  const match = /^(mongodb(?:\+srv)?:\/\/[^/?]+)\/?(?:\?(.*))?$/.exec(url);
  if (match === null) return url;
  const [, server = '', query = ''] = match;
  const options = new URLSearchParams(query);
  // A database in the URL is also the one that credentials are looked up in, unless another is named.
  if (server.includes('@') && !options.has('authSource')) options.set('authSource', 'admin');
  const text = options.toString();
  return `${server}/svc_demo_${randomBytes(6).toString('hex')}${text === '' ? '' : `?${text}`}`;
}

/** Hosts and database of a URL, nothing else. */
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

/** Starts `test/servers/stores.ts`, which is there in a checkout only. @throws CommandError */
async function startTestServers(): Promise<{ readonly env: Variables; close(): Promise<void> }> {
  // This file is in scripts/stack, or in dist/scripts/stack.
  const path = ['../../', '../../../']
    .map((up) => fileURLToPath(new URL(`${up}test/servers/stores.ts`, import.meta.url)))
    .find((candidate) => existsSync(candidate));
  if (path === undefined) throw new CommandError('--test-servers works in a checkout of the project only.');
  const child = spawn(process.execPath, ['--import', 'tsx', path], { stdio: ['pipe', 'pipe', 'inherit'] });
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
