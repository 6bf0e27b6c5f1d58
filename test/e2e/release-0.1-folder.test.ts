/**
 * A data folder that release 0.1 wrote starts and serves unchanged: every answer that release gave is given again, its
 * agent opens a session with the PSK of then, a repeated command is recognised, and new commands go on where it stopped.
 */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startAgentProcess } from '../../scripts/stack/agent.js';
import type { RestClient } from '../../scripts/stack/rest-client.js';
import type { ServiceProcess } from '../../scripts/stack/service.js';
import { prepareService } from '../../scripts/stack/service.js';
import { eventually } from '../support/eventually.js';

interface Answers {
  readonly control_psk: string;
  readonly node_id: string;
  readonly repeat: { readonly status: number; readonly body: unknown };
  readonly answers: {
    readonly [path: string]: { readonly status: number; readonly etag: string | null; readonly body: unknown };
  };
}

const golden = fileURLToPath(new URL('../golden/release-0.1-folder', import.meta.url));
const recorded = JSON.parse(gunzipSync(readFileSync(join(golden, 'answers.json.gz'))).toString('utf8')) as Answers;

/** Copies the folder, unpacking what is packed. */
function unpack(from: string, to: string): void {
  mkdirSync(to, { recursive: true, mode: 0o700 });
  for (const name of readdirSync(from)) {
    const source = join(from, name);
    if (statSync(source).isDirectory()) unpack(source, join(to, name));
    else if (name.endsWith('.gz')) writeFileSync(join(to, name.slice(0, -3)), gunzipSync(readFileSync(source)));
    else writeFileSync(join(to, name), readFileSync(source), { mode: 0o600 });
  }
}

describe('a data folder of release 0.1', () => {
  const root = mkdtempSync(join(tmpdir(), 'release-0.1-'));
  let service: ServiceProcess;
  let admin: RestClient;
  beforeAll(async () => {
    unpack(join(golden, 'folder'), join(root, 'data'));
    service = await prepareService({ dataDir: join(root, 'data') });
    await service.start();
    admin = await service.admin();
  }, 90_000);
  afterAll(async () => {
    await service.stop();
    rmSync(root, { recursive: true, force: true });
  });

  it.each(Object.keys(recorded.answers))('answers GET %s as that release did', async (path) => {
    const { status, headers, body } = await admin.send('GET', path);
    expect({ status, etag: headers.get('etag'), body }).toEqual(recorded.answers[path]);
  });

  it('is served without a rebuild of the read models or a replay under another compiler', () => {
    expect(service.program().output()).not.toMatch(/rebuilt|compiler version is raised/);
  });

  it('recognises a repeated command, opens the session of its agent and takes new commands', async () => {
    const created = { name: 'edge-a', address: '127.0.0.1', labels: { site: 'north' } };
    const repeat = await admin.send('POST', '/api/nodes', created, { 'idempotency-key': 'known-after-the-restart' });
    expect(repeat.status).toBe(recorded.repeat.status);
    expect(repeat.body).toEqual(recorded.repeat.body);
    const agent = startAgentProcess({
      nodeId: recorded.node_id,
      controlPsk: recorded.control_psk,
      controlEndpoint: service.controlEndpoint,
    });
    try {
      const path = `/api/nodes/${recorded.node_id}`;
      const before = await admin.call<{ generation: number; version: number }>('GET', path);
      await eventually(async () => (await admin.call<{ status: string }>('GET', path)).status).toBe('online');
      await admin.call('POST', `${path}/config`);
      const after = await admin.call<{ generation: number; version: number }>('GET', path);
      expect(after.generation).toBeGreaterThan(before.generation);
      expect(after.version).toBe(before.version + 1);
      // Applied, or rejected where something else on this machine holds the ports of the folder's chains.
      await eventually(
        async () => (await admin.call<{ apply: { generation: number | null } }>('GET', path)).apply.generation,
      ).toBe(after.generation);
    } finally {
      await agent.stop();
    }
  }, 60_000);
});
