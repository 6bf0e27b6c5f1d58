/**
 * The longest turn of the event loop for each kind of request, with 10,000 nodes, 2,000 upstreams and 20,000 chains, and no
 * agent connected. The aim is 50 ms of processor time of the main thread; wall-clock time also depends on the machine. Reads are
 * sent three times, and the first does not count, because Node compiles then. `--only` selects requests by their beginnings.
 */
import { request as httpRequest } from 'node:http';
import { join } from 'node:path';
import { createRestClient, type RestClient } from '../scripts/stack/rest-client.js';
import { rounded, type Figure, type Report } from './figures.js';
import { nodeId, upstreamId } from './fleet-log.js';
import type { BenchOptions } from './options.js';
import type { LongestTurn } from './processes/turn-meter.js';
import { withFolder, withService, writeFleet } from './stack.js';

const shape = { nodes: 10_000, upstreams: 2_000, chains: 20_000 };
const quickShape: typeof shape = { nodes: 100, upstreams: 50, chains: 200 };
const answerWithinMs = 300_000;

interface Chain {
  readonly id: string;
  readonly hops: readonly object[];
  readonly target: object;
}

export async function turns({ quick, only }: BenchOptions): Promise<Report> {
  const size = quick ? quickShape : shape;
  return withFolder(async (folder) => {
    const dataDir = join(folder, 'data');
    await writeFleet(dataDir, { shape: size });
    const socket = join(folder, 'turns');
    const meter = new URL('processes/turn-meter.js', import.meta.url).href;
    const env = { NODE_OPTIONS: `--import=${meter}`, TURN_METER: socket };
    const figures: Record<string, Figure> = {};
    await withService({ dataDir, env }, async ({ process, token }) => {
      const rest = createRestClient(process.url, token, answerWithinMs);
      const row = async <T>(name: string, run: () => Promise<T>, times = 1): Promise<T> => {
        let answer = times > 1 ? await run() : undefined;
        const all: (LongestTurn & { readonly ms: number })[] = [];
        for (let time = Math.min(times, 2); time <= times; time += 1) {
          await ask(socket, '/begin');
          const began = performance.now();
          answer = await run();
          const ms = performance.now() - began;
          all.push({ ms, ...(await ask(socket, '/end')) });
        }
        const worst = (figure: keyof (typeof all)[number]) => rounded(Math.max(...all.map((one) => one[figure])));
        if (only.length === 0 || only.some((begin) => name.startsWith(begin)))
          figures[name] = { ms: worst('ms'), turn_ms: worst('wall'), turn_processor_ms: worst('processor') };
        return answer as T;
      };
      await reads(row, rest, process.url);
      await changes(row, rest, size.upstreams);
    });
    return { bench: 'turns', figures };
  });
}

type Row = <T>(name: string, run: () => Promise<T>, times?: number) => Promise<T>;

async function reads(row: Row, rest: RestClient, url: string): Promise<void> {
  const { items } = await rest.call<{ items: readonly Chain[] }>('GET', '/api/l4-chains?page_size=1');
  const [chain, node, upstream] = [items[0]?.id, nodeId(1), upstreamId(1)];
  const lists: { readonly [path: string]: readonly string[] } = {
    nodes: ['', 'q=99', 'status=pending', 'apply=none', 'listeners=missing', 'label=tier%3Dedge', 'sort=-updated_at'],
    'l4-chains': ['', 'q=99', `node_id=${node}`, 'status=deployed', 'health=unknown', 'sort=-name'],
    'l4-upstreams': ['', 'q=99', 'health=unknown'],
    audit: [
      '',
      'resource_type=node',
      `resource_id=${node}`,
      'actor=operator',
      'action=l4_chain.deploy',
      'q=edge-99',
      'q=e',
      'not_resource_type=session',
      'resource_type=node,l4_upstream',
    ],
    events: ['after=start'],
  };
  const paths = Object.entries(lists).flatMap(([path, queries]) =>
    queries.map((one) => `/api/${path}?page_size=500&${one}`),
  );
  paths.push('/api/nodes?page_size=500&page=20', '/api/l4-chains?page_size=500&page=40');
  paths.push(
    '/api/nodes/ports',
    '/api/nodes/ports?running=false',
    '/api/nodes/ports/runtime',
    '/api/nodes/ports/runtime?intended=true',
    '/api/nodes/links',
    '/api/credentials?page_size=500&sort=not_after',
    '/api/nodes/labels',
    '/api/topology?group_by=tier',
    '/api/topology?group_by=tier&only=wrong',
    '/api/topology?group_by=tier&group=edge',
    '/api/topology?group_by=tier&group=',
  );
  for (const part of ['', '/referrers', '/free-ports', '/links', '/metrics', '/history', '/config'])
    paths.push(`/api/nodes/${node}${part}`);
  for (const part of ['', '/plan', '/deployments', '/links', '/history']) paths.push(`/api/l4-chains/${chain}${part}`);
  for (const part of ['', '/health', '/history']) paths.push(`/api/l4-upstreams/${upstream}${part}`);
  for (const other of [
    'dashboard/stats',
    'dashboard/history',
    'dashboard/history?step=1m',
    'settings/connectivity',
    'auth/users',
    'fleet/sets',
  ])
    paths.push(`/api/${other}`);
  for (const path of paths) await row(`GET ${path}`, () => rest.call('GET', path), 3);
  for (const path of ['/metrics', '/openapi.json', '/readyz'])
    await row(`GET ${path}`, async () => (await fetch(url + path)).text(), 3);
  await row('GET /api/fleet/export', () => rest.call('GET', '/api/fleet/export?set='), 3);
}

