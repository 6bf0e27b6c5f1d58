/**
 * A node that reaches the service through a chain of its own, and a change that drops this chain: it comes back by itself and says
 * what it did. That it is not tried with the change again is in `../delivery/confirmed-changes.test.ts`, where days pass.
 * Implements `docs/contract/rollouts.md#confirmed-changes`.
 */
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startAgentProcess } from '../../scripts/stack/agent.js';
import { eventually, freePorts, type RunningProgram } from '../../scripts/stack/process.js';
import type { RestClient } from '../../scripts/stack/rest-client.js';
import { prepareService, type ServiceProcess } from '../../scripts/stack/service.js';
import { startBalancer, type Balancer } from '../support/balancer.js';

interface NodeView {
  readonly status: string;
  readonly generation: number;
  readonly applied_generation: number | null;
  readonly apply: { readonly state: string; readonly errors: readonly object[] };
}
interface FeedItem {
  readonly at: string;
  readonly data: { readonly generation: number; readonly state: string };
}

const confirmSecs = 60;
let folder: string;
let service: ServiceProcess;
let admin: RestClient;
/** The way from the agent to the service: straight, and once it has its chain, through that. */
let way: Balancer;
let ports: number[];
let agent: RunningProgram;
let node: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-e2e-'));
  service = await prepareService({ dataDir: join(folder, 'service') });
  await service.start();
  admin = await service.admin();
  const { host } = new URL(service.controlEndpoint);
  ports = [Number(host.split(':')[1])];
  way = await startBalancer(() => ports);
  const made = await admin.call<{ id: string; control_psk: string }>('POST', '/api/nodes', {
    name: 'far',
    address: '127.0.0.1',
  });
  node = made.id;
  agent = startAgentProcess({
    nodeId: node,
    controlEndpoint: `http://127.0.0.1:${way.port}`,
    controlPsk: made.control_psk,
    env: { SVC_AGENT_STATE_DIR: join(folder, 'agent') },
  });
}, 120_000);
afterAll(async () => {
  await agent.stop();
  await way.close();
  await service.stop();
  await rm(folder, { recursive: true, force: true });
}, 120_000);

const view = (): Promise<NodeView> => admin.call<NodeView>('GET', `/api/nodes/${node}`);
const until = (what: string, holds: (one: NodeView) => boolean, withinMs = 30_000): Promise<NodeView> =>
  eventually(
    what,
    async () => {
      const one = await view();
      return holds(one) ? one : undefined;
    },
    withinMs,
  );
const itemsOf = async (type: string): Promise<readonly FeedItem[]> =>
  (await admin.call<{ items: readonly FeedItem[] }>('GET', `/api/events?types=${type}&after=start&page_size=500`))
    .items;

test('a change that drops the chain through which a node reaches the service takes itself back', async () => {
  const [listen_port = 0] = await freePorts(1);
  const chain = await admin.call<{ id: string }>('POST', '/api/l4-chains', {
    name: 'home',
    payload: 'tcp',
    hops: [{ node_id: node, listen_addr: '127.0.0.1', listen_port, outer: 'tcp', security: 'raw' }],
    target: { endpoint: new URL(service.controlEndpoint).host },
  });
  await admin.call('POST', `/api/l4-chains/${chain.id}/deploy`);
  await until('the chain is applied', (one) => one.applied_generation === one.generation);
  const sessions = (await itemsOf('session')).length;
  ports = [listen_port];
  way.drop();
  await eventually('it is back through its chain', async () =>
    (await itemsOf('session')).length > sessions ? true : undefined,
  );
  const before = await view();

  const changedAt = performance.now();
  await admin.call('DELETE', `/api/l4-chains/${chain.id}?confirm=node&confirm_secs=${confirmSecs}`);
  const changed = (await view()).generation;
  expect(changed).toBeGreaterThan(before.generation);
  const after = await until(
    'the node is back, and has rejected the change',
    ({ status, apply }) => status === 'online' && apply.state === 'rejected',
    (confirmSecs + 30) * 1_000,
  );
  expect(performance.now() - changedAt).toBeGreaterThan(confirmSecs * 1_000);
  expect(after.apply.errors).toMatchObject([{ path: '', message: `not confirmed in ${confirmSecs} s` }]);
  await until('it runs what it ran before', (one) => one.applied_generation === before.applied_generation);
  expect(await readdir(join(folder, 'agent'))).toEqual([]);

  const told = await itemsOf('apply');
  expect(told.filter(({ data }) => data.generation === changed).map(({ data }) => data.state)).toEqual([
    'applied',
    'rejected',
  ]);
  expect(await view()).toMatchObject({ status: 'online', applied_generation: before.applied_generation });
}, 120_000);
