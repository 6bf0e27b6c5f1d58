/**
 * Callers that send random commands to either instance, repeat some with the same Idempotency-Key, and read acknowledged
 * changes back from both instances. Every command asks for a new value, so each acknowledged one writes an event.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { RestClient } from '../../../scripts/stack/rest-client.js';
import { connectionRefused, type Attempt, type Book, type Command } from './book.js';
import type { Random } from './random.js';

export interface CallersOptions {
  readonly clients: readonly RestClient[];
  readonly book: Book;
  readonly random: Random;
  /** Nodes with an agent: they are never deleted and keep their PSK. */
  readonly agentNodes: readonly string[];
  /** Callers per instance. */
  readonly callers: number;
  /** Upper bound of commands for all callers together, without repeats and reads. */
  readonly commands: number;
  /** Called when a read lacks an acknowledged change. */
  readonly onFault: (fault: string) => void;
}

export interface Callers {
  /** Stops all callers and waits for their last answers. */
  stop(): Promise<void>;
}

type Kind = 'nodes' | 'l4-upstreams' | 'l4-chains';
type Resources = Record<Kind, Map<string, number>>;

export function startCallers(options: CallersOptions): Callers {
  const { clients, random, commands } = options;
  const resources: Resources = {
    nodes: new Map(options.agentNodes.map((id) => [id, 1])),
    'l4-upstreams': new Map(),
    'l4-chains': new Map(),
  };
  let running = true;
  let sent = 0;
  let wasted = 0;

  async function call(home: number, rng: Random): Promise<void> {
    let near = home;
    const instanceOf = (): number => (rng.chance(0.8) ? near : rng.below(clients.length));
    while (running && sent - wasted < commands) {
      sent += 1;
      const command = randomCommand(rng, resources, sent, options.agentNodes);
      let attempt = await ask(instanceOf(), command);
      // Repeat with the same key, mostly at the other instance: usually after an unclear answer, sometimes after a clear one.
      for (let repeats = 0; command.key !== undefined && repeats < 3; repeats += 1) {
        if (!rng.chance(attempt.outcome === 'acknowledged' ? 0.15 : 0.9) || !running) break;
        await delay(rng.between(10, 400));
        attempt = await ask(rng.chance(0.7) ? (attempt.instance + 1) % clients.length : attempt.instance, command);
      }
      if (attempt.outcome === 'acknowledged' && rng.chance(0.6)) {
        await readBack(options, attempt, rng.chance(0.5));
      }
      if (attempt.said === connectionRefused) wasted += 1;
      near = attempt.said === connectionRefused ? (attempt.instance + 1) % clients.length : home;
      await delay(attempt.outcome === 'acknowledged' ? rng.between(20, 150) : rng.between(100, 400));
    }
  }

  async function ask(instance: number, command: Command): Promise<Attempt> {
    const client = clients[instance];
    if (client === undefined) throw new RangeError(`there is no instance ${instance}`);
    const attempt = await options.book.ask(instance, client, command);
    learn(resources, attempt);
    return attempt;
  }

  const callers = clients.flatMap((_, home) =>
    Array.from({ length: options.callers }, (_none, index) => call(home, random.fork(`caller ${home} ${index}`))),
  );
  return {
    async stop() {
      running = false;
      await Promise.all(callers);
    },
  };
}

const kinds: readonly Kind[] = ['nodes', 'l4-upstreams', 'l4-chains'];

function learn(resources: Resources, { command, outcome, resourceId, data }: Attempt): void {
  if (outcome === 'refused') return;
  const kind = kinds.find((one) => command.path.startsWith(`/api/${one}`));
  if (kind === undefined) return;
  if (command.method === 'DELETE') resources[kind].delete(command.path.split('/').at(-1) ?? '');
  else if (resourceId !== undefined) resources[kind].set(resourceId, Number(data?.['version']));
}

/** How many names are contended: several callers try to use each. */
const contendedNames = 6;

