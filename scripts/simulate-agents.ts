/**
 * Connects light agents to a service and prints, as JSON lines, when they applied each generation:
 *
 *   tsx scripts/simulate-agents.ts --endpoint http://127.0.0.1:8443 --agents agents.jsonl [--seconds 60] [--rate 200]
 *
 * `agents.jsonl` holds one `{"node_id": …, "control_psk": …}` per line. With `--api http://127.0.0.1:8081 --count N`
 * instead of `--agents`, it first creates nodes over REST (user `admin` or SVC_SIM_USER, password in SVC_SIM_PASSWORD);
 * `--keep FILE` stores their PSKs for the next run, readable by the owner only. Ends after `--seconds`, or on SIGINT or
 * SIGTERM.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { z } from 'zod';
import { parseHostPort } from '../src/kernel/host-port.js';
import type { HostPort } from '../src/kernel/host-port.js';
import { lightFleetMax, startLightFleet } from '../src/agent/light-agent.js';
import type { LightCredentials, LightFleet } from '../src/agent/light-agent.js';
import { sleep } from '../src/kernel/background.js';
import { errorText } from '../src/kernel/errors.js';

const reportEveryMs = 1000;
const requestTimeoutMs = 30_000;

const credentialsLine = z.object({ node_id: z.string().min(1), control_psk: z.string().min(1) });
const count = z.coerce.number().int().min(1).max(lightFleetMax);

function say(line: object): void {
  process.stdout.write(`${JSON.stringify({ at: new Date().toISOString(), ...line })}\n`);
}

async function credentialsFromFile(path: string): Promise<readonly LightCredentials[]> {
  const lines = (await readFile(path, 'utf8')).split('\n').filter((line) => line.trim() !== '');
  return lines.map((line, index) => {
    const read = credentialsLine.safeParse(JSON.parse(line));
    if (!read.success) throw new Error(`${path}, line ${index + 1}: expected {"node_id", "control_psk"}`);
    return { nodeId: read.data.node_id, controlPsk: read.data.control_psk };
  });
}

async function post<T>(url: string, body: object, token: string | undefined, data: z.ZodType<T>): Promise<T> {
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(requestTimeoutMs),
  });
  const answer = z
    .object({ success: z.boolean(), data: z.unknown(), error: z.string().nullable() })
    .parse(await response.json());
  if (!answer.success) throw new Error(`${url}: ${response.status} ${answer.error ?? ''}`);
  return data.parse(answer.data);
}

/** Creates nodes named `simulated-…`, one after the other. */
async function credentialsFromApi(api: string, nodes: number): Promise<readonly LightCredentials[]> {
  const password = process.env['SVC_SIM_PASSWORD'];
  if (password === undefined) throw new Error('SVC_SIM_PASSWORD: required with --api');
  const username = process.env['SVC_SIM_USER'] ?? 'admin';
  const { token } = await post(
    `${api}/api/auth/login`,
    { username, password },
    undefined,
    z.object({ token: z.string() }),
  );
  const run = Date.now().toString(36);
  const credentials: LightCredentials[] = [];
  const created = z.object({ id: z.string(), control_psk: z.string() });
  for (let index = 0; index < nodes; index += 1) {
    const node = await post(`${api}/api/nodes`, { name: `simulated-${run}-${index}` }, token, created);
    credentials.push({ nodeId: node.id, controlPsk: node.control_psk });
  }
  return credentials;
}

function endpointOf(text: string | undefined): HostPort {
  const endpoint = parseHostPort(/^http:\/\/([^/]+)\/?$/.exec(text ?? '')?.[1] ?? '');
  if (endpoint === undefined) throw new Error('--endpoint: expected http://host:port');
  return endpoint;
}

/** Prints at most once a second, on a change: how many agents are connected, and how many applied which generation. */
async function watch(fleet: LightFleet, generations: Map<number, Spread>, signal: AbortSignal): Promise<void> {
  let last = '';
  while (!signal.aborted) {
    await sleep(reportEveryMs, signal);
    const state = { agents: fleet.size, connected: fleet.connected(), disconnects: fleet.disconnects() };
    const text = JSON.stringify([state, [...generations]]);
    if (text === last) continue;
    last = text;
    const applied = Array.from(generations, ([generation, { agents, first, last: latest }]) => ({
      generation,
      agents,
      spread_ms: Math.round((latest - first) * 10) / 10,
    }));
    say({ ...state, applied });
  }
}

interface Spread {
  agents: number;
  /** Monotonic milliseconds of the first and the last apply. */
  readonly first: number;
  last: number;
}

/** How many of the newest generations are reported. */
const reportedGenerations = 20;

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      endpoint: { type: 'string' },
      agents: { type: 'string' },
      api: { type: 'string' },
      count: { type: 'string', default: '100' },
      keep: { type: 'string' },
      seconds: { type: 'string' },
      rate: { type: 'string' },
    },
  });
  const endpoint = endpointOf(values.endpoint);
  const agents =
    values.agents !== undefined
      ? await credentialsFromFile(values.agents)
      : await credentialsFromApi(z.url().parse(values.api), count.parse(values.count));
  if (values.keep !== undefined) {
    const lines = agents.map(
      ({ nodeId, controlPsk }) => `${JSON.stringify({ node_id: nodeId, control_psk: controlPsk })}\n`,
    );
    await writeFile(values.keep, lines.join(''), { mode: 0o600 });
  }

  const generations = new Map<number, Spread>();
  const fleet = await startLightFleet({
    endpoint,
    agents,
    ...(values.rate === undefined ? {} : { startsPerSecond: count.parse(values.rate) }),
    onApplied(_nodeId, generation, at) {
      const spread = generations.get(generation);
      if (spread === undefined) generations.set(generation, { agents: 1, first: at, last: at });
      else {
        spread.agents += 1;
        spread.last = at;
      }
      const [oldest] = generations.keys();
      if (generations.size > reportedGenerations && oldest !== undefined) generations.delete(oldest);
    },
  });
  const stop = new AbortController();
  const end = (): void => stop.abort();
  process.once('SIGINT', end);
  process.once('SIGTERM', end);
  const timer = setInterval(() => undefined, 60_000);
  const ending = values.seconds === undefined ? undefined : setTimeout(end, count.parse(values.seconds) * 1000);
  await watch(fleet, generations, stop.signal);
  clearInterval(timer);
  clearTimeout(ending);
  await fleet.close();
  say({ ended: true, agents: fleet.size, disconnects: fleet.disconnects() });
}

try {
  await main();
} catch (error) {
  process.stderr.write(`${errorText(error)}\n`);
  process.exitCode = 1;
}
