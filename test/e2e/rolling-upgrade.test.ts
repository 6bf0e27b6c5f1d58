/**
 * A rolling upgrade to a release with a newer compiler, and back: three instances on the EventStoreDB and MongoDB test
 * servers, two real agents that carry traffic throughout, and a newer release that is built for the test. The tests are
 * the steps of one story, in order.
 */
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect, createServer, type AddressInfo, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startAgentProcess } from '../../scripts/stack/agent.js';
import { eventually, freePorts, startProgram, type RunningProgram } from '../../scripts/stack/process.js';
import type { RestClient } from '../../scripts/stack/rest-client.js';
import { prepareService, type ServiceProcess } from '../../scripts/stack/service.js';
import { compilerVersion } from '../../src/kernel/release.js';
import { startEventStoreDb, type EventStoreDbServer } from '../servers/eventstoredb/server.js';
import { ferretDbBuilt, startFerretDb, type FerretDb } from '../servers/ferretdb-process.js';
import { makeNewerRelease, type NewerRelease } from '../support/newer-release.js';
import { startSteadyTraffic, type SteadyTraffic } from '../support/steady-traffic.js';

interface NodeView {
  readonly id: string;
  readonly status: string;
  readonly generation: number;
  readonly apply: { readonly state: string };
}
interface NodeConfig {
  readonly snapshot: {
    readonly gateway: {
      readonly tcp_proxy_rules: readonly { readonly origin: { readonly resource_name: string } }[];
    };
  };
}
interface Readiness {
  readonly ready: boolean;
  readonly reasons: readonly string[];
}

const readiness = async (service: ServiceProcess): Promise<Readiness> =>
  (await (await fetch(`${service.url}/readyz`, { signal: AbortSignal.timeout(5_000) })).json()) as Readiness;

/** An L4 load balancer: a new connection goes to the first instance that is ready and stays there. */
function balancer(services: readonly ServiceProcess[]): Server {
  const isReady = (service: ServiceProcess): Promise<boolean> =>
    readiness(service).then(
      ({ ready }) => ready,
      () => false,
    );
  return createServer(async (client) => {
    client.on('error', () => undefined);
    for (const service of services) {
      if (!(await isReady(service))) continue;
      const upstream = connect(Number(new URL(service.controlEndpoint).port), '127.0.0.1');
      upstream.on('error', () => client.destroy());
      client.pipe(upstream).pipe(client);
      client.on('close', () => upstream.destroy());
      upstream.on('close', () => client.destroy());
      return;
    }
    client.destroy();
  });
}

