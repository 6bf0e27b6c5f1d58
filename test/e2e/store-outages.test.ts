/**
 * Outages of the stores, with the real service and real agents. A start waits for its stores and says so. During an outage
 * reads continue where they can, commands answer 503, and agents keep their sessions and their traffic. Everything
 * recovers without a restart. Implements `docs/reference/faults.md#faults`.
 */
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startAgentProcess } from '../../scripts/stack/agent.js';
import { eventually, freePorts, type RunningProgram } from '../../scripts/stack/process.js';
import { createRestClient, type Answer, type RestClient } from '../../scripts/stack/rest-client.js';
import { prepareService, type ServiceProcess } from '../../scripts/stack/service.js';
import { startEventStoreDbProcess, type EventStoreDbProcess } from '../servers/eventstoredb-process.js';
import { ferretDbBuilt, startFerretDb, type FerretDb } from '../servers/ferretdb-process.js';

interface NodeView {
  readonly id: string;
  readonly status: string;
  readonly generation: number;
  readonly last_seen_at: string;
  readonly apply: { readonly state: string };
}
interface CreatedNode {
  readonly id: string;
  readonly control_psk: string;
}

/** No answer may take longer, whatever the stores do. */
const answerWithinMs = 12_000;
const password = 'not-to-be-seen-anywhere';

