/** The agent as one file, on a machine with Node and nothing else (`docs/how-to/add-an-agent.md`). */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { buildAgent } from '../../scripts/build-agent.js';
import { startControlServer } from '../support/agent-control-server.js';
import type { ControlServer } from '../support/agent-control-server.js';
import { eventually } from '../support/eventually.js';
import { freePort, snapshot, tcpRule } from '../support/snapshots.js';

let folder: string;
let service: ControlServer;
let child: ChildProcess | undefined;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'agent-file-'));
});
afterAll(async () => {
  child?.kill('SIGKILL');
  await service?.stop();
  rmSync(folder, { recursive: true, force: true });
});

it('runs what the service sends, with its PSK in a file, and tells of itself', async () => {
  const file = join(folder, 'gateway-agent.cjs');
  expect(buildAgent(file)).toBeLessThan(5 * 2 ** 20);
  const [listener, metricsPort] = [await freePort(), await freePort()];
  const running = snapshot(7, { tcp: [tcpRule(listener, '127.0.0.1:9')] });
  service = await startControlServer({
    onSaid(said, session) {
      if (said.$case === 'configRequest')
        session.send({ $case: 'configUpdate', value: { update: { $case: 'snapshot', value: running } } });
    },
  });
  writeFileSync(join(folder, 'psk'), `${service.controlPsk}\n`, { mode: 0o600 });
  child = spawn(process.execPath, [file], {
    cwd: folder,
    env: {
      SVC_AGENT_ID: 'node-1',
      SVC_CONTROL_ENDPOINT: `http://127.0.0.1:${service.port}`,
      SVC_CONTROL_PSK_FILE: join(folder, 'psk'),
      SVC_AGENT_METRICS_ADDR: `127.0.0.1:${metricsPort}`,
    },
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (chunk: Buffer) => (output += chunk.toString()));
  await eventually(() => output).toContain('configuration applied');
  // Without the addon beside it, it says that it does without.
  expect(output).toContain('libsodium does not load here');
  const address = `127.0.0.1:${metricsPort}`;
  const health = await fetch(`http://${address}/healthz`);
  expect([health.status, await health.json()]).toEqual([200, { connected: true, generation: 7 }]);
  const metrics = await (await fetch(`http://${address}/metrics`)).text();
  expect(metrics).toMatch(/^svc_agent_connected 1$/m);
  expect(metrics).toMatch(/^svc_agent_generation 7$/m);
  expect(metrics).toContain(`svc_agent_listener_running{transport="tcp",address="127.0.0.1",port="${listener}"} 1`);
  expect(metrics).toMatch(/^process_resident_memory_bytes \d+$/m);
  expect((await fetch(`http://${address}/nothing`)).status).toBe(404);
  expect((await fetch(`http://${address}/metrics`, { method: 'POST' })).status).toBe(405);
  const exited = new Promise((resolve) => child?.once('exit', resolve));
  child.kill('SIGTERM');
  expect(await exited).toBe(0);
}, 60_000);
