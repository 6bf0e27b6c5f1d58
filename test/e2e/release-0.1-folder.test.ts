/**
 * A data folder that release 0.1 wrote starts and serves unchanged: every answer that release gave is given again, its
 * agent opens a session with the PSK of then, a repeated command is recognised, and new commands go on where it stopped.
 *
 * One thing differs on purpose: this release has a higher compiler version, because it does not dial reported addresses
 * such as 127.0.0.1 any more. Its first start raises the version in the log, which gives every node a new generation.
 * `expectedNow` says what follows for the answers; all the rest of each answer is compared as it was recorded.
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
import { compilerVersion } from '../../src/domain/compile/version.js';
import { eventually } from '../support/eventually.js';
import { proof } from '../support/proof.js';

interface Answer {
  readonly status: number;
  readonly etag: string | null;
  readonly body: unknown;
}

interface Answers {
  readonly control_psk: string;
  readonly node_id: string;
  readonly repeat: { readonly status: number; readonly body: unknown };
  readonly answers: { readonly [path: string]: Answer };
}

const golden = fileURLToPath(new URL('../golden/release-0.1-folder', import.meta.url));
const recorded = JSON.parse(gunzipSync(readFileSync(join(golden, 'answers.json.gz'))).toString('utf8')) as Answers;

interface Node {
  readonly generation: number;
}

/** A node under the raised compiler: nothing has been sent of its new generation yet. */
const raised = (node: Node, generation: number): Node & { readonly apply: object } => ({
  ...node,
  generation,
  apply: { state: 'none', generation: null, at: null, errors: [] },
});

/** What is answered now that the event of the raised compiler version gave every node this generation. */
function expectedNow(path: string, then: Answer, generation: number): Answer {
  const { data } = then.body as { readonly data: object };
  const now = (changed: object): Answer => ({ ...then, body: { ...(then.body as object), data: changed } });
  if (path === '/api/nodes') {
    const { items } = data as { readonly items: readonly Node[] };
    return now({ ...data, items: items.map((node) => raised(node, generation)) });
  }
  if (/^\/api\/nodes\/[^/]*-[^/]*$/.test(path)) return now(raised(data as Node, generation));
  if (path.endsWith('/config')) {
    const config = data as { readonly checksum: string; readonly snapshot: { readonly checksum: string } };
    // The generation is part of what the checksum covers.
    const other = (checksum: string): unknown => expect.not.stringContaining(checksum);
    const snapshot = { ...config.snapshot, generation: `${generation}`, checksum: other(config.snapshot.checksum) };
    return now({ ...config, generation, checksum: other(config.checksum), snapshot });
  }
  if (path.includes('/config?generation=')) {
    // That release could show the newest generation only.
    const data: unknown = expect.objectContaining({ generation: expect.any(Number), checksum: expect.any(String) });
    return { status: 200, etag: null, body: { success: true, data, error: null } };
  }
  if (path === '/api/audit?resource_type=service') {
    const { items, total } = data as { readonly items: readonly object[]; readonly total: number };
    const changes = [{ path: 'compiler_version', before: 1, after: compilerVersion }];
    return now({ ...data, items: [expect.objectContaining({ changes }), ...items], total: total + 1 });
  }
  return then;
}

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

/** An answer without the audit entries of the log chain, which this release began at its start. */
function withoutLogChain(body: unknown): unknown {
  const { data } = body as { data: { items?: readonly { resource?: { id: string } }[]; total?: number } | null };
  if (data?.items === undefined || data.total === undefined) return body;
  const items = data.items.filter(({ resource }) => resource?.id !== 'log');
  return { ...(body as object), data: { ...data, items, total: data.total - (data.items.length - items.length) } };
}

describe('a data folder of release 0.1', () => {
  const root = mkdtempSync(join(tmpdir(), 'release-0.1-'));
  let service: ServiceProcess;
  let admin: RestClient;
  /** Of every node, after the compiler version was raised. */
  let generation: number;
  beforeAll(async () => {
    unpack(join(golden, 'folder'), join(root, 'data'));
    service = await prepareService({ dataDir: join(root, 'data') });
    await service.start();
    admin = await service.admin();
    const { items } = await admin.call<{ items: readonly Node[] }>('GET', '/api/nodes');
    const then = Object.values(recorded.answers).flatMap(
      ({ body }) => /"generation":(\d+)/.exec(JSON.stringify(body))?.[1] ?? [],
    );
    generation = items[0]?.generation ?? 0;
    expect(generation).toBeGreaterThan(Math.max(...then.map(Number)));
  }, 90_000);
  afterAll(async () => {
    await service.stop();
    rmSync(root, { recursive: true, force: true });
  });

  it.each(Object.keys(recorded.answers))('answers GET %s as that release did', async (path) => {
    const { status, headers, body } = await admin.send('GET', path);
    const then = recorded.answers[path];
    if (then === undefined) throw new Error(`no answer to GET ${path} was recorded`);
    const answer = { status, etag: headers.get('etag'), body: withoutLogChain(body) };
    expect(answer).toEqual(expectedNow(path, then, generation));
  });

  it('is served without a rebuild of the read models, and the compiler version is raised once', () => {
    const output = service.program().output();
    expect(output).not.toMatch(/rebuilt/);
    expect(output.match(/the compiler version is raised/g)).toHaveLength(1);
  });

  it('recognises a repeated command, opens the session of its agent and takes new commands', async () => {
    const created = { name: 'edge-a', address: '127.0.0.1', labels: { site: 'north' } };
    const repeat = await admin.send('POST', '/api/nodes', created, { 'idempotency-key': 'known-after-the-restart' });
    expect(repeat.status).toBe(recorded.repeat.status);
    expect(repeat.body).toEqual(
      expectedNow('/api/nodes/the-repeated', { etag: null, ...recorded.repeat }, generation).body,
    );
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

  it('has log chains from this release on, which cover what that release wrote', async () => {
    await service.stop();
    const { problems, streams } = await proof(join(root, 'data'));
    expect(problems).toEqual([]);
    for (const { stream, linked, unlinked, head } of streams) {
      expect([stream, linked > 0, unlinked > 0, head?.stream]).toEqual([stream, true, true, stream]);
    }
  }, 60_000);
});
