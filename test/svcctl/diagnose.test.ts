/** `svcctl diagnose` against the real service and a real agent (`docs/contract/automation.md#the-command-line-svcctl`). */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startAgentProcess } from '../../scripts/stack/agent.js';
import { eventually, freePorts, type RunningProgram } from '../../scripts/stack/process.js';
import type { RestClient } from '../../scripts/stack/rest-client.js';
import { startPretendService } from './support/pretend-service.js';
import { prepareServiceHere, type ServiceHere } from '../support/service-here.js';
import { createRunner, type Runner } from './support/run.js';

interface Created {
  readonly id: string;
  readonly control_psk: string;
}

let folder: string;
let service: ServiceHere;
let admin: RestClient;
let script: Runner;
let agent: RunningProgram;
let edge: Created;
/** Nobody listens there. */
let deadPeer: number;
let deadUpstream: number;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'svcctl-'));
  service = await prepareServiceHere({ dataDir: join(folder, 'data') });
  await service.start();
  admin = await service.admin();
  const { token } = await admin.call<{ token: string }>('POST', '/api/auth/tokens', { name: 'script', role: 'admin' });
  script = createRunner({ HOME: folder, SVC_SERVER: service.url, SVC_TOKEN: token });
  await admin.call('PUT', '/api/settings/connectivity', { heartbeat_interval_secs: 1 });
  edge = await admin.call<Created>('POST', '/api/nodes', { name: 'edge', address: '127.0.0.1' });
  const peer = await admin.call<Created>('POST', '/api/nodes', { name: 'gone', address: '127.0.0.1' });
  const { controlEndpoint } = service;
  agent = startAgentProcess({ nodeId: edge.id, controlEndpoint, controlPsk: edge.control_psk });
  const [first = 0, second = 0, third = 0, fourth = 0] = await freePorts(4);
  [deadPeer, deadUpstream] = [third, fourth];
  const raw = { listen_addr: '127.0.0.1', outer: 'tcp', security: 'raw' };
  const hop = (node_id: string, listen_port: number): object => ({ ...raw, node_id, listen_port });
  const web = { name: 'web', endpoint: `127.0.0.1:${deadUpstream}`, health_check_interval_ms: 3_600_000 };
  const { id: upstream_id } = await admin.call<Created>('POST', '/api/l4-upstreams', web);
  for (const [name, hops, target] of [
    ['through', [hop(edge.id, first), hop(peer.id, deadPeer)], { endpoint: '127.0.0.1:9' }],
    ['straight', [hop(edge.id, second)], { upstream_id }],
  ] as const) {
    const chain = await admin.call<Created>('POST', '/api/l4-chains', { name, payload: 'tcp', hops, target });
    await admin.call('POST', `/api/l4-chains/${chain.id}/deploy`);
  }
  await eventually('the node runs both chains', async () => {
    const { listeners } = await admin.call<{ listeners: { running: number } | null }>('GET', `/api/nodes/${edge.id}`);
    return listeners?.running === 2 ? true : undefined;
  });
}, 120_000);
afterAll(async () => {
  await agent?.stop();
  await service.stop();
  rmSync(folder, { recursive: true, force: true });
});

