/**
 * The compose files give the service only variables and values that it accepts, and URLs that the clients of both stores
 * can read. Whether the images start is not tested: that needs a container engine.
 */
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EventStoreDBClient } from '@eventstore/db-client';
import { MongoClient } from 'mongodb';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { readConfig } from '../../src/app/config/config.js';

interface Compose {
  readonly services: Readonly<
    Record<
      string,
      {
        readonly environment?: Readonly<Record<string, string>>;
        readonly volumes?: readonly string[];
        readonly networks?: readonly string[] | { readonly control: { readonly ipv4_address: string } };
      }
    >
  >;
  readonly configs?: Readonly<Record<string, { readonly content: string }>>;
  readonly volumes: Readonly<Record<string, unknown>>;
}

const given: Readonly<Record<string, string>> = {
  SVC_MASTER_KEY: Buffer.alloc(32, 1).toString('base64'),
  EVENTSTORE_PASSWORD: 'a1b2c3',
  MONGO_PASSWORD: 'd4e5f6',
  SVC_METRICS_TOKEN: 'a7b8c9d0',
};
const interpolated = (text: string): string => text.replaceAll(/\$\{(\w+)[^}]*\}/g, (_, name: string) => given[name]!);

const read = async (file: string): Promise<Compose> =>
  parse(await readFile(new URL(`../../${file}`, import.meta.url), 'utf8'), { merge: true }) as Compose;

test.each([
  ['docker-compose.embedded.yml', 1],
  ['docker-compose.yml', 1],
  ['docker-compose.three-nodes.yml', 3],
])('%s gives %i instances of the service a valid configuration', async (file, instances) => {
  const folder = await mkdtemp(join(tmpdir(), 'compose-'));
  const authority = join(folder, 'ca.crt');
  await writeFile(authority, 'a certificate');
  try {
    const controls = Object.entries((await read(file)).services).filter(([name]) => name.startsWith('control'));
    expect(controls).toHaveLength(instances);
    for (const [, { environment }] of controls) {
      const env = Object.fromEntries(
        Object.entries(environment!).map(([name, value]) => [
          name,
          interpolated(value).replace('/certs/ca/ca.crt', encodeURIComponent(authority)),
        ]),
      );
      const config = readConfig(env);
      if (config.eventStoreUrl !== undefined) {
        await EventStoreDBClient.connectionString(config.eventStoreUrl).dispose();
      }
      if (config.mongoUrl !== undefined) expect(new MongoClient(config.mongoUrl).db().databaseName).toBe('control');
    }
  } finally {
    await rm(folder, { recursive: true });
  }
});

test.each(['docker-compose.embedded.yml', 'docker-compose.yml', 'docker-compose.three-nodes.yml'])(
  '%s declares the volumes that it uses, and gives each service its own data volume',
  async (file) => {
    const { services, volumes } = await read(file);
    const named = Object.values(services).flatMap((service) =>
      (service.volumes ?? []).map((volume) => volume.split(':')[0]!),
    );
    expect(new Set(named)).toEqual(new Set(Object.keys(volumes)));
    const data = named.filter((name) => name.endsWith('-data'));
    expect(new Set(data).size).toBe(data.length);
  },
);

test('the load balancer names the agents to each instance, and the instances believe it', async () => {
  const { services, configs } = await read('docker-compose.three-nodes.yml');
  const [, agents = ''] = configs!.balancer!.content.split(/^backend agents$/m);
  const servers = agents.split('\n').filter((line) => line.trim().startsWith('server '));
  expect(servers).toHaveLength(3);
  for (const server of servers) expect(server).toContain(' send-proxy-v2');
  const { networks } = services.balancer!;
  const address = networks !== undefined && 'control' in networks ? networks.control.ipv4_address : undefined;
  expect(address).toBeDefined();
  for (const name of ['control1', 'control2', 'control3']) {
    expect(services[name]!.environment!.SVC_AGENT_PROXY_FROM).toBe(address);
  }
});

test('docker-compose.three-nodes.yml gives no private key to anybody but its owner, and every password goes over TLS', async () => {
  const { services } = await read('docker-compose.three-nodes.yml');
  const users = (volume: string): readonly string[] =>
    Object.entries(services)
      .filter(([, service]) => service.volumes?.some((mounted) => mounted.startsWith(`${volume}:`)))
      .map(([name]) => name);
  expect(users('authority')).toEqual(['certificates']);
  for (const name of ['es1', 'es2', 'es3', 'mongo1', 'mongo2', 'mongo3']) {
    expect(new Set(users(`${name}-certs`))).toEqual(new Set([name, 'certificates']));
  }
  for (const name of ['control1', 'control2', 'control3']) {
    const { SVC_EVENTSTORE_URL, SVC_MONGODB_URL } = services[name]!.environment!;
    expect([SVC_EVENTSTORE_URL, SVC_MONGODB_URL]).toEqual([
      expect.stringContaining('tls=true'),
      expect.stringContaining('tls=true'),
    ]);
  }
});

test('the image copies what there is, and what .dockerignore lets through', async () => {
  const text = (file: string): Promise<string> => readFile(new URL(`../../${file}`, import.meta.url), 'utf8');
  const letThrough = (await text('.dockerignore')).split('\n').filter((line) => line.startsWith('!'));
  const copied = [...(await text('Dockerfile')).matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(([, from = '']) =>
    from.split(' '),
  );
  expect(copied).toContain('packaging');
  for (const path of copied) {
    expect(existsSync(new URL(`../../${path}`, import.meta.url))).toBe(true);
    expect(letThrough).toContain(`!${path.split('/')[0]}`);
  }
});