function randomCommand(random: Random, resources: Resources, step: number, agentNodes: readonly string[]): Command {
  const idOf = (kind: Kind): string | undefined => random.pick([...resources[kind].keys()]);
  const version = (kind: Kind, id: string): { ifMatch?: string } =>
    random.chance(0.3) ? { ifMatch: `"${resources[kind].get(id) ?? 1}"` } : {};
  const key = (): { key?: string } =>
    random.chance(0.7) ? { key: `key-${step}-${random.below(2 ** 31).toString(36)}` } : {};
  const name = (prefix: string): string =>
    random.chance(0.3) ? `${prefix} ${random.below(contendedNames)}` : `${prefix}-${step}`;
  const endpoint = `10.${step >> 8}.${step & 255}.1:${1000 + step}`;
  const [node, upstream, chain] = [idOf('nodes'), idOf('l4-upstreams'), idOf('l4-chains')];
  const created = (path: string, body: unknown): Command => ({ method: 'POST', path, body, ...key() });
  const createUpstream = created('/api/l4-upstreams', { name: name('upstream'), endpoint });
  const createNode = created('/api/nodes', {
    name: name('node'),
    issue_psk: random.chance(0.5),
    ...(random.chance(0.5) ? { address: `10.${step >> 8}.${step & 255}.2` } : {}),
  });
  const createChain = created('/api/l4-chains', {
    name: name('chain'),
    payload: 'tcp',
    hops: hopsOf(random, agentNodes, node),
    target: upstream === undefined || random.chance(0.3) ? { endpoint } : { upstream_id: upstream },
  });

  const dice = random.below(100);
  if (dice < 12) return createUpstream;
  if (dice < 24) return createNode;
  if (dice < 36) return createChain;
  if (dice < 46) {
    if (upstream === undefined) return createUpstream;
    const path = `/api/l4-upstreams/${upstream}`;
    return { method: 'PUT', path, body: { endpoint }, ...version('l4-upstreams', upstream) };
  }
  if (dice < 50) {
    if (upstream === undefined) return createUpstream;
    return { method: 'DELETE', path: `/api/l4-upstreams/${upstream}`, ...version('l4-upstreams', upstream) };
  }
  if (dice < 60) {
    const body = random.chance(0.5)
      ? { labels: { step: String(step) } }
      : { address: `10.9.${step >> 8}.${step & 255}` };
    return node === undefined
      ? createNode
      : { method: 'PUT', path: `/api/nodes/${node}`, body, ...version('nodes', node) };
  }
  if (dice < 70) {
    if (node === undefined) return createNode;
    const isAgents = agentNodes.includes(node);
    if (!isAgents && dice < 63) return { method: 'DELETE', path: `/api/nodes/${node}`, ...version('nodes', node) };
    return { method: 'POST', path: `/api/nodes/${node}/${!isAgents && dice < 66 ? 'psk' : 'config'}`, ...key() };
  }
  if (dice < 74)
    return { method: 'PUT', path: '/api/settings/connectivity', body: { metrics_interval_secs: 60 + step } };
  if (chain === undefined) return createChain;
  const path = `/api/l4-chains/${chain}`;
  if (dice < 80) {
    const body = { description: `step ${step}`, ...(random.chance(0.3) ? { enabled: random.chance(0.7) } : {}) };
    return { method: 'PUT', path, body, ...version('l4-chains', chain) };
  }
  if (dice < 85) {
    return { method: 'PUT', path, body: { hops: hopsOf(random, agentNodes, node), description: `step ${step}` } };
  }
  if (dice < 88) return { method: 'DELETE', path, ...version('l4-chains', chain) };
  return { method: 'POST', path: `${path}/deploy`, ...key(), ...version('l4-chains', chain) };
}

/** One or two hops; few ports, so that some collide. */
function hopsOf(random: Random, agentNodes: readonly string[], other: string | undefined): readonly object[] {
  const first = random.pick(agentNodes);
  const second = random.chance(0.3) && other !== first ? other : undefined;
  return [first, second].flatMap((node_id) =>
    node_id === undefined
      ? []
      : [{ node_id, listen_addr: '127.0.0.1', listen_port: 20_000 + random.below(60), outer: 'tcp', security: 'raw' }],
  );
}

/** A resource's state after an acknowledged command, and the path to read it from. */
interface Expected {
  readonly path: string;
  readonly version?: unknown;
  readonly generation?: unknown;
}

function expectedAfter({ command, resourceId, data = {} }: Attempt): Expected | undefined {
  if (command.method === 'DELETE') return undefined;
  const deployed = (data['deployment'] as { nodes: readonly { node_id: string; generation: number }[] } | undefined)
    ?.nodes[0];
  if (deployed !== undefined) return { path: `/api/nodes/${deployed.node_id}`, generation: deployed.generation };
  if (command.path.startsWith('/api/settings/')) return { ...data, path: command.path };
  const [, collection, id] = /^(\/api\/(?:nodes|l4-upstreams|l4-chains))(?:\/([^/]+))?/.exec(command.path) ?? [];
  const readId = resourceId ?? id;
  return collection === undefined || readId === undefined ? undefined : { ...data, path: `${collection}/${readId}` };
}

/**
 * `docs/contract/rest.md#consistency`: a GET at the same instance shows the change unless its answer carried
 * `x-projection-lag`; at any instance a GET with `x-min-position` shows it or answers 503. Other callers may change or
 * delete the resource in between.
 */
async function readBack(options: CallersOptions, attempt: Attempt, elsewhere: boolean): Promise<void> {
  const { clients, onFault, book } = options;
  const expected = expectedAfter(attempt);
  if (expected === undefined || (!elsewhere && attempt.lagging === true)) return;
  const instance = elsewhere ? (attempt.instance + 1) % clients.length : attempt.instance;
  const headers = elsewhere ? { 'x-min-position': String(attempt.position) } : {};
  const answer = await clients[instance]?.send('GET', expected.path, undefined, headers).catch(() => undefined);
  if (answer === undefined || answer.status >= 500) return;
  const { method, path } = attempt.command;
  const where = `${attempt.requestId} ${method} ${path}, read at ${elsewhere ? 'the other instance' : 'the same instance'}`;
  if (answer.status === 404 && !book.deletes.has(expected.path)) onFault(`${where}: gone, but nobody deleted it`);
  for (const field of ['version', 'generation'] as const) {
    const [now, then] = [answer.body.data?.[field], expected[field]];
    if (typeof now === 'number' && typeof then === 'number' && now < then) {
      onFault(`${where}: ${field} is ${now} after ${then} was acknowledged`);
    }
  }
}
