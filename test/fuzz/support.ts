/** The service that is fuzzed, a good agent beside it, and what must still hold afterwards. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { env } from 'node:process';
import fc, { type Arbitrary } from 'fast-check';
import { expect } from 'vitest';
import { startAgentProcess } from '../../scripts/stack/agent.js';
import { eventually as waitFor } from '../../scripts/stack/process.js';
import { createRestClient, type RestClient } from '../../scripts/stack/rest-client.js';
import { collectable, prepareService, type ServiceOptions, type ServiceProcess } from '../../scripts/stack/service.js';
import { eventually } from '../support/eventually.js';

const seed = Number(env.FUZZ_SEED ?? 20_261_122);
const factor = Number(env.FUZZ_RUNS ?? 1);

/** Milliseconds for a file, by the number of inputs. */
export const fuzzTimeoutMs = 60_000 + factor * 30_000;

/** The same inputs for the same seed. @param runs how many without `FUZZ_RUNS` */
export function inputs<T>(arbitrary: Arbitrary<T>, runs: number): readonly T[] {
  return fc.sample(arbitrary, { seed, numRuns: runs * factor });
}

/** Sends each input, at most `at` at the same time. A failure names the seed and the input's number. */
export async function sendAll<T>(all: readonly T[], at: number, send: (input: T, index: number) => Promise<void>) {
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let index = next++; index < all.length; index = next++) {
      try {
        await send(all[index]!, index);
      } catch (error) {
        throw new Error(`input ${index} of seed ${seed}: ${error instanceof Error ? error.message : String(error)}`);
      }
    }
  };
  await Promise.all(Array.from({ length: at }, worker));
}

const password = 'a password for fuzzing only';

/** What the heap may have grown by after everything is collected: caches that fill, no more. */
const heapGrowthBytes = 24 * 1024 * 1024;

/** Descriptors more than before: connections of this test's own HTTP client, and files that the stores open when needed. */
const moreDescriptors = 16;

/** Gauges of a service with one agent and nothing else. */
const onlyTheGoodAgent: Readonly<Record<string, number>> = {
  svc_agent_sessions: 1,
  svc_agent_pending_sessions: 0,
  svc_agent_waiting_handshakes: 0,
  svc_agent_unfinished_bytes: 0,
  svc_agent_slow_streams: 0,
  svc_agent_throttled_sessions: 0,
  svc_agent_reality_target_connections: 0,
  'svc_agent_connections{kind="sniffing"}': 0,
  'svc_agent_connections{kind="mirrored"}': 0,
  'svc_agent_connections{kind="without_session"}': 0,
  'svc_agent_connections{kind="with_session"}': 1,
};

export interface Fuzzed {
  readonly service: ServiceProcess;
  readonly admin: RestClient;
  /** The admin's. */
  readonly token: string;
  readonly host: string;
  readonly port: number;
  /** Fails unless the service runs, its memory and descriptors are back, only the good agent's session is left, and that one is unharmed. */
  unharmed(): Promise<void>;
  close(): Promise<void>;
}

/** @param tls PEM texts, with which REST is served over TLS */
export async function startFuzzed(
  environment: Readonly<Record<string, string>> = {},
  tls?: ServiceOptions['tls'],
): Promise<Fuzzed> {
  const folder = mkdtempSync(join(tmpdir(), 'fuzz-'));
  const service = await prepareService({
    dataDir: join(folder, 'data'),
    env: { SVC_LOG_LEVEL: 'warn', SVC_ADMIN_PASSWORD: password, ...environment, ...collectable },
    ...(tls === undefined ? {} : { tls }),
  });
  await service.start();
  const account = { username: 'admin', password };
  const { token } = await createRestClient(service.url).call<{ token: string }>('POST', '/api/auth/login', account);
  const admin = createRestClient(service.url, token);
  const node = await admin.call<{ id: string; control_psk: string }>('POST', '/api/nodes', { name: 'good' });
  const { controlEndpoint } = service;
  const agent = startAgentProcess({ nodeId: node.id, controlPsk: node.control_psk, controlEndpoint });
  const path = `/api/nodes/${node.id}`;
  await waitFor('the agent is online', async () =>
    (await admin.call<{ status: string }>('GET', path)).status === 'online' ? true : undefined,
  );

  const metrics = async (): Promise<(name: string) => number> => {
    const lines = (await (await fetch(`${service.url}/metrics`)).text()).split('\n');
    return (name) => Number(lines.find((line) => line.startsWith(`${name} `))?.slice(name.length));
  };
  const usedHeap = async (): Promise<number> => {
    service.program().child.kill('SIGUSR2');
    return (await metrics())('nodejs_heap_size_used_bytes');
  };
  /** What is left of sessions and connections. */
  const left = async (): Promise<Readonly<Record<string, number>>> => {
    const value = await metrics();
    return Object.fromEntries(Object.keys(onlyTheGoodAgent).map((name) => [name, value(name)]));
  };
  const descriptors = async (): Promise<number> => (await metrics())('process_open_fds');
  const before = await usedHeap();
  const openBefore = await descriptors();
  const { hostname, port } = new URL(controlEndpoint);

  return {
    service,
    admin,
    token,
    host: hostname,
    port: Number(port),
    async unharmed() {
      expect(service.program().exited(), service.program().output().slice(-2_000)).toBe(false);
      // The last resort of the process was not needed either.
      expect(service.program().output()).not.toContain('stream that has ended');
      expect((await fetch(`${service.url}/healthz`)).status).toBe(200);
      await eventually(left).toEqual(onlyTheGoodAgent);
      await eventually(descriptors).toBeLessThanOrEqual(openBefore + moreDescriptors);
      await eventually(async () => (await usedHeap()) - before).toBeLessThan(heapGrowthBytes);
      expect(agent.output().split('connected to the service')).toHaveLength(2);
      await admin.call('POST', `${path}/config`);
      // It cannot run everything that the fuzzer may deploy to it, and says so.
      await eventually(async () => (await admin.call<{ apply: { state: string } }>('GET', path)).apply.state).toMatch(
        /^(applied|rejected)$/,
      );
    },
    async close() {
      await agent.stop();
      await service.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