describe.skipIf(!ferretDbBuilt())('outages of the stores', () => {
  let folder: string;
  let service: ServiceProcess;
  let starting: Promise<void>;
  let admin: RestClient;
  let log: EventStoreDbProcess | undefined;
  let mongo: FerretDb | undefined;
  let logPort = 0;
  let mongoPort = 0;
  /** The servers that the chain can lead to, by what they answer; `leadsTo` is the current one. */
  const targets = new Map<string, Server>();
  let leadsTo = 'first';
  let entry = 0;
  let upstreamId = '';
  /** The node whose agent stays connected throughout. */
  let node: CreatedNode;
  let agent: RunningProgram;
  let sessions = 0;
  /** Nodes that get their agent only during an outage. */
  const spare: CreatedNode[] = [];
  const agents: RunningProgram[] = [];
  // Names of upstreams: acknowledged ones, and those whose 503 promised that nothing was written.
  const acknowledged = new Set<string>();
  const refused = new Set<string>();
  let counter = 0;

  const output = (): string => service.program().output();
  const lines = (text: string): number =>
    output()
      .split('\n')
      .filter((line) => line.includes(text)).length;
  const ready = async (): Promise<{ status: number; reasons: readonly string[] }> => {
    const answer = await fetch(`${service.url}/readyz`, { signal: AbortSignal.timeout(5_000) });
    return { status: answer.status, reasons: ((await answer.json()) as { reasons: string[] }).reasons };
  };
  /** What `/metrics` says of each store. */
  const storesUp = async (): Promise<Record<string, string>> => {
    const answer = await fetch(`${service.url}/metrics`, { signal: AbortSignal.timeout(5_000) });
    const samples = (await answer.text()).matchAll(/^svc_store_up\{store="(.*)"\} (\d)$/gm);
    return Object.fromEntries([...samples].map(([, store = '', up = '']) => [store, up]));
  };
  const view = (id: string): Promise<NodeView> => admin.call<NodeView>('GET', `/api/nodes/${id}`);
  const start = ({ id, control_psk }: CreatedNode): RunningProgram => {
    const { controlEndpoint } = service;
    const program = startAgentProcess({ nodeId: id, controlEndpoint, controlPsk: control_psk });
    agents.push(program);
    return program;
  };
  const converged = (id: string): Promise<NodeView> =>
    eventually(
      'the node has applied its newest configuration',
      async () => {
        const now = await view(id);
        return now.status === 'online' && now.apply.state === 'applied' ? now : undefined;
      },
      60_000,
    );
  const endpointOf = (name: string): string => `127.0.0.1:${(targets.get(name)!.address() as AddressInfo).port}`;
  const timesConnected = (): number => agent.output().split('connected to the service').length - 1;
  const traffic = async (): Promise<string> => {
    const answer = await fetch(`http://127.0.0.1:${entry}/`, {
      headers: { connection: 'close' },
      signal: AbortSignal.timeout(10_000),
    });
    return answer.text();
  };

  /** Sends a command and records what its answer promises. */
  async function command(): Promise<Answer> {
    const name = `u-${(counter += 1)}`;
    const answer = await admin.send('POST', '/api/l4-upstreams', { name, endpoint: '127.0.0.1:80' });
    if (answer.status === 201) acknowledged.add(name);
    else {
      expect(answer.body, output()).toMatchObject({ success: false, data: null });
      expect(answer.status).toBe(503);
      expect(answer.body.error).toMatch(/^unavailable: /);
      expect(JSON.stringify(answer.body)).not.toContain(password);
      const { error } = answer.body;
      if (error?.includes('nothing was written') === true) refused.add(name);
      else if (error?.includes('the change was written') === true) acknowledged.add(name);
      else expect(error).toContain('may have been');
    }
    return answer;
  }

  /** What is committed is answered with success and with the PSK, which is shown only once. */
  async function applied(name: string): Promise<void> {
    const document = `svc: 1\nset: ${name}\nnodes: {${name}: {}}\n`;
    const answer = await admin.send('POST', '/api/fleet/apply', { document, issue_psks: true });
    expect([answer.status, answer.body]).toEqual([
      200,
      expect.objectContaining({
        data: expect.objectContaining({
          control_psks: [{ node: name, control_psk: expect.stringMatching(/^svcpsk1_/) }],
        }),
      }),
    ]);
  }

  /** Waits until the service itself reports the outage. */
  const noticed = (store: string, expected = 503): Promise<unknown> =>
    eventually(`the service notices that the ${store} is away`, async () => {
      const { status, reasons } = await ready();
      const shown = await storesUp();
      return status === expected && reasons.some((reason) => reason.includes(`the ${store}`)) && shown[store] === '0'
        ? true
        : undefined;
    });

  /** Ready without a restart: commands work, their changes reach the agents, and every answer kept its promise. */
  async function recovered(pid: number): Promise<void> {
    await eventually('the service is ready', async () => ((await ready()).status === 200 ? true : undefined), 60_000);
    // Metrics are made once a second.
    await eventually('the metrics show both stores', async () =>
      Object.values(await storesUp()).join() === '1,1' ? true : undefined,
    );
    expect(service.program().pid).toBe(pid);
    expect(service.program().exited()).toBe(false);
    expect((await command()).status).toBe(201);
    const before = await view(node.id);
    await admin.call('PUT', `/api/l4-upstreams/${upstreamId}`, { health_check_interval_ms: 1_000 + (counter += 1) });
    expect((await converged(node.id)).generation).toBeGreaterThan(before.generation);
    expect(timesConnected(), agent.output()).toBe(sessions);
    expect(await traffic()).toBe(leadsTo);
    const { items } = await admin.call<{ items: { name: string }[] }>('GET', '/api/l4-upstreams?page_size=500');
    const names = items.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
    expect(names).toEqual(expect.arrayContaining([...acknowledged]));
    expect(names.filter((name) => refused.has(name))).toEqual([]);
  }

  /** An agent that starts during an outage: it is refused until the stores are back, and then connects by itself. */
  async function newcomer(): Promise<{ refused(): Promise<void>; gotIn(): Promise<void> }> {
    const created = spare.pop()!;
    const program = start(created);
    return {
      async refused() {
        await eventually('the new agent is refused', async () =>
          /gRPC status 14|"reason":"[A-Z_]*DRAINING"/.test(program.output()) ? true : undefined,
        );
        expect(program.output()).not.toContain('connected to the service');
      },
      async gotIn() {
        await converged(created.id);
        await program.stop();
      },
    };
  }

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'svc-outages-'));
    [logPort, mongoPort] = (await freePorts(2)) as [number, number];
    service = await prepareService({
      dataDir: folder,
      readyWithinMs: 120_000,
      env: {
        SVC_EVENTSTORE_URL: `esdb://svc:${password}@127.0.0.1:${logPort}?tls=false`,
        SVC_MONGODB_URL: `mongodb://127.0.0.1:${mongoPort}/svc?appName=${password}`,
        SVC_MASTER_KEY: Buffer.alloc(32, 5).toString('base64'),
      },
    });
    starting = service.start();
    starting.catch(() => undefined);
    for (const name of ['first', 'second']) {
      const server = createServer((_request, response) => response.end(name)).listen(0, '127.0.0.1');
      await once(server, 'listening');
      targets.set(name, server);
    }
  });

  afterAll(async () => {
    await Promise.all(agents.map((program) => program.stop()));
    await service.stop();
    for (const server of targets.values()) server.close();
    await mongo?.close();
    await log?.close();
    await rm(folder, { recursive: true, force: true });
  });

  test('a start waits for both stores, names them, and becomes ready when the second one is there', async () => {
    const waiting = (store: string, port: number): boolean =>
      output()
        .split('\n')
        .some((line) => line.includes('waiting for') && line.includes(store) && line.includes(`127.0.0.1:${port}`));
    await eventually('the log names both stores', async () =>
      waiting('EventStoreDB', logPort) && waiting('MongoDB', mongoPort) ? true : undefined,
    );
    expect((await fetch(`${service.url}/healthz`)).status).toBe(200);
    const { status, reasons } = await ready();
    expect(status).toBe(503);
    expect(reasons).toContain('the service is starting; its log says what it waits for');
    expect([...reasons].slice(1).sort()).toEqual(['waiting for EventStoreDB', 'waiting for MongoDB']);
    const early = await fetch(`${service.url}/api/nodes`);
    expect(early.status).toBe(503);
    expect(await early.json()).toMatchObject({
      success: false,
      data: null,
      error: expect.stringMatching(/^unavailable: /),
    });
    log = await startEventStoreDbProcess(logPort);
    await eventually('the log says that EventStoreDB can be used', async () =>
      /"store":"EventStoreDB"[^\n]*can be used now/.test(output()) ? true : undefined,
    );
    expect(output()).not.toMatch(/"store":"MongoDB"[^\n]*can be used now/);
    expect((await ready()).status).toBe(503);
    // EventStoreDB is lost again before MongoDB is there: the start begins again.
    await log.kill();
    mongo = await startFerretDb(mongoPort);
    await eventually('the log says that the service is starting again', async () =>
      lines('starting again') > 0 ? true : undefined,
    );
    await log.restart();
    await starting;
    expect(output()).not.toContain(password);
    expect(lines('waiting for')).toBeLessThanOrEqual(5);

    const token = await createRestClient(service.url).call<{ token: string }>('POST', '/api/auth/login', {
      username: 'admin',
      password: 'a password for the demo only',
    });
    admin = createRestClient(service.url, token.token, answerWithinMs);
    await admin.call('PUT', '/api/settings/connectivity', { heartbeat_interval_secs: 1 });
    const create = (name: string): Promise<CreatedNode> =>
      admin.call<CreatedNode>('POST', '/api/nodes', { name, address: '127.0.0.1' });
    node = await create('n');
    for (const name of ['s1', 's2', 's3', 's4', 's5']) spare.push(await create(name));
    agent = start(node);
    [entry] = (await freePorts(1)) as [number];
    const upstream = { name: 'u', endpoint: endpointOf('first') };
    upstreamId = (await admin.call<{ id: string }>('POST', '/api/l4-upstreams', upstream)).id;
    const hop = { node_id: node.id, listen_addr: '127.0.0.1', listen_port: entry, outer: 'tcp', security: 'raw' };
    const body = { name: 'c', payload: 'tcp', hops: [hop], target: { upstream_id: upstreamId } };
    const chain = await admin.call<{ id: string }>('POST', '/api/l4-chains', body);
    await converged(node.id);
    await admin.call('POST', `/api/l4-chains/${chain.id}/deploy?wait=applied`);
    expect(await traffic()).toBe(leadsTo);
    sessions = timesConnected();
  }, 120_000);

  test.each([
    ['killed', () => log!.kill(), () => log!.restart()],
    ['frozen', async () => log!.freeze(), async () => log!.thaw()],
  ])(
    'with EventStoreDB %s, reads continue, commands answer 503, sessions and traffic stay',
    async (how, lose, restore) => {
      const { pid } = service.program();
      await lose();
      const lostAt = Date.now();
      const first = command();
      await noticed('event store');
      const late = await newcomer();
      const answers = await Promise.all([first, command(), command()]);
      expect(answers.map(({ status }) => status)).toEqual([503, 503, 503]);
      expect(answers[2]!.body.error).toContain('the event store');
      for (const path of ['/api/nodes', `/api/nodes/${node.id}`, '/api/l4-upstreams', '/api/l4-chains', '/api/auth/me'])
        expect((await admin.send('GET', path)).status, path).toBe(200);
      await late.refused();
      // Until the loss of the subscription counts as an outage.
      if (how === 'killed')
        await eventually('the log says cut_off', async () => (lines('"now":"cut_off"') > 0 ? true : undefined));
      expect(await traffic()).toBe(leadsTo);
      await eventually('a heartbeat is recorded', async () => {
        const { status, last_seen_at } = await view(node.id);
        return status === 'online' && Date.parse(last_seen_at) > lostAt ? true : undefined;
      });
      expect(timesConnected(), agent.output()).toBe(sessions);
      await restore();
      await recovered(pid);
      await late.gotIn();
    },
    120_000,
  );

  test.each([
    ['killed', () => mongo!.kill(), () => mongo!.restart()],
    ['frozen', async () => mongo!.freeze(), async () => mongo!.thaw()],
  ])(
    'with MongoDB %s, commands go on, the fleet is shown as it was told last, only stored read models answer 503',
    async (how, lose, restore) => {
      const { pid } = service.program();
      // Its claim needs the read store; the answer to the heartbeat must not wait for that.
      await admin.call('POST', `/api/nodes/${node.id}/commands`, { command: 'RUN_DIAGNOSTICS' });
      await lose();
      const lostAt = Date.now();
      // Before the service notices the outage, and once it has (below).
      await applied(`${how}-1`);
      expect((await command()).status).toBe(201);
      const nodes = ['/api/nodes', `/api/nodes/${node.id}`, '/api/dashboard/stats'];
      const pendingReads = nodes.map((path) => admin.send('GET', path));
      const pendingAudit = admin.send('GET', '/api/audit');
      if (how === 'frozen') {
        const moved = await admin.send('PUT', `/api/l4-upstreams/${upstreamId}`, { endpoint: endpointOf('second') });
        expect(moved.status).toBe(200);
        leadsTo = 'second';
        await eventually('the agent has the change', async () => ((await traffic()) === leadsTo ? true : undefined));
      }
      await noticed('read store', 200);
      await applied(`${how}-2`);
      const late = await newcomer();
      for (const answer of await Promise.all(pendingReads)) expect(answer.status).toBe(200);
      const audit = await pendingAudit;
      expect([audit.status, audit.body.error]).toEqual([503, expect.stringMatching(/^unavailable: /)]);
      expect((await command()).status).toBe(201);
      expect((await admin.send('POST', '/api/credentials', { name: how, key_type: 'x25519' })).status).toBe(201);
      expect((await admin.send('PUT', `/api/nodes/${node.id}`, { description: how })).status).toBe(200);
      for (const path of [...nodes, `/api/nodes/${node.id}/config`, `/api/l4-upstreams/${upstreamId}`]) {
        const answer = await admin.send('GET', path);
        expect([path, answer.status, answer.headers.get('x-telemetry-stale')]).toEqual([path, 200, 'true']);
      }
      expect(await view(node.id)).toMatchObject({ status: 'online', description: how });
      await late.refused();
      // Longer than an agent waits for missing answers to its heartbeats.
      await delay(Math.max(0, lostAt + 4_500 - Date.now()));
      expect(await traffic()).toBe(leadsTo);
      expect(timesConnected(), agent.output()).toBe(sessions);
      await restore();
      await eventually('the node is online', async () =>
        (await view(node.id)).status === 'online' ? true : undefined,
      );
      await recovered(pid);
      await late.gotIn();
    },
    120_000,
  );

  test('with both stores killed, commands answer 503, the fleet is shown, traffic stays, and all recovers', async () => {
    const { pid } = service.program();
    await Promise.all([log!.kill(), mongo!.kill()]);
    await Promise.all([noticed('event store'), noticed('read store')]);
    const late = await newcomer();
    expect((await command()).status).toBe(503);
    const shown = await admin.send('GET', '/api/nodes');
    expect([shown.status, shown.headers.get('x-telemetry-stale')]).toEqual([200, 'true']);
    await late.refused();
    expect(await traffic()).toBe(leadsTo);
    await mongo!.restart();
    await delay(1_000);
    await log!.restart();
    await recovered(pid);
    await late.gotIn();
  }, 120_000);

  test('the log has one line for the begin and one for the end of each outage, and no secret', () => {
    expect(output()).not.toContain(password);
    for (const store of ['event store', 'read store']) {
      expect(lines(`"store":"${store}"`)).toBe(6);
    }
    // Requests aside: the test itself makes as many as the machine gives it time for.
    expect(lines('') - lines('"msg":"request"')).toBeLessThan(200);
  });
});