test('names the dead peer and the dead upstream of a node, and shows what runs and the end of the log', async () => {
  const { code, out, err } = await script.run(['diagnose', 'edge']);
  expect([code, err]).toEqual([0, '']);
  const [head, , ...lines] = out.split('\n');
  expect(head).toMatch(/^edge, reference-agent.*, 20\S+Z: 2 of \d+ failed$/);
  const failed = lines.slice(0, 2).toSorted();
  expect(failed[0]).toMatch(
    new RegExp(`^FAILED +next hop 127.0.0.1:${deadPeer} over raw tcp, of l4_chain "through" +not .*: ECONNREFUSED$`),
  );
  expect(failed[1]).toMatch(
    new RegExp(
      `^FAILED +upstream 127.0.0.1:${deadUpstream} over raw tcp, of l4_chain "straight" +not .*: ECONNREFUSED$`,
    ),
  );
  for (const line of [
    /^ok +versions +reference-agent.*, Node v/,
    /^ok +memory +\d+ MiB/,
    /^ok +descriptors +\d+ of \d+$/,
    /^ok +clock +\d+ ms (behind|ahead of) the service, give or take \d+ ms, \d+ s ago$/,
    /^ok +configuration +generation \d+ runs$/,
    /^ok +listener tcp 127.0.0.1:\d+ +running, 0 sessions$/,
  ])
    expect(lines).toContainEqual(expect.stringMatching(line));
  expect(lines).toContainEqual(expect.stringMatching(/^20\S+Z info configuration applied \{/));
  expect(out).not.toContain(edge.control_psk);
});

test('shows the last answer again as it is, and waits where the node was asked within a minute', async () => {
  const { code, out } = await script.run(['diagnose', 'edge', '--last', '-o', 'json']);
  expect([code, JSON.parse(out)]).toEqual([0, await admin.call('GET', `/api/nodes/${edge.id}/diagnostics`)]);
  const { items } = await admin.call<{ items: { state: string }[] }>('GET', `/api/nodes/${edge.id}/commands`);
  expect(items.map(({ state }) => state)).toEqual(['answered']);
  const soon = await script.run(['diagnose', 'edge', '--timeout', '1']);
  expect([soon.code, soon.err]).toEqual([
    1,
    expect.stringMatching(/^svcctl: edge has not taken the command in time: /),
  ]);
});

test('says so of a node that is away, and of a viewer who may not ask', async () => {
  const away = await script.run(['diagnose', 'gone']);
  expect([away.code, away.err]).toEqual([
    1,
    expect.stringMatching(/^svcctl: gone is pending: its agent cannot be asked/),
  ]);
  const never = await script.run(['diagnose', 'gone', '--last']);
  expect([never.code, never.err]).toEqual([1, 'svcctl: there are no diagnostics of gone\n']);
  const { token } = await admin.call<{ token: string }>('POST', '/api/auth/tokens', { name: 'v', role: 'viewer' });
  const viewer = await script.run(['diagnose', 'edge', '--last'], { env: { SVC_TOKEN: token } });
  expect([viewer.code, viewer.err]).toEqual([1, expect.stringContaining('expected the role operator or admin')]);
});

test.each([
  [['route_state'], 'queued', /^svcctl: edge runs an-agent\/1, which cannot run diagnostics\n$/, 0],
  [[], 'expired', /^svcctl: edge has not taken the command in time/, 1],
  [
    [],
    'delivered',
    /^svcctl: edge has taken the command and not answered: its agent, an-agent\/1, may be unable to\n$/,
    1,
  ],
])(
  'says of an agent with the features %j and a command that is %s what is known',
  async (features, state, sentence, asked) => {
    const id = '01a21a4f-0c34-7b1e-a1c9-6d2a5b7c8d9e';
    const node = { id, name: 'edge', status: 'online', features, agent_version: 'an-agent/1' };
    const pretend = await startPretendService(({ method, path }) => {
      if (path.startsWith('/api/auth/')) return { data: { username: 'ada', role: 'admin' } };
      if (method === 'POST') return { data: { id, command: 'RUN_DIAGNOSTICS', state: 'queued', expires_at: '' } };
      if (path.endsWith('/commands')) return { data: { items: [{ id, state }] } };
      if (path.endsWith(id)) return { data: node };
      return path.startsWith('/api/nodes?') ? { data: { items: [node], total: 1, page: 1, page_size: 1 } } : undefined;
    });
    try {
      const env = { SVC_SERVER: pretend.url };
      const { code, err } = await script.run(['diagnose', id, '--timeout', '1'], { env });
      expect([code, err]).toEqual([1, expect.stringMatching(sentence)]);
      expect(pretend.asked.filter((one) => one.startsWith('POST'))).toHaveLength(asked);
    } finally {
      await pretend.stop();
    }
  },
);
