/**
 * Documents that are applied on three instances at once, while others write to all of them: each apply is answered with what
 * it did and with the PSKs of its new nodes (`docs/contract/automation.md#the-fleet-as-a-file`,
 * `docs/contract/rest.md#consistency`).
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createRestClient, type RestClient } from '../../scripts/stack/rest-client.js';
import { prepareService, type ServiceProcess } from '../../scripts/stack/service.js';
import { createClosers } from '../../src/kernel/closers.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { startEventStoreDbProcess } from '../servers/eventstoredb-process.js';
import { ferretDbBuilt, startFerretDb } from '../servers/ferretdb-process.js';

const instances = ['a', 'b', 'c'] as const;
const writersOfEach = 2;
const applies = 9;
const nodesOfEach = 3;
const patienceMs = 120_000;

interface Applied {
  readonly commands: readonly unknown[];
  readonly deployments: readonly unknown[];
  readonly control_psks: readonly { readonly node: string; readonly control_psk: string | null }[];
  readonly incomplete: unknown;
}

describe.skipIf(!ferretDbBuilt())('three instances on shared stores, kept busy', () => {
  const closers = createClosers(silentLogger);
  const clients: RestClient[] = [];

  beforeAll(async () => {
    const folder = await mkdtemp(join(tmpdir(), 'svc-three-'));
    closers.add('folder', { close: () => rm(folder, { recursive: true, force: true }) });
    const log = await startEventStoreDbProcess();
    closers.add('log', { close: () => log.kill() });
    const mongo = await startFerretDb();
    closers.add('mongo', mongo);
    const env = {
      SVC_EVENTSTORE_URL: log.url,
      SVC_MONGODB_URL: `${mongo.url.replace(/\/$/, '')}/svc`,
      SVC_MASTER_KEY: Buffer.alloc(32, 5).toString('base64'),
    };
    const services: ServiceProcess[] = [];
    for (const name of instances) services.push(await prepareService({ dataDir: join(folder, name), env }));
    closers.add('services', { close: () => Promise.all(services.map((service) => service.stop())) });
    await Promise.all(services.map((service) => service.start()));
    const [first] = services;
    const login = { username: 'admin', password: first!.adminPassword };
    const { token } = await createRestClient(first!.url).call<{ token: string }>('POST', '/api/auth/login', login);
    for (const { url } of services) clients.push(createRestClient(url, token, patienceMs));
  });
  afterAll(() => closers.closeAll());

  const document = (set: string): string => `svc: 1
set: ${set}
nodes: {${nodesOf(set).join(': {}, ')}: {}}
upstreams: {${set}-web: {endpoint: "203.0.113.5:443"}}
chains:
  ${set}-front: {payload: tcp, hops: [{node: ${set}-1, listen_port: 443, outer: tcp, security: raw}], target: {upstream: ${set}-web}, deploy: true}
`;
  const nodesOf = (set: string): readonly string[] =>
    Array.from({ length: nodesOfEach }, (_, index) => `${set}-${index + 1}`);

  test('every apply is answered with its PSKs, a repeat elsewhere without them, and no write is lost', async () => {
    let busy = true;
    const written: string[] = [];
    const others = new Map<number, number>();
    const writers = clients.flatMap((client, instance) =>
      Array.from({ length: writersOfEach }, async (_, writer) => {
        for (let round = 0; busy; round += 1) {
          const name = `load-${instance}-${writer}-${round}`;
          const { status } = await client.send('POST', '/api/l4-upstreams', { name, endpoint: '192.0.2.1:80' });
          if (status === 201) written.push(name);
          else others.set(status, (others.get(status) ?? 0) + 1);
        }
      }),
    );
    const psks = await Promise.all(
      clients.map(async (client, instance) => {
        const issued: (string | null)[] = [];
        for (let round = 0; round < applies / instances.length; round += 1) {
          const set = `set-${instance}-${round}`;
          const apply = (to: RestClient) => {
            const body = { document: document(set), issue_psks: true };
            return to.send('POST', '/api/fleet/apply', body, { 'idempotency-key': set });
          };
          const { status, body } = await apply(client);
          expect([set, status, body.error]).toEqual([set, 200, null]);
          const data = body.data as unknown as Applied;
          expect([data.commands.length, data.deployments.length, data.incomplete]).toEqual([1, 1, null]);
          expect(data.control_psks).toEqual(
            nodesOf(set).map((node) => ({ node, control_psk: expect.stringMatching(/^svcpsk1_/) })),
          );
          issued.push(...data.control_psks.map(({ control_psk }) => control_psk));
          const elsewhere = await apply(clients[(instance + 1) % instances.length]!);
          const withoutPsks = nodesOf(set).map((node) => ({ node, control_psk: null }));
          expect([elsewhere.status, elsewhere.body]).toEqual([
            200,
            { ...body, data: { ...data, control_psks: withoutPsks } },
          ]);
        }
        return issued;
      }),
    ).finally(() => (busy = false));
    await Promise.all(writers);

    expect(new Set(psks.flat()).size).toBe(applies * nodesOfEach);
    expect([...others]).toEqual([]);
    expect(written.length).toBeGreaterThan(applies);
    for (const client of clients) {
      const total = async (): Promise<number> =>
        (await client.call<{ total: number }>('GET', '/api/l4-upstreams?q=load-&page_size=1')).total;
      // Another instance may be behind by a moment.
      await expect.poll(total, { timeout: 10_000 }).toBe(written.length);
    }
  });
});
