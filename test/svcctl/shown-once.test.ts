/**
 * What is shown once reaches the person, whatever fails behind it (`docs/contract/automation.md#the-command-line-svcctl`):
 * PSKs that were kept and PSKs that were printed are all that were issued.
 */
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer, request as send, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execPath } from 'node:process';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { RestClient } from '../../scripts/stack/rest-client.js';
import { projectRoot } from '../support/project-root.js';
import { prepareServiceHere, type ServiceHere } from '../support/service-here.js';
import type { Ran } from './support/run-here.js';
import { createRunner, type Runner } from './support/run.js';

let folder: string;
let service: ServiceHere;
let admin: RestClient;
let script: Runner;
let environment: Record<string, string>;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'svcctl-once-'));
  service = await prepareServiceHere({ dataDir: join(folder, 'data') });
  await service.start();
  admin = await service.admin();
  const { token } = await admin.call<{ token: string }>('POST', '/api/auth/tokens', { name: 'script', role: 'admin' });
  environment = { HOME: folder, SVC_SERVER: service.url, SVC_TOKEN: token };
  script = createRunner(environment);
});
afterAll(async () => {
  await service.stop();
  rmSync(folder, { recursive: true, force: true });
});

let files = 0;
/** A document with these nodes in a set of its own. */
function fileOf(...nodes: readonly string[]): string {
  files += 1;
  const path = join(folder, `fleet-${files}.yaml`);
  const lines = nodes.map((name) => `  ${JSON.stringify(name)}: {}\n`).join('');
  writeFileSync(path, `svc: 1\nset: set-${files}\nnodes:\n${lines}`);
  return path;
}

/** With its output redirected by the shell. */
function shell(args: readonly string[], redirected: string): Promise<Ran> {
  const words = [execPath, join(projectRoot, 'cli/bin/svcctl.js'), ...args].map((word) => `'${word}'`).join(' ');
  const child = spawn('sh', ['-c', `exec ${words} ${redirected}`], {
    env: { PATH: process.env['PATH'] ?? '', ...environment },
  });
  let [out, err] = ['', ''];
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()));
  return new Promise((resolve) => child.on('close', (code) => resolve({ code, out, err })));
}

const pskIn = (text: string): readonly string[] => text.match(/svcpsk1_[\w-]+/g) ?? [];
const keptIn = (into: string): readonly string[] =>
  readdirSync(into, { withFileTypes: true }).flatMap((entry) =>
    entry.isFile() ? pskIn(readFileSync(join(into, entry.name), 'utf8')) : [],
  );
const nodesNamed = async (name: string): Promise<number> =>
  (await admin.call<{ total: number }>('GET', `/api/nodes?q=${encodeURIComponent(name)}`)).total;

test('names that are too long for a file are shortened with a hash, and every PSK is kept', async () => {
  const into = join(folder, 'long');
  const names = ['漢'.repeat(64), `${'漢'.repeat(63)}字`, 'short'];
  const ran = await script.run(['apply', '-f', fileOf(...names), '--yes', '--psk-dir', into]);
  expect([ran.code, ran.err]).toEqual([0, '']);
  expect(new Set(keptIn(into)).size).toBe(3);
  for (const name of readdirSync(into)) {
    expect(Buffer.byteLength(name)).toBeLessThan(256);
    expect(statSync(join(into, name)).mode & 0o777).toBe(0o600);
  }
  expect(readdirSync(into)).toContain('short.env');
});

test('a file that cannot be made is told before anything is applied', async () => {
  const into = join(folder, 'taken');
  mkdirSync(join(into, 'taken-2.env'), { recursive: true });
  const taken = await script.run(['apply', '-f', fileOf('taken-1', 'taken-2'), '--yes', '--psk-dir', into]);
  expect([taken.code, taken.err]).toEqual([3, expect.stringContaining('taken-2.env')]);
  expect(readdirSync(into)).toEqual(['taken-2.env']);
  const inFile = join(folder, 'a-file');
  writeFileSync(inFile, '');
  const noFolder = await script.run(['apply', '-f', fileOf('taken-3'), '--yes', '--psk-dir', inFile]);
  expect(noFolder.code).toBe(3);
  expect(await nodesNamed('taken-')).toBe(0);
});

