/**
 * A small site for drills: the real service, two real agents, one chain from node `a` to an upstream that can be
 * pointed at targets, which answer with their names. What an agent ran is read from its own log, which a restore does
 * not undo.
 */
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startAgentProcess } from '../../scripts/stack/agent.js';
import { eventually, freePorts, type RunningProgram } from '../../scripts/stack/process.js';
import type { RestClient } from '../../scripts/stack/rest-client.js';
import { prepareService, type ServiceProcess } from '../../scripts/stack/service.js';

type Env = Readonly<Record<string, string>>;

export interface NodeView {
  readonly id: string;
  readonly name: string;
  readonly status: string;
  readonly last_seen_at: string | null;
  readonly generation: number;
  readonly applied_generation: number | null;
  readonly version_conflict_at: string | null;
  readonly apply: { readonly state: string };
}

export interface SmallSite {
  readonly folder: string;
  readonly service: ServiceProcess;
  /** Signs in again after each start. */
  admin(): RestClient;
  /** Starts the service, on other stores if given. */
  start(stores?: { readonly dataDir: string; readonly env: Env }): Promise<void>;
  agent(name: 'a' | 'b'): RunningProgram;
  node(name: 'a' | 'b'): Promise<NodeView>;
  /** Both nodes, once they are online and run their newest configuration, also according to the agents' logs. */
  converged(): Promise<readonly [NodeView, NodeView]>;
  /** Generations that the agent has applied since its start, in order. */
  applied(name: 'a' | 'b'): readonly number[];
  /** Points the upstream at a new target that answers with `name`; resolves when traffic gets there. */
  pointAt(name: string): Promise<void>;
  /** As `pointAt`, without waiting for traffic. */
  edit(name: string): Promise<void>;
  /** Name of the target that answers through the chain. */
  through(): Promise<string>;
  throughBecomes(name: string): Promise<void>;
  close(): Promise<void>;
}

/** How long agents may take to reconnect, with their backoff, on a busy machine. */
const patienceMs = 60_000;

/** Starts the site and deploys the chain; the upstream points at `first`. */
export async function startSmallSite(env: Env): Promise<SmallSite> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-drill-'));
  const service = await prepareService({ dataDir: join(folder, 'data'), env });
  const agents = new Map<string, RunningProgram>();
  const nodes = new Map<string, string>();
  const targets = new Map<string, Server>();
  let admin: RestClient;
  let upstream = '';
  let entry = 0;

  async function target(name: string): Promise<number> {
    let server = targets.get(name);
    if (server === undefined) {
      server = createServer((_request, response) => response.end(name));
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
      targets.set(name, server);
    }
    return (server.address() as AddressInfo).port;
  }

  const site: SmallSite = {
    folder,
    service,
    admin: () => admin,
    async start(stores) {
      if (stores !== undefined) service.moveTo(stores);
      await service.start();
      admin = await service.admin();
    },
    agent: (name) => agents.get(name)!,
    node: (name) => admin.call<NodeView>('GET', `/api/nodes/${nodes.get(name)}`),
    converged: () =>
      eventually(
        'both nodes run their newest configuration',
        async () => {
          const [a, b] = [await site.node('a'), await site.node('b')];
          const runs = ({ name, status, apply, generation }: NodeView): boolean =>
            status === 'online' &&
            apply.state === 'applied' &&
            site.applied(name === 'a' ? 'a' : 'b').at(-1) === generation;
          return [a, b].every(runs) ? ([a, b] as const) : undefined;
        },
        patienceMs,
      ),
    applied: (name) =>
      site
        .agent(name)
        .output()
        .split('\n')
        .filter((line) => line.includes('"configuration applied"'))
        .map((line) => Number((JSON.parse(line) as { generation: string }).generation)),
    async edit(name) {
      await admin.call('PUT', `/api/l4-upstreams/${upstream}`, { endpoint: `127.0.0.1:${await target(name)}` });
    },
    async pointAt(name) {
      await site.edit(name);
      await site.throughBecomes(name);
    },
    async through() {
      const response = await fetch(`http://127.0.0.1:${entry}/`, {
        headers: { connection: 'close' },
        signal: AbortSignal.timeout(5_000),
      });
      return response.text();
    },
    async throughBecomes(name) {
      const answers = async (): Promise<true | undefined> => ((await site.through()) === name ? true : undefined);
      await eventually(`${name} answers through the chain`, answers, patienceMs);
    },
    async close() {
      await Promise.all(
        [...agents.values()].map((agent) => {
          agent.child.kill('SIGCONT');
          return agent.stop();
        }),
      );
      await service.stop();
      for (const server of targets.values()) server.close();
      await rm(folder, { recursive: true, force: true });
    },
  };

  try {
    await site.start();
    admin = site.admin();
    await admin.call('PUT', '/api/settings/connectivity', { heartbeat_interval_secs: 1 });
    for (const name of ['a', 'b']) {
      const body = { name, address: '127.0.0.1' };
      const made = await admin.call<{ id: string; control_psk: string }>('POST', '/api/nodes', body);
      nodes.set(name, made.id);
      const { controlEndpoint } = service;
      agents.set(name, startAgentProcess({ nodeId: made.id, controlEndpoint, controlPsk: made.control_psk }));
    }
    const first = await target('first');
    const made = await admin.call<{ id: string }>('POST', '/api/l4-upstreams', {
      name: 'web',
      endpoint: `127.0.0.1:${first}`,
    });
    upstream = made.id;
    [entry = 0] = await freePorts(1);
    const hop = {
      node_id: nodes.get('a'),
      listen_addr: '127.0.0.1',
      listen_port: entry,
      outer: 'tcp',
      security: 'raw',
    };
    const chain = await admin.call<{ id: string }>('POST', '/api/l4-chains', {
      name: 'front door',
      payload: 'tcp',
      hops: [hop],
      target: { upstream_id: upstream },
    });
    await site.converged();
    await admin.call('POST', `/api/l4-chains/${chain.id}/deploy?wait=applied`);
    await site.throughBecomes('first');
    return site;
  } catch (error) {
    await site.close();
    throw error;
  }
}