async function changes(row: Row, rest: RestClient, upstreams: number): Promise<void> {
  const post = (path: string, body?: object): Promise<{ readonly id: string }> => rest.call('POST', path, body);
  const put = (path: string, body: object) => rest.call('PUT', path, body);
  const { items } = await rest.call<{ items: readonly Chain[] }>('GET', '/api/l4-chains?page_size=1');
  const [{ id, target } = { id: '', target: {} }] = items;
  await row('PUT a chain', () => put(`/api/l4-chains/${id}`, { description: 'edited' }));
  await row('deploy it', () => post(`/api/l4-chains/${id}/deploy`));
  const hops = [{ node_id: nodeId(3), listen_port: 1_234, outer: 'tcp', security: 'raw' }];
  const chain = await row('POST a chain', () => post('/api/l4-chains', { name: 'new', payload: 'tcp', hops, target }));
  await row('DELETE it', () => rest.call('DELETE', `/api/l4-chains/${chain.id}`));
  await row('PUT an upstream', () => put(`/api/l4-upstreams/${upstreamId(1)}`, { health_check_interval_ms: 5_000 }));
  const { generation } = await rest.call<{ generation: number }>('GET', `/api/nodes/${nodeId(1)}`);
  await row('PUT the address of a node', () => put(`/api/nodes/${nodeId(1)}`, { address: '192.0.2.9' }));
  const earlier = `/api/nodes/${nodeId(1)}/config?generation=${generation}`;
  await row('GET its configuration before', () => rest.call('GET', earlier));
  const node = await row('POST a node', () => post('/api/nodes', { name: 'new', address: '192.0.2.10' }));
  await row('POST its PSK', () => post(`/api/nodes/${node.id}/psk`));
  await row('DELETE that node', () => rest.call('DELETE', `/api/nodes/${node.id}`));
  await row('POST a token', () => post('/api/auth/tokens', { name: 'ci', role: 'viewer' }));
  await row('PUT the settings', () => put('/api/settings/connectivity', { heartbeat_interval_secs: 7 }));
  await row('PUT the multiplexing of all nodes', () =>
    put('/api/settings/connectivity', { multiplex: true, multiplex_port: 7_443 }),
  );
  const [setting] = (await rest.call<{ items: readonly { id: string }[] }>('GET', '/api/audit?page_size=1')).items;
  await row('revert it', () => post(`/api/audit/${setting?.id}/revert`));
  const node_ids = Array.from({ length: Math.min(500, upstreams) }, (_, index) => nodeId(index + 1));
  const labels = { node_ids, set: { rack: 'a', region: 'eu' } };
  const { entry: labelled } = await row('label 500 nodes', () =>
    rest.call<{ entry: { readonly id: string } }>('POST', '/api/nodes/labels', labels),
  );
  await row('revert the labels of 500 nodes', () => post(`/api/audit/${labelled.id}/revert`));

  const upstream = (index: number) => [`made-${index}`, { endpoint: `192.0.2.1:${1_000 + index}` }] as const;
  const madeOf = (count: number) => ({
    svc: 1,
    set: 'made',
    upstreams: Object.fromEntries(Array.from({ length: count }, (_, index) => upstream(index))),
  });
  const apply = (document: object, query = '') =>
    rest.call<{ apply_id: string }>('POST', `/api/fleet/apply${query}`, { document: JSON.stringify(document) });
  const made = madeOf(2.5 * upstreams);
  await row('plan creates', () => post('/api/fleet/plan', { document: JSON.stringify(made) }));
  const { apply_id: created } = await row('apply creates', () => apply(made));
  for (const page of [1, 10])
    await row(`GET page ${page} of its steps`, () => rest.call('GET', `/api/fleet/applies/${created}?page=${page}`), 3);
  const [entry] = (await rest.call<{ items: readonly { id: string }[] }>('GET', '/api/audit?page_size=1')).items;
  await row('GET 500 of its changes', () => rest.call('GET', `/api/audit/${entry?.id}/changes?page_size=500`), 3);
  await row('GET 500 entries with it', () => rest.call('GET', '/api/audit?page_size=500'), 3);
  await row('GET the feed of it', () => rest.call('GET', '/api/events?resource_type=fleet&after=start'), 3);
  await row('GET the drift', () => rest.call('GET', '/api/fleet/sets/made/drift'), 3);
  await row('dry run of its revert', () => post(`/api/fleet/applies/${created}/revert?dry_run=true`));
  const { commands } = await row('its revert', () =>
    rest.call<{ commands: readonly { id: string }[] }>('POST', `/api/fleet/applies/${created}/revert`),
  );
  await row('revert of that', () => post(`/api/audit/${commands[0]?.id}/revert`));

  const nodes = Object.fromEntries(
    Array.from({ length: 2 * upstreams }, (_, index) => [`node-${index}`, { address: '192.0.2.1' }]),
  );
  const settings = { multiplex: true, multiplex_port: 7_444 };
  const { apply_id: moved } = await row('apply changes of nodes and settings', () =>
    apply({ svc: 1, settings, nodes }, '?adopt=true'),
  );
  await row('dry run of their revert', () => post(`/api/fleet/applies/${moved}/revert?dry_run=true`));
  await row('their revert', () => post(`/api/fleet/applies/${moved}/revert`));
}

function ask(socketPath: string, path: string): Promise<LongestTurn> {
  return new Promise((resolve, reject) => {
    httpRequest({ socketPath, path }, (response) => {
      let text = '';
      response.on('data', (part: Buffer) => (text += part.toString()));
      response.on('end', () => resolve(JSON.parse(text) as LongestTurn));
    })
      .on('error', reject)
      .end();
  });
}