test('a file that cannot be kept after the apply is printed, and so is the exit code', async () => {
  const into = join(folder, 'late');
  // The apply passes through here, and the place of a file is taken meanwhile.
  const proxy = await proxied((path) => {
    if (path === '/api/fleet/apply') mkdirSync(join(into, 'late-1.env'), { recursive: true });
    return 'answer';
  });
  const args = ['apply', '-f', fileOf('late-1', 'late-2'), '--yes', '--psk-dir', into];
  const ran = await script.run(args, { env: { SVC_SERVER: proxy.url } });
  proxy.server.close();
  expect(ran.code).toBe(1);
  expect(ran.err).toContain('late-1');
  expect(pskIn(ran.out)).toHaveLength(1);
  expect(new Set([...pskIn(ran.out), ...keptIn(into)]).size).toBe(2);
});

test.each(['cut', 'half'] as const)(
  'an answer that comes not at all or in half (%s) is asked for again, and PSKs that nobody has seen are issued anew',
  async (lost) => {
    const into = join(folder, lost);
    let cut = 0;
    const proxy = await proxied((path) => (path === '/api/fleet/apply' && (cut += 1) === 1 ? lost : 'answer'));
    const args = ['apply', '-f', fileOf(`${lost}-1`, `${lost}-2`), '--yes', '--psk-dir', into];
    const ran = await script.run(args, { env: { SVC_SERVER: proxy.url } });
    proxy.server.close();
    expect([ran.code, ran.err]).toEqual([0, '']);
    expect(cut).toBe(2);
    expect(new Set(keptIn(into)).size).toBe(2);
  },
);

test('a secret reaches stderr when stdout is full, closed or leads nowhere', async () => {
  await admin.call('POST', '/api/nodes', { name: 'once', issue_psk: false });
  const psk = ['psk', 'once', '--yes'];
  for (const [redirected, args] of [
    ['>/dev/full', psk],
    ['>/dev/full', ['node', 'env', 'once', '--issue', '--yes']],
    ['>/dev/full', ['create', 'nodes', 'once-more']],
    ['>&-', psk],
    ['>/dev/null', psk],
  ] as const) {
    const ran = await shell(args, redirected);
    expect([redirected, args[0], pskIn(ran.err).length, ran.code]).toEqual([redirected, args[0], 1, 1]);
  }
  const piped = await shell(psk, '| true');
  expect(piped.code).toBe(0);
});

test('the secret that an edit makes is printed', async () => {
  const hook = { name: 'hook', url: 'https://hooks.example/x' };
  await admin.call('POST', '/api/webhooks', { ...hook, format: 'slack', group_secs: 0 });
  const edit = (editor: string): Promise<Ran> => script.run(['edit', 'webhooks', 'hook'], { env: { EDITOR: editor } });
  const became = await edit('sed -i s/slack/standard/');
  expect([became.code, became.err]).toEqual([0, '']);
  expect(became.out).toMatch(/^changed format of webhooks\/hook\nsecret: whsec_\S+\n$/);
  const rotated = await edit('sed -i $a\\rotate_secret:\\x20true');
  expect(rotated.out).toMatch(/^changed rotate_secret of webhooks\/hook\nsecret: whsec_\S+\n$/);
});

test('exports are written under names that a file may have', async () => {
  const set = '界'.repeat(60);
  const path = join(folder, 'set.yaml');
  writeFileSync(path, `svc: 1\nset: ${set}\nupstreams: {u-set: {endpoint: "a.example:1"}}\n`);
  expect((await script.run(['apply', '-f', path, '--yes'])).code).toBe(0);
  const into = join(folder, 'exports');
  const ran = await script.run(['export', '-d', into]);
  expect([ran.code, ran.out]).toEqual([0, '']);
  const texts = readdirSync(into).map((name) => readFileSync(join(into, name), 'utf8'));
  expect(texts.some((text) => text.includes(set))).toBe(true);
});

/** A proxy of the service. @param does what becomes of the answer to a request */
async function proxied(
  does: (path: string) => 'answer' | 'cut' | 'half',
): Promise<{ readonly url: string; readonly server: Server }> {
  const server = createServer((request, response) => {
    const onward = send(
      `${service.url}${request.url}`,
      { method: request.method, headers: request.headers },
      (answer) => {
        const chunks: Buffer[] = [];
        answer.on('data', (chunk: Buffer) => chunks.push(chunk));
        answer.on('end', () => {
          const [done, whole] = [does(request.url ?? ''), Buffer.concat(chunks)];
          if (done === 'cut') return void request.socket.destroy();
          response.writeHead(answer.statusCode ?? 500, answer.headers);
          if (done === 'answer') return void response.end(whole);
          response.write(whole.subarray(0, whole.length / 2), () => request.socket.destroy());
        });
      },
    );
    request.pipe(onward);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server };
}