describe.skipIf(!ferretDbBuilt())('three instances, upgraded one by one and back', () => {
  let folder: string;
  let newer: NewerRelease;
  let log: EventStoreDbServer;
  let mongo: FerretDb;
  let lb: Server;
  let echo: Server;
  let traffic: SteadyTraffic | undefined;
  let env: Readonly<Record<string, string>>;
  let [a, b, c]: ServiceProcess[] = [];
  /** One client per instance, also after restarts: the instances share accounts and tokens. */
  const clients = new Map<ServiceProcess, RestClient>();
  const nodeIds: string[] = [];
  const agents: RunningProgram[] = [];
  let upstreamId: string;

  const on = (service: ServiceProcess): RestClient => clients.get(service)!;
  const views = (service: ServiceProcess): Promise<NodeView[]> =>
    Promise.all(nodeIds.map((id) => on(service).call<NodeView>('GET', `/api/nodes/${id}`)));
  const generations = async (service: ServiceProcess): Promise<number[]> =>
    (await views(service)).map(({ generation }) => generation);
  const expectHigher = (now: readonly number[], before: readonly number[]): void =>
    now.forEach((generation, index) => expect(generation).toBeGreaterThan(before[index]!));
  /** Waits until this instance shows every node online at its newest generation. */
  const allApplied = (service: ServiceProcess): Promise<NodeView[]> =>
    eventually(
      'every node runs its newest configuration',
      async () => {
        const now = await views(service);
        return now.every(({ status, apply }) => status === 'online' && apply.state === 'applied') ? now : undefined;
      },
      60_000,
    );
  const originNames = (service: ServiceProcess): Promise<(string | undefined)[]> =>
    Promise.all(
      nodeIds.map(async (id) => {
        const { snapshot } = await on(service).call<NodeConfig>('GET', `/api/nodes/${id}/config`);
        return snapshot.gateway.tcp_proxy_rules[0]?.origin.resource_name;
      }),
    );
  /** Changes of the compiler version, newest first, from the audit. */
  const numbers = async (service: ServiceProcess): Promise<string[]> => {
    type Entry = { readonly changes: readonly { readonly before: number; readonly after: number }[] };
    const path = '/api/audit?action=service.update&resource_id=compiler';
    const { items } = await on(service).call<{ items: readonly Entry[] }>('GET', path);
    return items.flatMap(({ changes }) => changes.map(({ before, after }) => `${before} to ${after}`));
  };
  const becomes = (service: ServiceProcess, ready: boolean): Promise<Readiness> =>
    eventually(
      ready ? 'the instance is ready' : 'the instance is unready',
      async () => {
        const now = await readiness(service);
        return now.ready === ready ? now : undefined;
      },
      60_000,
    );
  const sessionsOf = async (service: ServiceProcess): Promise<number> => {
    const text = await (await fetch(`${service.url}/metrics`)).text();
    return Number(/^svc_agent_sessions (\d+)$/m.exec(text)?.[1]);
  };
  const noSessions = (service: ServiceProcess): Promise<true> =>
    eventually('its agents are gone', async () => ((await sessionsOf(service)) === 0 ? true : undefined), 60_000);

  /** Generations that an instance showed below an earlier one; all instances are polled throughout. */
  const wentBack: string[] = [];
  let [looks, watching] = [0, true];
  const watches: Promise<void>[] = [];
  const watch = async (service: ServiceProcess): Promise<void> => {
    const highest = new Map<string, number>();
    while (watching) {
      const now = await views(service).catch(() => []);
      for (const { id, generation } of now) {
        looks += 1;
        const before = highest.get(id) ?? 0;
        if (generation < before) wentBack.push(`${service.url} ${id}: ${before}, then ${generation}`);
        highest.set(id, Math.max(before, generation));
      }
      await delay(200);
    }
  };

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'svc-upgrade-'));
    [log, mongo, newer] = await Promise.all([startEventStoreDb(), startFerretDb(), makeNewerRelease()]);
    env = {
      SVC_EVENTSTORE_URL: log.url,
      SVC_MONGODB_URL: `${mongo.url.replace(/\/$/, '')}/svc`,
      SVC_MASTER_KEY: Buffer.alloc(32, 5).toString('base64'),
    };
    const prepare = (name: string): Promise<ServiceProcess> => prepareService({ dataDir: join(folder, name), env });
    [a, b, c] = await Promise.all([prepare('a'), prepare('b'), prepare('c')]);
    await Promise.all([a!.start(), b!.start()]);
    const admin = await a!.admin();
    clients.set(a!, admin).set(b!, await b!.admin());
    echo = createServer((socket) => socket.on('error', () => undefined).pipe(socket)).listen(0, '127.0.0.1');
    lb = balancer([a!, b!, c!]).listen(0, '127.0.0.1');
    await Promise.all([once(echo, 'listening'), once(lb, 'listening')]);
    await admin.call('PUT', '/api/settings/connectivity', { heartbeat_interval_secs: 1 });
    const controlEndpoint = `http://127.0.0.1:${(lb.address() as AddressInfo).port}`;
    for (const name of ['first', 'last']) {
      const body = { name, address: '127.0.0.1' };
      const node = await admin.call<{ id: string; control_psk: string }>('POST', '/api/nodes', body);
      nodeIds.push(node.id);
      agents.push(startAgentProcess({ nodeId: node.id, controlEndpoint, controlPsk: node.control_psk }));
    }
    const endpoint = `127.0.0.1:${(echo.address() as AddressInfo).port}`;
    upstreamId = (await admin.call<{ id: string }>('POST', '/api/l4-upstreams', { name: 'echo', endpoint })).id;
    const ports = await freePorts(2);
    const raw = { listen_addr: '127.0.0.1', outer: 'tcp', security: 'raw' };
    const hops = nodeIds.map((node_id, index) => ({ ...raw, node_id, listen_port: ports[index]! }));
    const body = { name: 'chain', payload: 'tcp', hops, target: { upstream_id: upstreamId } };
    const chain = await admin.call<{ id: string }>('POST', '/api/l4-chains', body);
    await allApplied(a!);
    await admin.call('POST', `/api/l4-chains/${chain.id}/deploy?wait=applied&timeout_ms=30000`);
    await allApplied(a!);
    traffic = startSteadyTraffic(ports[0]!);
    watches.push(watch(a!), watch(b!));
  }, 120_000);

  afterAll(async () => {
    watching = false;
    await Promise.all(watches);
    await traffic?.stop();
    await Promise.all(agents.map((agent) => agent.stop()));
    await Promise.all([a, b, c].map((service) => service?.stop()));
    lb?.close();
    echo?.close();
    await mongo?.close();
    await log?.close();
    await newer?.remove();
    await rm(folder, { recursive: true, force: true });
  });

  test('two newer instances that start together raise the compiler version and every generation once', async () => {
    const before = await generations(a!);
    expect(await numbers(a!)).toEqual([`0 to ${compilerVersion}`]);
    await b!.stop();
    await Promise.all([b!.start(newer), c!.start(newer)]);
    clients.set(c!, await c!.admin());
    watches.push(watch(c!));
    expect(await numbers(c!)).toEqual([`${compilerVersion} to ${newer.compilerVersion}`, `0 to ${compilerVersion}`]);
    expectHigher(await generations(b!), before);
  }, 120_000);

  test('the old instance drains its agents and says why; they then run the output of the newer compiler', async () => {
    const { reasons } = await becomes(a!, false);
    expect(reasons.join()).toContain(
      `at compiler version ${newer.compilerVersion}, this release has ${compilerVersion}: upgrade this instance`,
    );
    await noSessions(a!);
    await allApplied(b!);
    expect(await originNames(b!)).toEqual(nodeIds.map(() => `chain${newer.mark}`));
    expect((await sessionsOf(b!)) + (await sessionsOf(c!))).toBe(nodeIds.length);
  }, 120_000);

  test('the old instance still takes commands, but shows no compiled configuration', async () => {
    const before = await generations(a!);
    await on(a!).call('PUT', `/api/l4-upstreams/${upstreamId}`, { health_check_interval_ms: 20_000 });
    const path = `/api/l4-upstreams/${upstreamId}`;
    for (const service of [a!, b!]) {
      await eventually('the change is shown', async () => {
        const upstream = await on(service).call<{ health_check_interval_ms: number }>('GET', path);
        return upstream.health_check_interval_ms === 20_000 ? true : undefined;
      });
    }
    // Another instance pushes the change, and this one shows that it is applied.
    const [first, last] = await allApplied(a!);
    expect([first?.generation === before[0], (last?.generation ?? 0) > before[1]!]).toEqual([true, true]);
    const answer = await on(a!).send('GET', `/api/nodes/${nodeIds[0]}/config`);
    expect([answer.status, answer.body.error]).toEqual([
      503,
      expect.stringMatching(/^unavailable: .*ask another instance/),
    ]);
  }, 120_000);

  test('upgrading the old instance changes no generation', async () => {
    const before = await generations(b!);
    await a!.stop();
    await a!.start(newer);
    expect(await generations(a!)).toEqual(before);
    expect(await numbers(a!)).toHaveLength(2);
  }, 120_000);

  test('compiler:lower makes older instances serve at once and newer ones stop serving for good', async () => {
    const before = await generations(a!);
    await b!.stop();
    await b!.start({ unready: true });
    expect((await readiness(b!)).ready).toBe(false);
    const command = startProgram('../scripts/gateway-control', env, [
      'maintenance',
      'compiler:lower',
      String(compilerVersion),
    ]);
    await once(command.child, 'close');
    expect([command.child.exitCode, command.output()]).toEqual([
      0,
      expect.stringContaining(`is now at ${compilerVersion};`),
    ]);
    expect(command.output()).toContain('instances with a higher compiler version are running');
    expect(command.output().match(/\(compiler version \d+, started at/g)).toHaveLength(2);
    expect(command.output()).not.toContain('no instance with this compiler version');
    await becomes(b!, true);
    for (const service of [a!, c!]) {
      const { reasons } = await becomes(service, false);
      expect(reasons.join()).toContain('the number was lowered, so replace this instance by the older release');
      await noSessions(service);
    }
    expectHigher(
      (await allApplied(b!)).map(({ generation }) => generation),
      before,
    );
    expect(await originNames(b!)).toEqual(nodeIds.map(() => 'chain'));
    // An instance that no longer serves agents still takes commands, and does not raise the version again.
    await on(c!).call('PUT', `/api/l4-upstreams/${upstreamId}`, { health_check_interval_ms: 30_000 });
    await allApplied(b!);
    const [older, later] = [compilerVersion, newer.compilerVersion];
    expect(await numbers(b!)).toEqual([`${later} to ${older}`, `${older} to ${later}`, `0 to ${older}`]);
  }, 120_000);

  test('with every instance on the older release, agents are served as before the upgrade', async () => {
    await Promise.all([a!.stop(), c!.stop()]);
    await a!.start();
    await allApplied(a!);
    expect(await numbers(a!)).toHaveLength(3);
    expect(await originNames(a!)).toEqual(nodeIds.map(() => 'chain'));
  }, 120_000);

  test('throughout, no generation falls, no agent applies an older one, and traffic never stops', async () => {
    watching = false;
    await Promise.all(watches);
    expect(wentBack).toEqual([]);
    expect(looks).toBeGreaterThan(20);
    for (const agent of agents) {
      const lines = agent.output().matchAll(/"generation":"(\d+)".*"configuration applied"/g);
      const applied = Array.from(lines, ([, generation]) => Number(generation));
      expect(new Set(applied).size).toBeGreaterThanOrEqual(3);
      expect(applied).toEqual(applied.toSorted((x, y) => x - y));
      expect(agent.output()).not.toContain('older generation ignored');
    }
    const { lasting, fresh } = traffic!.echoes();
    expect(Math.min(lasting, fresh)).toBeGreaterThan(20);
    expect(traffic!.failures).toEqual([]);
  });
});
