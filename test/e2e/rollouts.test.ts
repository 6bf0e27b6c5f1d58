/** Rollouts with the real service and real agents: a change in waves, over a kill of the service, and one that takes itself back. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startAgentProcess } from '../../scripts/stack/agent.js';
import { eventually, freePorts, type RunningProgram } from '../../scripts/stack/process.js';
import type { RestClient } from '../../scripts/stack/rest-client.js';
import { prepareService, type ServiceProcess } from '../../scripts/stack/service.js';

interface NodeView {
  readonly name: string;
  readonly generation: number;
  readonly applied_generation: number | null;
  readonly held_by: string | null;
  readonly apply: { readonly state: string };
}
interface RolloutView {
  readonly state: string;
  readonly wave: number;
  readonly reason: string | null;
  readonly waves: readonly { readonly counts: { readonly [state: string]: number } }[];
}

const names = ['a', 'b', 'c'];
let folder: string;
let service: ServiceProcess;
let admin: RestClient;
let upstream: string;
const agents: RunningProgram[] = [];

const nodes = async (): Promise<readonly NodeView[]> =>
  (await admin.call<{ items: readonly NodeView[] }>('GET', '/api/nodes')).items;
const rollout = (id: string): Promise<RolloutView> => admin.call<RolloutView>('GET', `/api/rollouts/${id}`);
const reaches = (id: string, what: (one: RolloutView) => boolean): Promise<RolloutView> =>
  eventually(`the rollout ${id} moves on`, async () => {
    const one = await rollout(id);
    return what(one) ? one : undefined;
  });
const allConverged = (): Promise<readonly NodeView[]> =>
  eventually('every node runs its newest configuration', async () => {
    const all = await nodes();
    return all.every((node) => node.applied_generation === node.generation && node.apply.state === 'applied')
      ? all
      : undefined;
  });

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-e2e-'));
  service = await prepareService({ dataDir: folder });
  await service.start();
  admin = await service.admin();
  // Short, because nothing is judged for that long after a start.
  await admin.call('PUT', '/api/settings/connectivity', { heartbeat_interval_secs: 1, offline_after_secs: 3 });
  const [free] = await freePorts(1);
  ({ id: upstream } = await admin.call<{ id: string }>('POST', '/api/l4-upstreams', {
    name: 'web',
    endpoint: `127.0.0.1:${free}`,
  }));
  for (const [index, listen_port] of (await freePorts(names.length)).entries()) {
    const body = { name: names[index], address: '127.0.0.1' };
    const { id, control_psk } = await admin.call<{ id: string; control_psk: string }>('POST', '/api/nodes', body);
    const hops = [{ node_id: id, listen_addr: '127.0.0.1', listen_port, outer: 'tcp', security: 'raw' }];
    const chain = { name: `front-${names[index]}`, payload: 'tcp', hops, target: { upstream_id: upstream } };
    const made = await admin.call<{ id: string }>('POST', '/api/l4-chains', chain);
    await admin.call('POST', `/api/l4-chains/${made.id}/deploy`);
    agents.push(startAgentProcess({ nodeId: id, controlEndpoint: service.controlEndpoint, controlPsk: control_psk }));
  }
  await allConverged();
}, 120_000);
afterAll(async () => {
  await Promise.all(agents.map((agent) => agent.stop()));
  await service.stop();
  await rm(folder, { recursive: true, force: true });
}, 120_000);

describe('a change in waves', () => {
  test('reaches one node after the other, and goes on after the service was killed', async () => {
    const policy = { name: 'one-by-one', waves: [{ nodes: 1 }, { nodes: 1 }], bake_secs: 1 };
    await admin.call('POST', '/api/rollout-policies', policy);
    const before = await nodes();
    const [free] = await freePorts(1);
    const { rollout_id: id } = await admin.call<{ rollout_id: string }>(
      'PUT',
      `/api/l4-upstreams/${upstream}?rollout=one-by-one`,
      { endpoint: `127.0.0.1:${free}` },
    );
    await eventually('the first node has the change', async () => {
      const [a] = await nodes();
      return a?.applied_generation === a?.generation ? a : undefined;
    });
    for (const [index, node] of (await nodes()).slice(1).entries()) {
      if (node.held_by !== id) continue;
      expect(node).toMatchObject({ applied_generation: before[index + 1]?.applied_generation });
    }
    await service.kill();
    await service.start();
    admin = await service.admin();
    const ended = await reaches(id, ({ state }) => state !== 'running' && state !== 'baking');
    expect(ended).toMatchObject({ state: 'completed', wave: 3, reason: null });
    expect((await allConverged()).map(({ held_by }) => held_by)).toEqual([null, null, null]);
  }, 120_000);

  test('takes itself back when its first node rejects it, and no other node ever sees it', async () => {
    const policy = { name: 'careful', waves: [{ nodes: 1 }], bake_secs: 1, on_failure: 'revert' };
    await admin.call('POST', '/api/rollout-policies', policy);
    // The reference agent does not multiplex.
    const [multiplex_port] = await freePorts(1);
    const { rollout_id: id } = await admin.call<{ rollout_id: string }>(
      'PUT',
      '/api/settings/connectivity?rollout=careful',
      { multiplex: true, multiplex_port },
    );
    const ended = await reaches(id, ({ state }) => !['running', 'baking', 'reverting'].includes(state));
    expect(ended).toMatchObject({ state: 'reverted', wave: 1 });
    expect(ended.reason).toContain('1 node failed by wave 1');
    await allConverged();
    expect(await admin.call('GET', '/api/settings/connectivity')).toMatchObject({ multiplex: false });
    const { items } = await admin.call<{ items: readonly { type: string; data: { node_name: string } }[] }>(
      'GET',
      '/api/events?types=apply&after=start&page_size=500',
    );
    const rejects = items.filter(({ data }) => 'state' in data && data.state === 'rejected');
    expect([...new Set(rejects.map(({ data }) => data.node_name))]).toEqual(['a']);
  }, 120_000);
});

test('a change that nobody confirms is undone by itself, over a kill of the service', async () => {
  const path = `/api/l4-upstreams/${upstream}`;
  const { endpoint: before } = await admin.call<{ endpoint: string }>('GET', path);
  const [free] = await freePorts(1);
  await admin.call('PUT', `${path}?confirm=manual&confirm_secs=30`, { endpoint: `127.0.0.1:${free}` });
  interface Entry {
    readonly id: string;
    readonly actor: { readonly type: string };
    readonly reverts: string | null;
    readonly reverted_by: string | null;
  }
  const entries = async (): Promise<readonly Entry[]> =>
    (await admin.call<{ items: readonly Entry[] }>('GET', `/api/audit?resource_id=${upstream}`)).items;
  const [change] = await entries();
  expect((await admin.send('PUT', path, { health_check_interval_ms: 7_000 })).status).toBe(409);
  await service.kill();
  await service.start();
  admin = await service.admin();
  await eventually(
    'the change is undone',
    async () => {
      const { endpoint } = await admin.call<{ endpoint: string }>('GET', path);
      return endpoint === before ? true : undefined;
    },
    100_000,
  );
  const all = await entries();
  const undone = all.find(({ id }) => id === change?.id);
  expect(all.find(({ id }) => id === undone?.reverted_by)).toMatchObject({
    actor: { type: 'system' },
    reverts: change?.id,
  });
  expect((await admin.send('PUT', path, { health_check_interval_ms: 7_000 })).status).toBe(200);
  await allConverged();
}, 180_000);
