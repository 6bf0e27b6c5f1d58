/**
 * The main use case from start to end on this machine: a service, three agents, a two-hop TCP chain, an edit, hops
 * inside TLS, a shared port, a new certificate under traffic, a kill -9 while traffic flows, a restart. Processes,
 * sockets and stores are real; the stores are embedded in a temporary folder unless SVC_EVENTSTORE_URL or
 * SVC_MONGODB_URL name others. With `--reality`, agents connect through REALITY, and plain h2c reaches the camouflage
 * target. Exits with 0 only if every step succeeds.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { ConfigError } from '../src/app/config/variables.js';
import { ServiceError } from '../src/kernel/errors.js';
import { StoreSettingError } from '../src/storage/open-stores.js';
import { CommandError, parseArguments, UsageError } from './maintenance/command-line.js';
import { startAgentProcess } from './stack/agent.js';
import { startDemoReality } from './stack/demo-reality.js';
import { openDemoStores, type DemoStores } from './stack/demo-stores.js';
import {
  expectEqual,
  fetchThrough,
  httpTarget,
  startTraffic,
  type DemoTarget,
  type Traffic,
} from './stack/demo-traffic.js';
import { tourTransports } from './stack/demo-transports.js';
import { eventually, freePorts, type RunningProgram } from './stack/process.js';
import type { RestClient } from './stack/rest-client.js';
import { prepareService, type ServiceProcess } from './stack/service.js';
import { createStory, type Story } from './stack/story.js';

interface DemoNode {
  readonly id: string;
  readonly name: string;
  readonly psk: string;
}

interface NodeAnswer {
  readonly id: string;
  readonly status: string;
  readonly generation: number;
  readonly applied_generation: number | null;
}

async function nodesOf(admin: RestClient): Promise<readonly NodeAnswer[]> {
  const { items } = await admin.call<{ items: readonly NodeAnswer[] }>('GET', '/api/nodes');
  return items;
}

async function main(): Promise<void> {
  const { flags } = parseArguments(process.argv.slice(2), ['--test-servers', '--reality'], 0);
  const dataDir = await mkdtemp(join(tmpdir(), 'svc-demo-'));
  try {
    const stores = await openDemoStores({ testServers: flags.has('--test-servers'), dataDir, env: process.env });
    try {
      await play(dataDir, stores, flags.has('--reality'));
    } finally {
      await stores.close();
    }
  } finally {
    await rm(dataDir, { recursive: true, force: true });
  }
}

async function play(dataDir: string, stores: DemoStores, withReality: boolean): Promise<void> {
  const story = createStory('gateway control service: the main use case from start to end');
  story.note(stores.text);
  const reality = withReality ? await startDemoReality() : undefined;
  const env = { ...stores.env, ...reality?.env, SVC_LOG_LEVEL: 'info' };
  const service = await prepareService({ dataDir, env });
  const controlEndpoint = reality?.endpoint(service.controlEndpoint) ?? service.controlEndpoint;
  const agents: RunningProgram[] = [];
  const servers: DemoTarget[] = [];
  try {
    await story.step('start the service on empty stores', async () => {
      await service.start();
      return `REST on ${service.url}, agents on ${service.controlEndpoint}`;
    });
    const admin = await service.admin();
    // Short heartbeats, so that the watcher soon sees who is online.
    await admin.call('PUT', '/api/settings/connectivity', { heartbeat_interval_secs: 1 });
    const nodes = await createNodes(story, admin);
    const [edge, relay] = nodes;
    if (edge === undefined || relay === undefined) throw new Error('expected three nodes');
    const start = (node: DemoNode): void =>
      void agents.push(startAgentProcess({ nodeId: node.id, controlEndpoint, controlPsk: node.psk }));
    await connectAgents(story, admin, nodes, start, withReality ? ' inside REALITY' : '');
    if (reality !== undefined) {
      await story.step('speak plain h2c to the agent port', async () => {
        const { port, answer, page } = await reality.probe(service.controlEndpoint);
        expectEqual('what the agent port answers to h2c', answer.listener, answer.target);
        return `refused as by the camouflage itself; with TLS, https://camouflage.example:${port} says "${page}"`;
      });
    }

    const entry = await buildChain({ story, admin, edge: edge.id, relay: relay.id }, servers);
    await tourTransports({ story, admin, edge: edge.id, relay: relay.id });
    const { ok, failed } = await killUnderTraffic(story, service, entry);
    await revertLastEdit(story, await service.admin());
    await readAudit(story, await service.admin());
    story.end(`${ok} requests went through the chain, ${failed} failed.`);
  } catch (error) {
    story.fail(error, service.program().output().split('\n').slice(-15).join('\n'));
    process.exitCode = 1;
  } finally {
    await Promise.all(agents.map((agent) => agent.stop()));
    await service.stop().catch(() => undefined);
    for (const server of servers) server.close();
    reality?.close();
  }
}

function createNodes(story: Story, admin: RestClient): Promise<readonly DemoNode[]> {
  return story.step('create three nodes; each answer shows the PSK once', async () => {
    const made: DemoNode[] = [];
    for (const name of ['edge', 'relay', 'bystander']) {
      const fields = { name, address: '127.0.0.1' };
      const node = await admin.call<{ id: string; control_psk: string }>('POST', '/api/nodes', fields);
      made.push({ id: node.id, name, psk: node.control_psk });
    }
    return { value: made, text: made.map(({ name, psk }) => `${name} ${psk.slice(0, 12)}…`).join(', ') };
  });
}

/** Starts an agent on each node and waits until all are online. @param where the place they connect to, for people */
async function connectAgents(
  story: Story,
  admin: RestClient,
  nodes: readonly DemoNode[],
  start: (node: DemoNode) => void,
  where: string,
): Promise<void> {
  await story.step(`start an agent on each; they connect over Noise KKpsk0${where}`, async () => {
    for (const node of nodes) {
      start(node);
    }
    await eventually('all agents are online', async () => {
      const online = (await nodesOf(admin)).filter(
        (node) => node.status === 'online' && node.applied_generation === node.generation,
      );
      return online.length === nodes.length ? true : undefined;
    });
    return 'three nodes online, each at its newest generation';
  });
}

