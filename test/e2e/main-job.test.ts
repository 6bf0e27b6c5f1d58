/**
 * The main job with the real service and real agents as processes: connect, deploy, relay, edit, reject, restart. On
 * EventStoreDB and MongoDB, `several-instances.test.ts` does the same with two instances.
 */
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startAgentProcess } from '../../scripts/stack/agent.js';
import { eventually, freePorts, type RunningProgram } from '../../scripts/stack/process.js';
import type { RestClient } from '../../scripts/stack/rest-client.js';
import { prepareService, type ServiceProcess } from '../../scripts/stack/service.js';

interface NodeView {
  readonly status: string;
  readonly generation: number;
  readonly apply: { readonly state: string };
}

interface DeployedNode {
  readonly state: string;
  readonly errors: readonly { readonly path: string; readonly resource_id: string }[];
}

describe('the main job', () => {
  let folder: string;
  let service: ServiceProcess;
  let admin: RestClient;
  const agents = new Map<string, RunningProgram>();
  const targets: Server[] = [];
  const nodes = new Map<string, { readonly id: string; readonly psk: string }>();

  async function target(name: string): Promise<number> {
    const server = createServer((_request, response) => response.end(name));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    targets.push(server);
    return (server.address() as AddressInfo).port;
  }

  const view = (name: string): Promise<NodeView> => admin.call<NodeView>('GET', `/api/nodes/${nodes.get(name)?.id}`);

  async function through(port: number): Promise<string> {
    const response = await fetch(`http://127.0.0.1:${port}/`, {
      headers: { connection: 'close' },
      signal: AbortSignal.timeout(5_000),
    });
    return response.text();
  }

  function startAgent(name: string): void {
    const node = nodes.get(name)!;
    agents.set(
      name,
      startAgentProcess({ nodeId: node.id, controlEndpoint: service.controlEndpoint, controlPsk: node.psk }),
    );
  }

  const converged = (name: string): Promise<NodeView> =>
    eventually(`${name} runs its newest configuration`, async () => {
      const node = await view(name);
      return node.status === 'online' && node.apply.state === 'applied' ? node : undefined;
    });

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'svc-e2e-'));
    service = await prepareService({ dataDir: folder });
    await service.start();
    admin = await service.admin();
    await admin.call('PUT', '/api/settings/connectivity', { heartbeat_interval_secs: 1 });
    for (const name of ['a', 'b']) {
      const made = await admin.call<{ id: string; control_psk: string }>('POST', '/api/nodes', {
        name,
        address: '127.0.0.1',
      });
      nodes.set(name, { id: made.id, psk: made.control_psk });
      startAgent(name);
    }
    await Promise.all([converged('a'), converged('b')]);
  }, 120_000);

  afterAll(async () => {
    await Promise.all([...agents.values()].map((agent) => agent.stop()));
    await service.stop();
    for (const server of targets) server.close();
    await rm(folder, { recursive: true, force: true });
  }, 120_000);

  test('a deployed chain carries traffic, and an edit of its upstream gives only the last hop a new generation', async () => {
    const [first, second] = [await target('first'), await target('second')];
    const [entry, middle] = await freePorts(2);
    const upstream = await admin.call<{ id: string }>('POST', '/api/l4-upstreams', {
      name: 'web',
      endpoint: `127.0.0.1:${first}`,
    });
    const hops = [
      { node_id: nodes.get('a')!.id, listen_addr: '127.0.0.1', listen_port: entry, outer: 'tcp', security: 'raw' },
      { node_id: nodes.get('b')!.id, listen_addr: '127.0.0.1', listen_port: middle, outer: 'tcp', security: 'raw' },
    ];
    const body = { name: 'c', payload: 'tcp', hops, target: { upstream_id: upstream.id } };
    const chain = await admin.call<{ id: string; status: string }>('POST', '/api/l4-chains', body);
    expect(chain.status).toBe('draft');
    const deployed = await admin.call<{ chain: { status: string }; deployment: { nodes: { state: string }[] } }>(
      'POST',
      `/api/l4-chains/${chain.id}/deploy?wait=applied`,
    );
    expect(deployed.chain.status).toBe('deployed');
    expect(deployed.deployment.nodes.map((node) => node.state)).toEqual(['applied', 'applied']);
    expect(await through(entry!)).toBe('first');

    const [a, b] = [await view('a'), await view('b')];
    await admin.call('PUT', `/api/l4-upstreams/${upstream.id}`, { endpoint: `127.0.0.1:${second}` });
    await eventually('the new target answers', async () => ((await through(entry!)) === 'second' ? true : undefined));
    expect((await view('a')).generation).toBe(a.generation);
    expect((await view('b')).generation).toBeGreaterThan(b.generation);
  }, 120_000);

  test('a snapshot that the agent cannot run is rejected as a whole, and a listener on the same port carries its traffic on', async () => {
    const [entry] = await freePorts(1);
    const onEntry = { node_id: nodes.get('a')!.id, listen_addr: '127.0.0.1', listen_port: entry, outer: 'tcp' };
    const deploy = async (name: string, hop: object, end: object): Promise<readonly [string, DeployedNode]> => {
      const body = { name, payload: 'tcp', hops: [hop], target: end };
      const chain = await admin.call<{ id: string }>('POST', '/api/l4-chains', body);
      const { deployment } = await admin.call<{ deployment: { nodes: readonly [DeployedNode] } }>(
        'POST',
        `/api/l4-chains/${chain.id}/deploy?wait=applied`,
      );
      return [chain.id, deployment.nodes[0]];
    };
    const [plain, node] = await deploy(
      'plain',
      { ...onEntry, security: 'raw' },
      { endpoint: `127.0.0.1:${await target('the plain target')}` },
    );
    expect(node.state).toBe('applied');
    const overQuic = { outer: 'quic', public_key: 'A'.repeat(43), server_name: 'hidden.example', short_id: '' };
    const [hidden, refused] = await deploy(
      'hidden',
      { ...onEntry, security: 'raw', server_names: ['front.example'] },
      { endpoint: `127.0.0.1:${await target('the hidden target')}`, reality: overQuic },
    );
    expect(refused).toMatchObject({
      state: 'rejected',
      errors: [{ resource_type: 'l4_chain', resource_id: hidden, path: expect.stringContaining('outer') }],
    });
    expect(await through(entry!)).toBe('the plain target');
    await admin.call('DELETE', `/api/l4-chains/${hidden}`);
    await admin.call('DELETE', `/api/l4-chains/${plain}`);
    await converged('a');
  }, 120_000);

  test('after kill -9 and a restart agents return by themselves, generations are unchanged, and a repeated POST creates nothing twice', async () => {
    const headers = { 'idempotency-key': 'the-one' };
    const body = { name: 'once', issue_psk: true };
    const first = await admin.send('POST', '/api/nodes', body, headers);
    expect(first.status).toBe(201);
    const before = [await converged('a'), await converged('b')].map((node) => node.generation);
    await service.kill();
    await service.start();
    admin = await service.admin();
    const again = await admin.send('POST', '/api/nodes', body, headers);
    expect(again.status).toBe(201);
    expect(again.body.data?.['id']).toBe(first.body.data?.['id']);
    expect(again.body.data?.['control_psk']).toBeNull();
    expect((await admin.send('POST', '/api/nodes', { name: 'other' }, headers)).status).toBe(409);
    const after = [await converged('a'), await converged('b')].map((node) => node.generation);
    expect(after).toEqual(before);
  }, 120_000);
});
