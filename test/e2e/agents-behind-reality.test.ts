/**
 * The real service with REALITY before a target, and real agents as processes: they come in, apply, are cut off and come back,
 * and nothing of a killed one is left. Plain h2c meets the target.
 */
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join as pathOf } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startAgentProcess } from '../../scripts/stack/agent.js';
import { startDemoReality, type DemoReality } from '../../scripts/stack/demo-reality.js';
import { eventually, type RunningProgram } from '../../scripts/stack/process.js';
import type { RestClient } from '../../scripts/stack/rest-client.js';
import { prepareService, type ServiceProcess } from '../../scripts/stack/service.js';
import { join } from '../../src/agent/control/join.js';
import { readEndpoint } from '../../src/channel/reality/endpoint.js';
import { systemClock } from '../../src/kernel/clock.js';

interface NodeView {
  readonly status: string;
  readonly generation: number;
  readonly applied_generation: number | null;
}

const patienceMs = 60_000;
const running: RunningProgram[] = [];
let folder: string;
let reality: DemoReality;
let service: ServiceProcess;
let admin: RestClient;

beforeAll(async () => {
  folder = await mkdtemp(pathOf(tmpdir(), 'svc-reality-'));
  reality = await startDemoReality();
  service = await prepareService({ dataDir: folder, env: reality.env });
  await service.start();
  admin = await service.admin();
});
afterAll(async () => {
  await Promise.all(running.map((agent) => agent.stop('SIGKILL')));
  await service.stop();
  reality.close();
  await rm(folder, { recursive: true, force: true });
});

interface DemoNode {
  readonly id: string;
  readonly control_psk: string;
}

const createNode = (name: string): Promise<DemoNode> =>
  admin.call<DemoNode>('POST', '/api/nodes', { name, address: '127.0.0.1' });

function startAgent(node: DemoNode, controlEndpoint = reality.endpoint(service.controlEndpoint)): RunningProgram {
  const agent = startAgentProcess({ nodeId: node.id, controlEndpoint, controlPsk: node.control_psk });
  running.push(agent);
  return agent;
}

const isConverged = ({ id }: DemoNode) =>
  eventually(
    'the node is online and converged',
    async () => {
      const view = await admin.call<NodeView>('GET', `/api/nodes/${id}`);
      return view.status === 'online' && view.applied_generation === view.generation ? true : undefined;
    },
    patienceMs,
  );

const connections = async (): Promise<Record<string, number>> => {
  const text = await (await fetch(`${service.url}/metrics`)).text();
  const found = [...text.matchAll(/^svc_agent_(connections|reality_total)\{\w+="(\w+)"\} (\d+)$/gm)];
  return Object.fromEntries(found.map(([, , name, value]) => [name, Number(value)]));
};

test('an agent comes in, survives a kill -9 of the service, and leaves nothing behind when it is killed itself', async () => {
  expect(await admin.call('GET', '/api/nodes/control-endpoint')).toEqual({
    endpoint: reality.endpoint(service.controlEndpoint),
  });
  const node = await createNode('edge');
  const agent = startAgent(node);
  await isConverged(node);
  expect(await connections()).toMatchObject({ with_session: 1, agent: 1 });
  await service.kill();
  await service.start();
  await eventually(
    'the agent is back',
    async () => ((await connections())['with_session'] === 1 ? true : undefined),
    patienceMs,
  );
  await agent.stop('SIGKILL');
  await eventually(
    'no connection is left',
    async () => {
      const { sniffing, mirrored, without_session, with_session } = await connections();
      return [sniffing, mirrored, without_session, with_session].every((open) => open === 0) ? true : undefined;
    },
    patienceMs,
  );
});

test('a new PSK ends the session of an agent behind REALITY at once', async () => {
  const node = await createNode('revoked');
  const agent = startAgent(node);
  await isConverged(node);
  const reset = await admin.call<{ sessions_ended: boolean }>('POST', `/api/nodes/${node.id}/psk`);
  expect(reset.sessions_ended).toBe(true);
  await agent.stop('SIGKILL');
});

test('a machine joins through REALITY, by the endpoint of the line, and is a node', async () => {
  const { token, command } = await admin.call<{ token: string; command: string }>('POST', '/api/join-tokens', {
    name: 'hidden',
    name_prefix: 'joined-',
  });
  const [, address = ''] = /--endpoint '(reality:[^']+)'$/.exec(command) ?? [];
  const endpoint = readEndpoint(address);
  if (typeof endpoint === 'string') throw new Error(endpoint);
  const machine = { token, name: 'edge', requestId: randomBytes(16), agentVersion: 'test/1', clock: systemClock };
  const joined = await join({ ...machine, endpoint });
  if (joined.kind !== 'joined') throw new Error(joined.message);
  expect(joined.node_name).toBe('joined-edge');
  const node = { id: joined.node_id, control_psk: joined.control_psk };
  const agent = startAgent(node, address);
  await isConverged(node);
  await agent.stop('SIGKILL');
});

test('an agent that speaks plain h2c meets the target', async () => {
  const node = await createNode('plain');
  const before = (await connections())['stranger'] ?? 0;
  const agent = startAgent(node, service.controlEndpoint);
  await eventually(
    'it was joined to the target',
    async () => (((await connections())['stranger'] ?? 0) > before ? true : undefined),
    patienceMs,
  );
  expect((await admin.call<NodeView>('GET', `/api/nodes/${node.id}`)).status).toBe('pending');
  await agent.stop('SIGKILL');
});