interface Chain {
  readonly story: Story;
  readonly admin: RestClient;
  /** Ids of the two nodes. */
  readonly edge: string;
  readonly relay: string;
}

/** Deploys a chain and edits its upstream. @param servers collects its targets @returns the port of its first hop */
async function buildChain({ story, admin, edge, relay }: Chain, servers: DemoTarget[]): Promise<number> {
  const [blue, green] = [await httpTarget('blue'), await httpTarget('green')];
  servers.push(blue, green);
  const [entry = 0, middle = 0] = await freePorts(2);

  const ids = await story.step(
    'create an upstream and a two-hop TCP chain to it, deploy, wait until applied',
    async () => {
      const upstream = await admin.call<{ id: string }>('POST', '/api/l4-upstreams', {
        name: 'web',
        endpoint: `127.0.0.1:${blue.port}`,
      });
      const chain = await admin.call<{ id: string }>('POST', '/api/l4-chains', {
        name: 'front door',
        payload: 'tcp',
        hops: [
          { node_id: edge, listen_addr: '127.0.0.1', listen_port: entry, outer: 'tcp', security: 'raw' },
          { node_id: relay, listen_addr: '127.0.0.1', listen_port: middle, outer: 'tcp', security: 'raw' },
        ],
        target: { upstream_id: upstream.id },
      });
      const deployed = await admin.call<{
        deployment: { nodes: readonly { state: string; generation: number }[] };
      }>('POST', `/api/l4-chains/${chain.id}/deploy?wait=applied`);
      const states = deployed.deployment.nodes.map((node) => node.state);
      expectEqual('the deployment', states, ['applied', 'applied']);
      return {
        value: { upstream: upstream.id, chain: chain.id },
        text: `client → edge:${entry} → relay:${middle} → web; generations ${deployed.deployment.nodes.map((node) => node.generation).join(' and ')} applied`,
      };
    },
  );

  await story.step('fetch through the chain', async () => {
    const { text } = await fetchThrough(entry);
    expectEqual('the answer', text, 'hello from blue');
    return `"${text}"`;
  });

  await story.step('change the upstream: live at once, only the last hop gets a new generation', async () => {
    const before = await nodesOf(admin);
    await admin.call('PUT', `/api/l4-upstreams/${ids.upstream}`, { endpoint: `127.0.0.1:${green.port}` });
    const text = await eventually('the new target answers', async () => {
      const { text: answer } = await fetchThrough(entry);
      return answer === 'hello from green' ? answer : undefined;
    });
    const after = await nodesOf(admin);
    const moved = after.filter((node) => before.find((old) => old.id === node.id)?.generation !== node.generation);
    expectEqual(
      'the touched nodes',
      moved.map((node) => node.id),
      [relay],
    );
    return `"${text}"; edge and bystander keep their generation`;
  });
  return entry;
}

