/**
 * PSKs and the identity of the real service replaced under real agents, which take a PSK from their identity file and go on
 * relaying meanwhile (`docs/contract/rollouts.md#guided-rotation`).
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually, freePorts, startProgram, type RunningProgram } from '../../scripts/stack/process.js';
import type { RestClient } from '../../scripts/stack/rest-client.js';
import { prepareService, type ServiceProcess } from '../../scripts/stack/service.js';
import { replacePsk } from '../../src/agent/by-hand.js';
import { writeIdentity } from '../../src/agent/state-directory.js';
import { startSteadyTraffic, type SteadyTraffic } from '../support/steady-traffic.js';

interface NodeView {
  readonly id: string;
  readonly name: string;
  readonly status: string;
  readonly psk_fingerprint: string;
  readonly psk_candidate: { readonly fingerprint: string } | null;
  readonly apply: { readonly state: string };
}
interface Issued {
  readonly id: string;
  readonly control_psk: string;
}

interface Machine {
  readonly id: string;
  readonly stateDir: string;
  readonly program: RunningProgram;
  traffic: SteadyTraffic | undefined;
}

let folder: string;
let service: ServiceProcess;
let admin: RestClient;
let echo: Server;
const machines: Machine[] = [];

const node = (id: string): Promise<NodeView> => admin.call<NodeView>('GET', `/api/nodes/${id}`);
const candidateOf = async (id: string): Promise<string> =>
  (await admin.call<Issued>('POST', `/api/nodes/${id}/psk?mode=candidate`)).control_psk;

/** As an operator does on the machine. */
async function write({ stateDir }: Machine, psk: string): Promise<void> {
  const pskFile = join(folder, 'psk');
  await writeFile(pskFile, psk);
  expect(await replacePsk({ kind: 'identity', pskFile, stateDir }, {})).toBe(0);
}
const hangUp = ({ program }: Machine): void => void process.kill(program.pid, 'SIGHUP');
const takes = async (machine: Machine, psk: string): Promise<void> => {
  await write(machine, psk);
  const before = await node(machine.id);
  hangUp(machine);
  await eventually('the agent has proven its PSK', async () => {
    const now = await node(machine.id);
    return now.psk_candidate === null && now.psk_fingerprint === before.psk_candidate?.fingerprint ? now : undefined;
  });
};
const count = (machine: Machine, words: string): number => machine.program.output().split(words).length - 1;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-e2e-'));
  service = await prepareService({ dataDir: join(folder, 'data') });
  await service.start();
  admin = await service.admin();
  echo = createServer((socket: Socket) => socket.on('error', () => undefined).pipe(socket)).listen(0, '127.0.0.1');
  await eventually('the echo server listens', async () => (echo.listening ? true : undefined));
  const endpoint = `127.0.0.1:${(echo.address() as AddressInfo).port}`;
  for (const [index, listen_port] of (await freePorts(2)).entries()) {
    const name = `edge-${index + 1}`;
    const { id, control_psk } = await admin.call<Issued>('POST', '/api/nodes', { name, address: '127.0.0.1' });
    const hops = [{ node_id: id, listen_addr: '127.0.0.1', listen_port, outer: 'tcp', security: 'raw' }];
    const chain = { name: `front-${index}`, payload: 'tcp', hops, target: { endpoint } };
    const made = await admin.call<{ id: string }>('POST', '/api/l4-chains', chain);
    await admin.call('POST', `/api/l4-chains/${made.id}/deploy`);
    const stateDir = join(folder, name);
    await writeIdentity(stateDir, { node_id: id, control_psk, endpoint: service.controlEndpoint });
    const program = startProgram('agent/main', { SVC_AGENT_STATE_DIR: stateDir }, ['run']);
    const machine: Machine = { id, stateDir, program, traffic: undefined };
    machines.push(machine);
    await eventually('the node runs its configuration', async () =>
      (await node(id)).apply.state === 'applied' ? true : undefined,
    );
    machine.traffic = startSteadyTraffic(listen_port);
  }
}, 120_000);
afterAll(async () => {
  await Promise.all(machines.flatMap(({ program, traffic }) => [program.stop(), traffic?.stop()]));
  echo.close();
  await service.stop();
  await rm(folder, { recursive: true, force: true });
}, 120_000);

test('a PSK is replaced by its candidate, a refused one is not, and the identity follows, without a gap', async () => {
  const [one, two] = machines as [Machine, Machine];

  // A candidate is written into the identity file, and proven.
  await takes(one, await candidateOf(one.id));
  const [entry] = (
    await admin.call<{ items: readonly object[] }>('GET', `/api/audit?resource_id=${one.id}&action=node.psk`)
  ).items;
  expect(entry).toMatchObject({ actor: { type: 'agent', id: one.id } });
  await eventually('the agent has said so', async () =>
    count(one, 'the service has taken the PSK of the identity file') === 1 ? true : undefined,
  );

  // A candidate that was taken back before the agent came: it goes on with the old one.
  const { psk_fingerprint: good } = await node(two.id);
  const taken = await candidateOf(two.id);
  await admin.call('DELETE', `/api/nodes/${two.id}/psk/candidate`);
  await write(two, taken);
  hangUp(two);
  await eventually('the agent was refused', async () =>
    count(two, 'the service refuses this PSK of the identity file') > 0 ? true : undefined,
  );
  await eventually('the agent is connected', async () => ((await node(two.id)).status === 'online' ? true : undefined));
  expect(await node(two.id)).toMatchObject({ psk_fingerprint: good, psk_candidate: null });
  // It does so after a restart with that file as well, which also holds the old one.
  two.traffic?.stop();
  await two.program.stop();
  const again = startProgram('agent/main', { SVC_AGENT_STATE_DIR: two.stateDir }, ['run']);
  machines[1] = { ...two, program: again, traffic: undefined };
  await eventually('the agent is connected again', async () =>
    again.output().includes('connected to the service') ? true : undefined,
  );

  // The identity is rotated under both.
  await admin.call('POST', '/api/service/identity/rotate');
  await takes(one, await candidateOf(one.id));
  const refused = await admin.call('POST', '/api/service/identity/retire').catch((error: unknown) => String(error));
  expect(refused).toMatch(/409.*1 node has a PSK of the old identity: "edge-2"/);
  await takes(machines[1] as Machine, await candidateOf(two.id));
  const retired = await admin.call<{ nodes: object; next: null }>('POST', '/api/service/identity/retire');
  expect(retired).toMatchObject({ next: null, nodes: { current: 2, next: 0 } });

  // A restart of the service reads the new identity from the log.
  await service.stop();
  await service.start();
  admin = await service.admin();
  await eventually('both are connected', async () => {
    const all = await Promise.all(machines.map(({ id }) => node(id)));
    return all.every(({ status }) => status === 'online') ? all : undefined;
  });
  expect(one.traffic?.failures).toEqual([]);
  expect(one.traffic?.echoes().lasting).toBeGreaterThan(10);
}, 180_000);
