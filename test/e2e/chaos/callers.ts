/**
 * Callers who send random commands to either instance, repeat some with the same Idempotency-Key, and read back what was
 * acknowledged, there and at the other instance. Every change asks for something new, so an acknowledged one always
 * writes.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { RestClient } from '../../../scripts/stack/rest-client.js';
import { nobodyThere } from './book.js';
import type { Attempt, Book, Command } from './book.js';
import type { Random } from './random.js';

export interface CallersOptions {
  readonly clients: readonly RestClient[];
  readonly book: Book;
  readonly random: Random;
  /** Nodes with an agent: they are configured, never deleted, and keep their PSK. */
  readonly agentNodes: readonly string[];
  /** Callers per instance. */
  readonly callers: number;
  /** All together send no more than so many commands; repeats and reads are not counted. */
  readonly commands: number;
  /** A read that does not show what was acknowledged. */
  readonly onFault: (fault: string) => void;
}

export interface Callers {
  /** Resolves when every caller has its last answer. */
  stop(): Promise<void>;
}

/** What callers know to be there, or to have been. */
type Kind = 'nodes' | 'l4-upstreams' | 'l4-chains';
type Known = Record<Kind, Map<string, number>>;

export function startCallers(options: CallersOptions): Callers {
  const { clients, random, commands } = options;
  const known: Known = {
    nodes: new Map(options.agentNodes.map((id) => [id, 1])),
    'l4-upstreams': new Map(),
    'l4-chains': new Map(),
  };
  let running = true;
  let sent = 0;
  let wasted = 0;

  async function call(home: number, mine: Random): Promise<void> {
    let near = home;
    const instanceOf = (): number => (mine.chance(0.8) ? near : mine.below(clients.length));
    while (running && sent - wasted < commands) {
      sent += 1;
      const command = randomCommand(mine, known, sent, options.agentNodes);
      let attempt = await ask(instanceOf(), command);
      // Whoever got no clear answer asks again with the key, mostly at the other instance; and now and then to be sure.
      for (let repeats = 0; command.key !== undefined && repeats < 3; repeats += 1) {
        if (!mine.chance(attempt.outcome === 'acknowledged' ? 0.15 : 0.9) || !running) break;
        await delay(mine.between(10, 400));
        attempt = await ask(mine.chance(0.7) ? (attempt.instance + 1) % clients.length : attempt.instance, command);
      }
      if (attempt.outcome === 'acknowledged' && mine.chance(0.6)) {
        await readBack(options, attempt, mine.chance(0.5));
      }
      if (attempt.said === nobodyThere) wasted += 1;
      near = attempt.said === nobodyThere ? (attempt.instance + 1) % clients.length : home;
      await delay(attempt.outcome === 'acknowledged' ? mine.between(20, 150) : mine.between(100, 400));
    }
  }

  async function ask(instance: number, command: Command): Promise<Attempt> {
    const client = clients[instance];
    if (client === undefined) throw new RangeError(`there is no instance ${instance}`);
    const attempt = await options.book.ask(instance, client, command);
    learn(known, attempt);
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

function learn(known: Known, { command, outcome, resourceId, data }: Attempt): void {
  if (outcome === 'refused') return;
  const kind = kinds.find((one) => command.path.startsWith(`/api/${one}`));
  if (kind === undefined) return;
  if (command.method === 'DELETE') known[kind].delete(command.path.split('/').at(-1) ?? '');
  else if (resourceId !== undefined) known[kind].set(resourceId, Number(data?.['version']));
}

/** Names that several callers want at the same time. */
const wanted = 6;

function randomCommand(random: Random, known: Known, step: number, agentNodes: readonly string[]): Command {
  const idOf = (kind: Kind): string | undefined => random.pick([...known[kind].keys()]);
  const version = (kind: Kind, id: string): { ifMatch?: string } =>
    random.chance(0.3) ? { ifMatch: `"${known[kind].get(id) ?? 1}"` } : {};
  const key = (): { key?: string } =>
    random.chance(0.7) ? { key: `key-${step}-${random.below(2 ** 31).toString(36)}` } : {};
  const name = (prefix: string): string =>
    random.chance(0.3) ? `${prefix} ${random.below(wanted)}` : `${prefix}-${step}`;
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

/** One or two hops, few enough ports for collisions now and then. */
function hopsOf(random: Random, agentNodes: readonly string[], other: string | undefined): readonly object[] {
  const first = random.pick(agentNodes);
  const second = random.chance(0.3) && other !== first ? other : undefined;
  return [first, second].flatMap((node_id) =>
    node_id === undefined
      ? []
      : [{ node_id, listen_addr: '127.0.0.1', listen_port: 20_000 + random.below(60), outer: 'tcp', security: 'raw' }],
  );
}

/** What an answer said of one resource, and where that is read. */
interface Told {
  readonly path: string;
  readonly version?: unknown;
  readonly generation?: unknown;
}

function toldBy({ command, resourceId, data = {} }: Attempt): Told | undefined {
  if (command.method === 'DELETE') return undefined;
  const deployed = (data['deployment'] as { nodes: readonly { node_id: string; generation: number }[] } | undefined)
    ?.nodes[0];
  if (deployed !== undefined) return { path: `/api/nodes/${deployed.node_id}`, generation: deployed.generation };
  if (command.path.startsWith('/api/settings/')) return { ...data, path: command.path };
  const [, collection, id] = /^(\/api\/(?:nodes|l4-upstreams|l4-chains))(?:\/([^/]+))?/.exec(command.path) ?? [];
  const shown = resourceId ?? id;
  return collection === undefined || shown === undefined ? undefined : { ...data, path: `${collection}/${shown}` };
}

/**
 * `docs/contract/rest.md#consistency`: a GET at the same instance shows the change unless the answer said that it lags; at any
 * instance with `x-min-position` it does, or is a 503. Others may change the resource meanwhile, or delete it.
 */
async function readBack(options: CallersOptions, attempt: Attempt, elsewhere: boolean): Promise<void> {
  const { clients, onFault, book } = options;
  const told = toldBy(attempt);
  if (told === undefined || (!elsewhere && attempt.lagging === true)) return;
  const instance = elsewhere ? (attempt.instance + 1) % clients.length : attempt.instance;
  const headers = elsewhere ? { 'x-min-position': String(attempt.position) } : {};
  const answer = await clients[instance]?.send('GET', told.path, undefined, headers).catch(() => undefined);
  if (answer === undefined || answer.status >= 500) return;
  const { method, path } = attempt.command;
  const where = `${attempt.requestId} ${method} ${path}, read ${elsewhere ? 'elsewhere' : 'where it was asked'}`;
  if (answer.status === 404 && !book.deletes.has(told.path)) onFault(`${where}: gone, and nobody deleted it`);
  for (const field of ['version', 'generation'] as const) {
    const [now, then] = [answer.body.data?.[field], told[field]];
    if (typeof now === 'number' && typeof then === 'number' && now < then) {
      onFault(`${where}: ${field} ${now}, after ${then} was acknowledged`);
    }
  }
}