/** Kills the service while traffic flows, and restarts it. @returns the results of the requests */
async function killUnderTraffic(story: Story, service: ServiceProcess, entry: number): Promise<Traffic['count']> {
  const before = await nodesOf(await service.admin());
  const generations = (list: readonly NodeAnswer[]): unknown => list.map(({ id, generation }) => [id, generation]);
  const traffic = startTraffic(entry);
  try {
    await story.step('kill -9 the service while traffic flows; traffic goes on', async () => {
      await delay(300);
      await service.kill();
      const { ok } = traffic.count;
      await delay(2_000);
      const during = traffic.count.ok - ok;
      if (during === 0) throw new Error('no request succeeded while the service was down');
      expectEqual('failed requests', traffic.count.failed, 0);
      return `${during} requests answered while the control plane was down, 0 failed`;
    });

    await story.step('start it again on the same stores; agents return by themselves', async () => {
      await service.start();
      const again = await service.admin();
      const back = await eventually(
        'all agents are back',
        async () => {
          const list = await nodesOf(again);
          return list.every((node) => node.status === 'online' && node.applied_generation === node.generation)
            ? list
            : undefined;
        },
        60_000,
      );
      expectEqual('the generations', generations(back), generations(before));
      expectEqual('failed requests', traffic.count.failed, 0);
      return `three nodes online, generations unchanged: ${back.map((node) => node.generation).join(', ')}`;
    });
  } finally {
    await traffic.stop();
  }
  return traffic.count;
}

async function revertLastEdit(story: Story, admin: RestClient): Promise<void> {
  await story.step('take the last edit of the upstream back', async () => {
    const { items } = await admin.call<{
      items: readonly { id: string; resource: { id: string } }[];
    }>('GET', '/api/audit?action=l4_upstream.update&page_size=1');
    const [edit] = items;
    if (edit === undefined) throw new Error('the audit has no edit of an upstream');
    const path = `/api/audit/${edit.id}/revert`;
    const { changes } = await admin.call<{
      changes: readonly { path: string; before: unknown; after: unknown }[];
    }>('POST', `${path}?dry_run=true`);
    await admin.call('POST', path);
    const now = await admin.call<{ [field: string]: unknown }>('GET', `/api/l4-upstreams/${edit.resource.id}`);
    for (const change of changes) {
      if (now[change.path] !== change.after) throw new Error(`${change.path} is ${String(now[change.path])}`);
    }
    return changes.map((change) => `${change.path}: ${String(change.before)} -> ${String(change.after)}`).join(', ');
  });
}

async function readAudit(story: Story, admin: RestClient): Promise<void> {
  await story.step('read the audit', async () => {
    const audit = await admin.call<{
      items: readonly { action: string }[];
      total: number;
    }>('GET', '/api/audit?page_size=100');
    const actions = new Set(audit.items.map((entry) => entry.action));
    for (const wanted of [
      'node.create',
      'l4_upstream.create',
      'l4_chain.create',
      'l4_chain.deploy',
      'l4_upstream.update',
      'l4_upstream.revert',
      'credential.update',
      'route.create',
      'session.sign_in',
    ]) {
      if (!actions.has(wanted)) throw new Error(`the audit has no entry ${wanted}`);
    }
    return `${audit.total} entries: ${[...actions].sort().join(', ')}`;
  });
}

try {
  await main();
} catch (error) {
  const expected =
    error instanceof UsageError ||
    error instanceof CommandError ||
    error instanceof ConfigError ||
    error instanceof ServiceError ||
    error instanceof StoreSettingError;
  if (!expected) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = error instanceof UsageError ? 2 : 1;
}
