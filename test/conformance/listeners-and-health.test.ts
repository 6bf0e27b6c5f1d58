/**
 * What an agent reports of its listeners, on its node, its chain and the chain's deployment, and what it makes of the
 * chain's health (`docs/contract/rest.md#nodes`, `docs/contract/domain.md#health-of-a-chain`).
 */
import { afterAll, expect, it } from 'vitest';
import { applied, attach, configRequest, enrol, heartbeat, rejected, runtimeListener } from './support/agent.js';
import type { Attached } from './support/agent.js';
import { createChain, createNode, deploy, port, rawHop, rfc3339 } from './support/resources.js';
import type { Chain, Deployment, NodeData } from './support/resources.js';
import { sharedService } from './support/running.js';

const shared = sharedService();
let agent: Attached | undefined;
afterAll(() => agent?.link.close());

it('a chain is unknown, ok, down and degraded as its agent reports, in its answers and in its list', async () => {
  const { api, service } = shared;
  const node = await createNode(api);
  const listen = port();
  const { id } = await createChain(api, { hops: [rawHop(node.id, listen)] });
  const show = (): Promise<Chain> => api.ok('GET', `/api/l4-chains/${id}`);
  const shows = (want: object): Promise<void> =>
    expect.poll(show, { timeout: 10_000, interval: 50 }).toMatchObject(want);
  const listed = async (health: string): Promise<readonly string[]> =>
    (await api.ok<{ items: readonly Chain[] }>('GET', `/api/l4-chains?health=${health}`)).items.map((one) => one.id);
  const report = async (sequence: bigint, ...states: readonly string[]): Promise<void> => {
    const runtimeListeners = states.map((state) => runtimeListener({ listenPort: listen, state }));
    control.say(heartbeat(sequence, { runtimeListeners }));
    await control.heartbeatResponse();
  };

  await deploy(api, { id });
  await shows({ health: { state: 'unknown' }, listeners: null, hop_status: [{ status: 'pending', state: null }] });
  agent = await attach(service.controlEndpoint, enrol(node.id, node.control_psk));
  const { control } = agent;
  control.say(configRequest());
  control.say(applied(await control.snapshot()));
  await shows({ health: { state: 'unknown' }, hop_status: [{ status: 'online', state: null, reported_at: null }] });

  await report(1n, 'running');
  const listeners = { intended: 1, running: 1, failed: [] };
  const at = expect.stringMatching(rfc3339) as unknown;
  await shows({
    health: { state: 'ok', reasons: [] },
    listeners,
    hop_status: [{ node_id: node.id, node_name: node.name, status: 'online', state: 'running', reported_at: at }],
  });
  expect((await api.ok<NodeData>('GET', `/api/nodes/${node.id}`)).listeners).toEqual(listeners);

  await report(2n, 'failed');
  await shows({ health: { state: 'down' }, hop_status: [{ state: 'failed' }] });
  await expect.poll(() => listed('down'), { timeout: 10_000 }).toEqual([id]);
  await report(3n);
  await shows({ health: { state: 'down' }, hop_status: [{ state: 'missing' }] });
  const failed = [{ transport: 'tcp', listen_addr: '0.0.0.0', listen_port: listen, state: 'missing' }];
  const { items } = await api.ok<{ items: readonly Deployment[] }>('GET', `/api/l4-chains/${id}/deployments`);
  expect(items[0]?.nodes[0]?.listeners).toEqual({ intended: 1, running: 0, failed });

  await report(4n, 'running');
  await api.ok('POST', `/api/nodes/${node.id}/config`);
  const error = { resourceType: 'l4_chain', resourceId: id, path: 'hops[0].security', message: 'not supported' };
  control.say(rejected(await control.snapshot(), [error]));
  await shows({ health: { state: 'degraded', reasons: [expect.stringContaining(`"${node.name}" has rejected`)] } });
  expect(await listed('ok')).toEqual([]);

  agent.link.close();
  await shows({ health: { state: 'down', reasons: [expect.stringContaining(`"${node.name}" is offline`)] } });
});
