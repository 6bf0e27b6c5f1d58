/**
 * Two instances of the real service on the EventStoreDB and MongoDB test servers: either one serves any call and any node,
 * and the agents of a killed one continue on the other.
 */
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { MongoClient } from 'mongodb';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startAgentProcess } from '../../scripts/stack/agent.js';
import { eventually, type RunningProgram } from '../../scripts/stack/process.js';
import { createRestClient, signIn, type RestClient } from '../../scripts/stack/rest-client.js';
import { prepareService, type ServiceProcess } from '../../scripts/stack/service.js';
import { startEventStoreDb, type EventStoreDbServer } from '../servers/eventstoredb/server.js';
import { ferretDbBuilt, startFerretDb, type FerretDb } from '../servers/ferretdb-process.js';
import { startBalancer, type Balancer } from '../support/balancer.js';
import { freeze } from '../support/freeze.js';
import { runMaintenanceProgram } from '../support/programs.js';

interface NodeView {
  readonly id: string;
  readonly status: string;
  readonly last_seen_at: string | null;
  readonly uptime_seconds: number | null;
  readonly generation: number;
  readonly apply: { readonly state: string };
}

/** What one instance knows, the other knows within a second; counts and metrics are a second older. */
const agreeWithinMs = 10_000;

describe.skipIf(!ferretDbBuilt())('two instances on shared stores', () => {
  let folder: string;
  let log: EventStoreDbServer;
  let mongo: FerretDb;
  let env: Readonly<Record<string, string>>;
  let lb: Balancer;
  const services: ServiceProcess[] = [];
  const clients: RestClient[] = [];
  /** Where agents go. */
  let order: 'first first' | 'second first' = 'first first';
  let agent: RunningProgram | undefined;
  let node: { id: string; control_psk: string };

  const view = (client: RestClient): Promise<NodeView> => client.call<NodeView>('GET', `/api/nodes/${node.id}`);
  const applied = (client: RestClient): Promise<NodeView> =>
    eventually(
      'the node runs its newest configuration',
      async () => {
        const now = await view(client);
        return now.status === 'online' && now.apply.state === 'applied' ? now : undefined;
      },
      60_000,
    );
  const startAgent = (psk: string): void => {
    const controlEndpoint = `http://127.0.0.1:${lb.port}`;
    agent = startAgentProcess({ nodeId: node.id, controlEndpoint, controlPsk: psk });
  };

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'svc-two-'));
    [log, mongo] = await Promise.all([startEventStoreDb(), startFerretDb()]);
    env = {
      SVC_EVENTSTORE_URL: log.url,
      SVC_MONGODB_URL: `${mongo.url.replace(/\/$/, '')}/svc`,
      SVC_MASTER_KEY: Buffer.alloc(32, 5).toString('base64'),
    };
    for (const name of ['a', 'b']) services.push(await prepareService({ dataDir: join(folder, name), env }));
    // Together, so that they compete for the service identity, the first admin and the compiler version.
    await Promise.all(services.map((service) => service.start()));
    for (const service of services) clients.push(await service.admin());
    const ports = services.map((service) => Number(new URL(service.controlEndpoint).port));
    lb = await startBalancer(() => (order === 'first first' ? ports : ports.toReversed()));
    await clients[0]!.call('PUT', '/api/settings/connectivity', { heartbeat_interval_secs: 1 });
    node = await clients[0]!.call('POST', '/api/nodes', { name: 'n', address: '127.0.0.1' });
    startAgent(node.control_psk);
  }, 120_000);

  afterAll(async () => {
    await agent?.stop();
    await Promise.all(services.map((service) => service.stop()));
    await lb?.close();
    await mongo?.close();
    await log?.close();
    await rm(folder, { recursive: true, force: true });
  });

  test('a change on one reaches the agent that is connected to the other', async () => {
    const before = await applied(clients[1]!);
    const hop = { node_id: node.id, listen_addr: '127.0.0.1', listen_port: 0, outer: 'tcp', security: 'raw' };
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    hop.listen_port = (server.address() as AddressInfo).port;
    server.close();
    await once(server, 'close');
    const body = { name: 'c', payload: 'tcp', hops: [hop], target: { endpoint: '127.0.0.1:9' } };
    const chain = await clients[1]!.call<{ id: string }>('POST', '/api/l4-chains', body);
    const path = `/api/l4-chains/${chain.id}/deploy?wait=applied&timeout_ms=30000`;
    const deployed = await clients[1]!.call<{ deployment: { nodes: { state: string }[] } }>('POST', path);
    expect(deployed.deployment.nodes.map(({ state }) => state)).toEqual(['applied']);
    expect((await applied(clients[0]!)).generation).toBeGreaterThan(before.generation);
  }, 120_000);

  test('diagnostics asked for at one reach the agent at the other, whose answer is read at both', async () => {
    const path = `/api/nodes/${node.id}/diagnostics`;
    const { id } = await clients[1]!.call<{ id: string }>('POST', `/api/nodes/${node.id}/commands`, {
      command: 'RUN_DIAGNOSTICS',
    });
    for (const client of clients.toReversed()) {
      await eventually('the command is answered', async () => {
        const { items } = await client.call<{ items: { id: string; state: string }[] }>(
          'GET',
          `/api/nodes/${node.id}/commands`,
        );
        return items.find((item) => item.id === id)?.state === 'answered' ? true : undefined;
      });
      expect(await client.call('GET', path)).toMatchObject({
        agent_version: expect.stringMatching(/^reference-agent/),
        items: expect.arrayContaining([
          expect.objectContaining({ ok: false, name: expect.stringContaining('127.0.0.1:9 ') }),
        ]),
      });
    }
  }, 120_000);

  test('a PSK reset on one ends the session on the other before it answers', async () => {
    await applied(clients[0]!);
    const reset = await clients[1]!.call<{ control_psk: string; sessions_ended: boolean }>(
      'POST',
      `/api/nodes/${node.id}/psk`,
    );
    expect(reset.sessions_ended).toBe(true);
    await agent!.stop();
    node.control_psk = reset.control_psk;
    startAgent(node.control_psk);
    await applied(clients[1]!);
  }, 120_000);

  test('a user of one is a user of the other; a changed password ends older tokens, and a sign-out its own, on both before it is answered', async () => {
    const [a, b] = services.map(({ url }) => url) as [string, string];
    const password = 'correct horse battery';
    const user = { username: 'ada', password, role: 'operator', display_name: 'Ada' };
    const { id } = await clients[0]!.call<{ id: string }>('POST', '/api/auth/users', user);
    const me = async (url: string, token: string): Promise<number> =>
      (await createRestClient(url, token).send('GET', '/api/auth/me')).status;
    for (let round = 0; round < 5; round += 1) {
      const [current_password, new_password] = [
        `${password}${'!'.repeat(round)}`,
        `${password}${'!'.repeat(round + 1)}`,
      ];
      const body = { username: 'ada', password: current_password };
      const { token } = await createRestClient(a).call<{ token: string }>('POST', '/api/auth/login', body);
      expect(await me(b, token)).toBe(200);
      const change = { current_password, new_password };
      const ada = createRestClient(a, token);
      const { token: fresh } = await ada.call<{ token: string }>('PUT', '/api/auth/password', change);
      expect([await me(b, token), await me(a, token), await me(b, fresh)]).toEqual([401, 401, 200]);
      const again = await createRestClient(b).call<{ token: string }>('POST', '/api/auth/login', {
        username: 'ada',
        password: new_password,
      });
      await createRestClient(b, fresh).call('POST', '/api/auth/logout');
      expect([await me(a, fresh), await me(b, fresh), await me(a, again.token)]).toEqual([401, 401, 200]);
    }
    expect(await clients[1]!.call('GET', `/api/auth/users/${id}`)).toMatchObject({ display_name: 'Ada', version: 6 });
  }, 120_000);

  test('a password is reset while both run: tokens end on both, and the audit says so', async () => {
    const { id } = await clients[1]!.call<{ id: string }>('POST', '/api/auth/users', {
      username: 'eve',
      password: 'correct horse battery',
      role: 'viewer',
    });
    const eve = await signIn(services[0]!.url, 'eve', 'correct horse battery');
    const typed = 'a password that was typed';
    const { code, out, err } = await runMaintenanceProgram(
      'admin:reset-password',
      ['Eve', '--stdin'],
      env,
      `${typed}\n`,
    );
    expect([code, out, err]).toEqual([0, 'The password of Eve is changed; all of its tokens have ended.\n', '']);
    expect((await eve.send('GET', '/api/auth/me')).status).toBe(401);
    for (const { url } of services) await signIn(url, 'eve', typed);
    const { items } = await clients[0]!.call<{ items: unknown[] }>('GET', `/api/audit?resource_id=${id}`);
    expect(items).toContainEqual(
      expect.objectContaining({
        action: 'user.update',
        actor: { type: 'system', id: 'service', name: 'service' },
        changes: [{ path: 'password', before: '***', after: '***' }],
        request_id: 'password reset',
      }),
    );
    expect(JSON.stringify(items)).not.toContain(typed);
  }, 120_000);

  describe('a listener is in one state wherever it is shown, on both', () => {
    interface Hop {
      readonly state: string;
      readonly stale: boolean;
    }
    type Listed<T> = { readonly items: readonly T[] };
    const gauges = async (url: string): Promise<readonly string[]> =>
      (await (await fetch(`${url}/metrics`)).text())
        .split('\n')
        .filter((line) => /^svc_(nodes|listeners|chains)\{.* [1-9]/.test(line));
    const shown = async (instance: number) => {
      const [client, url] = [clients[instance]!, services[instance]!.url];
      const [one, chains, ports, runtime, stats, metrics] = await Promise.all([
        view(client),
        client.call<Listed<{ hop_status: readonly Hop[] }>>('GET', `/api/l4-chains?node_id=${node.id}`),
        client.call<Listed<{ runtimeState: string; runtimeStale: boolean }>>('GET', '/api/nodes/ports'),
        client.call<{ nodes: readonly { stale: boolean; listeners: readonly { state: string }[] }[] }>(
          'GET',
          `/api/nodes/ports/runtime?node_id=${node.id}`,
        ),
        client.call<{ listeners: { running: number } }>('GET', '/api/dashboard/stats'),
        gauges(url),
      ]);
      return {
        status: one.status,
        chain: chains.items[0]?.hop_status.map(({ state, stale }) => [state, stale]),
        port: ports.items.map(({ runtimeState, runtimeStale }) => [runtimeState, runtimeStale]),
        runtime: runtime.nodes.map(({ stale, listeners }) => [listeners[0]?.state, stale]),
        dashboard: stats.listeners.running,
        metrics,
      };
    };
    const answerOf = (status: 'online' | 'offline'): Awaited<ReturnType<typeof shown>> => {
      const isOnline = status === 'online';
      const listener = [['running', !isOnline]];
      const metrics = [`svc_nodes{status="${status}"} 1`];
      if (isOnline) metrics.push('svc_listeners{state="running"} 1');
      metrics.push(`svc_chains{health="${isOnline ? 'ok' : 'down'}"} 1`);
      return { status, chain: listener, port: listener, runtime: listener, dashboard: isOnline ? 1 : 0, metrics };
    };
    const allShown = () => Promise.all([shown(0), shown(1)]);
    const everywhere = (status: 'online' | 'offline', timeout = 60_000): Promise<void> =>
      expect.poll(allShown, { timeout }).toEqual([answerOf(status), answerOf(status)]);
    /** Waits while every page says that it is online; once one does not, all must follow within the time. */
    const turnsOffline = async (withinMs: number): Promise<void> => {
      const online = [answerOf('online'), answerOf('online')];
      await eventually(
        'a page no longer says that it is online',
        async () => (isDeepStrictEqual(await allShown(), online) ? undefined : true),
        60_000,
      );
      await everywhere('offline', withinMs);
    };

    test('while its agent runs, is killed and is back', async () => {
      await everywhere('online');
      await agent?.stop('SIGKILL');
      await everywhere('offline');
      startAgent(node.control_psk);
      await everywhere('online');
    }, 240_000);

    test('while its agent is frozen, and thawed', async () => {
      await everywhere('online');
      await freeze(agent!.child);
      await turnsOffline(agreeWithinMs);
      agent!.child.kill('SIGCONT');
      await everywhere('online');
    }, 240_000);

    test('while its session goes to the other instance, which the one that had it learns last; and back, by a kill', async () => {
      await everywhere('online');
      const [first, second] = services as [ServiceProcess, ServiceProcess];
      const online = answerOf('online');
      // The first instance, which has the agent, is frozen until the agent has left, and thaws with a dead session.
      await freeze(first.program().child);
      lb.drop();
      order = 'second first';
      await expect.poll(() => shown(1), { timeout: 60_000 }).toEqual(online);
      first.program().child.kill('SIGCONT');
      await everywhere('online', agreeWithinMs);

      await second.kill();
      await expect.poll(() => shown(0), { timeout: 60_000 }).toEqual(online);
      await second.start();
      clients[1] = await second.admin();
      await everywhere('online', agreeWithinMs);
      order = 'first first';
    }, 240_000);
  });

  test('a database that is dropped under both makes them unready, and they fill it again by themselves, also with what nodes told', async () => {
    const before = await applied(clients[0]!);
    const audit = async (client: RestClient): Promise<unknown> =>
      client.call('GET', '/api/audit?resource_type=node&page_size=500');
    // One agent keeps reporting; the other is gone, and nobody will repeat what it told last.
    const gone = await clients[0]!.call<typeof node>('POST', '/api/nodes', { name: 'gone', address: '127.0.0.1' });
    const controlEndpoint = `http://127.0.0.1:${lb.port}`;
    const other = startAgentProcess({ nodeId: gone.id, controlEndpoint, controlPsk: gone.control_psk });
    const told = (client: RestClient, id: string) =>
      client.call<{ nodes: readonly unknown[] }>('GET', `/api/nodes/ports/runtime?node_id=${id}`);
    const vitals = async (client: RestClient) => {
      const { status, last_seen_at, uptime_seconds } = await client.call<NodeView>('GET', `/api/nodes/${gone.id}`);
      return { status, last_seen_at, uptime_seconds };
    };
    const becomes = (status: string, uptime: unknown) =>
      expect
        .poll(() => Promise.all(clients.map(vitals)), { timeout: 60_000 })
        .toMatchObject([0, 1].map(() => ({ status, uptime_seconds: uptime })));
    await becomes('online', expect.any(Number));
    await other.stop('SIGKILL');
    await becomes('offline', expect.any(Number));
    const [known, last] = [await told(clients[0]!, gone.id), await vitals(clients[0]!)];
    const trail = await audit(clients[0]!);
    const ready = async (): Promise<readonly number[]> =>
      Promise.all(services.map(async ({ url }) => (await fetch(`${url}/readyz`).catch(() => ({ status: 0 }))).status));
    expect(await ready()).toEqual([200, 200]);
    const mongoClient = new MongoClient(env['SVC_MONGODB_URL']!);
    await mongoClient.db().dropDatabase();
    const seen = new Set<number>();
    await eventually('both were unready', async () => {
      for (const [instance, status] of (await ready()).entries()) if (status !== 200) seen.add(instance);
      return seen.size === 2 ? true : undefined;
    });
    await eventually('both are ready', async () =>
      (await ready()).every((status) => status === 200) ? true : undefined,
    );
    for (const client of clients) {
      expect((await applied(client)).generation).toBe(before.generation);
      expect(await audit(client)).toEqual(trail);
      expect([await told(client, gone.id), await vitals(client)]).toEqual([known, last]);
    }
    const stored = async (part: string): Promise<readonly unknown[]> =>
      (await mongoClient.db().collection(part).find().toArray()).map(({ _id }) => String(_id)).sort();
    await expect.poll(() => stored('node_beats__v2')).toEqual([node.id, gone.id].sort());
    await expect.poll(() => stored('node_listeners__v2')).toContain(node.id);
    await mongoClient.close();
    await clients[1]!.call('POST', `/api/nodes/${node.id}/config`);
    expect((await applied(clients[0]!)).generation).toBeGreaterThan(before.generation);
  }, 120_000);

  test('after kill -9 of one its agents continue on the other with the same generations; a dead agent shows offline', async () => {
    const before = await applied(clients[1]!);
    await services[0]!.kill();
    const after = await applied(clients[1]!);
    expect(after.generation).toBe(before.generation);
    await agent!.stop('SIGKILL');
    await eventually('the node is offline', async () =>
      (await view(clients[1]!)).status === 'offline' ? true : undefined,
    );
    await services[0]!.start();
    const again = await services[0]!.admin();
    expect((await view(again)).generation).toBe(before.generation);
  }, 120_000);

  test('one that names another database is told by the others, which stay ready', async () => {
    const other = await prepareService({
      dataDir: join(folder, 'c'),
      env: { ...env, SVC_MONGODB_URL: `${env['SVC_MONGODB_URL']!}-other` },
    });
    await other.start();
    const { id, control_psk } = await clients[1]!.call<typeof node>('POST', '/api/nodes', { name: 'elsewhere' });
    const readiness = async (): Promise<unknown> => (await fetch(`${services[1]!.url}/readyz`)).json();
    await eventually(
      'it is told',
      async () => {
        // Each start is a session that the other instance writes into the log.
        const sent = startAgentProcess({ nodeId: id, controlEndpoint: other.controlEndpoint, controlPsk: control_psk });
        await eventually('the session is in the log', async () =>
          (await other.admin())
            .call<NodeView>('GET', `/api/nodes/${id}`)
            .then(({ status }) => status === 'online' || undefined),
        );
        await sent.stop('SIGKILL');
        const told = JSON.stringify(await readiness());
        return told.includes('give all instances the same SVC_MONGODB_URL') ? true : undefined;
      },
      100_000,
    );
    expect(await readiness()).toMatchObject({ ready: true });
    await other.stop();
  }, 120_000);
});
