/** The agent as one file, on a machine with Node and nothing else (`docs/how-to/add-an-agent.md`). */
import { spawn, type ChildProcess } from 'node:child_process';
import { chmodSync, chownSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { buildAgent } from '../../scripts/build-agent.js';
import { agentUnit } from '../../src/kernel/units.js';
import { startControlServer, type ControlServer } from '../support/agent-control-server.js';
import { canRun } from '../support/can-run.js';
import { eventually } from '../support/eventually.js';
import { sandboxOf } from '../support/sandbox.js';
import { freePort, snapshot, tcpRule } from '../support/snapshots.js';

let folder: string;
let file: string;
let bytes: number;
const children: ChildProcess[] = [];
const services: ControlServer[] = [];
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'agent-file-'));
  chmodSync(folder, 0o755);
  file = join(folder, 'gateway-agent.cjs');
  bytes = buildAgent(file);
});
afterAll(async () => {
  for (const child of children) child.kill('SIGKILL');
  for (const service of services) await service.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** The user that systemd would make up. */
const nobody = 65_534;

interface Start {
  /** What runs Node, with its arguments. */
  readonly command?: readonly string[];
  /** Arguments for Node. */
  readonly preload?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** Starts the file against a service that gives it one listener. */
async function start(listener: number, { command = [], preload = [], env = {} }: Start) {
  const running = snapshot(7, { tcp: [tcpRule(listener, '127.0.0.1:9')] });
  const service = await startControlServer({
    onSaid(said, session) {
      if (said.$case === 'configRequest') session.push(running);
    },
  });
  services.push(service);
  const psk = join(folder, `psk-${service.port}`);
  writeFileSync(psk, `${service.controlPsk}\n`, { mode: 0o400 });
  if (process.getuid?.() === 0) chownSync(psk, nobody, nobody);
  const [program = '', ...args] = [...command, process.execPath, ...preload, file];
  const child = spawn(program, args, {
    cwd: folder,
    env: {
      PATH: process.env['PATH'],
      SVC_AGENT_ID: 'node-1',
      SVC_CONTROL_ENDPOINT: `http://127.0.0.1:${service.port}`,
      SVC_CONTROL_PSK_FILE: psk,
      ...env,
    },
  });
  children.push(child);
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const exited = new Promise((resolve) => child.once('exit', resolve));
  return { output: () => output, child, exited };
}

it('runs what the service sends, with its PSK in a file, and tells of itself', async () => {
  expect(bytes).toBeLessThan(5 * 2 ** 20);
  const [listener, metricsPort] = [await freePort(), await freePort()];
  const address = `127.0.0.1:${metricsPort}`;
  const { output, child, exited } = await start(listener, { env: { SVC_AGENT_METRICS_ADDR: address } });
  await eventually(output).toContain('configuration applied');
  // Without the addon beside it, it says so.
  expect(output()).toContain('libsodium does not load here');
  const health = await fetch(`http://${address}/healthz`);
  expect([health.status, await health.json()]).toEqual([200, { connected: true, generation: 7 }]);
  const metrics = await (await fetch(`http://${address}/metrics`)).text();
  expect(metrics).toMatch(/^svc_agent_connected 1$/m);
  expect(metrics).toMatch(/^svc_agent_generation 7$/m);
  expect(metrics).toContain(`svc_agent_listener_running{transport="tcp",address="127.0.0.1",port="${listener}"} 1`);
  expect(metrics).toMatch(/^process_resident_memory_bytes \d+$/m);
  // promtool refuses such a name for a gauge.
  expect(metrics).not.toMatch(/_total gauge$/m);
  expect((await fetch(`http://${address}/nothing`)).status).toBe(404);
  expect((await fetch(`http://${address}/metrics`, { method: 'POST' })).status).toBe(405);
  child.kill('SIGTERM');
  expect(await exited).toBe(0);
});

/** What its unit lets the agent do: a user without rights, and ports below 1024. */
const asItsUnit: readonly [string, ...string[]] = [
  'setpriv',
  `--reuid=${nobody}`,
  `--regid=${nobody}`,
  '--clear-groups',
  '--no-new-privs',
  '--bounding-set=-all,+net_bind_service',
  '--inh-caps=-all,+net_bind_service',
  '--ambient-caps=+net_bind_service',
];
const canRestrict = canRun(...asItsUnit, process.execPath, '-e', '0');

async function lowPort(): Promise<number> {
  for (let port = 1_023; port > 600; port -= 1) {
    const server = createServer();
    const free = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false));
      server.listen(port, '127.0.0.1', () => resolve(true));
    });
    await new Promise((resolve) => server.close(resolve));
    if (free) return port;
  }
  throw new Error('no port below 1024 is free');
}

it.skipIf(!canRestrict)('needs no right but that to low ports, and no socket of AF_NETLINK', async () => {
  const refusal = join(folder, 'no-netlink.cjs');
  writeFileSync(
    refusal,
    `require('node:os').networkInterfaces = () => { throw new Error('Unknown system error 97'); };`,
  );
  const { output, child, exited } = await start(await lowPort(), {
    command: asItsUnit,
    preload: ['--require', refusal],
  });
  await eventually(output).toContain('configuration applied');
  child.kill('SIGTERM');
  expect(await exited).toBe(0);
});

const sandbox = sandboxOf(agentUnit('node', 'agent'));

it.skipIf(sandbox === undefined)('runs with the system calls and address families of its unit', async () => {
  const { output, child, exited } = await start(await freePort(), { command: sandbox ?? [] });
  await eventually(output).toContain('configuration applied');
  child.kill('SIGTERM');
  expect(await exited).toBe(0);
});
