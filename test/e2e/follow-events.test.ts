/**
 * The program of `docs/how-to/follow-events.md`, as it stands there, beside the real service: both are killed while things happen,
 * and everything is printed.
 */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../../scripts/stack/process.js';
import { prepareService, type ServiceProcess } from '../../scripts/stack/service.js';
import { projectRoot } from '../support/project-root.js';

let folder: string;
let service: ServiceProcess;
const programs: ChildProcess[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-follow-'));
  service = await prepareService({ dataDir: join(folder, 'data') });
  await service.start();
}, 120_000);

afterAll(async () => {
  for (const program of programs) program.kill('SIGKILL');
  await service.stop();
  await rm(folder, { recursive: true, force: true });
});

test('the program of the page prints every command once, through kill -9 of the service and of itself', async () => {
  const page = await readFile(join(projectRoot, 'docs/how-to/follow-events.md'), 'utf8');
  const program = /```js\n([^]*?)```/.exec(page)?.[1] ?? '';
  const source = program.replace(/^ {3}/gm, '');
  expect(source.trimEnd().split('\n').length).toBeLessThanOrEqual(25);
  const path = join(folder, 'follow.mjs');
  await writeFile(path, source);
  const password = { username: 'admin', password: 'a password for the demo only' };
  const login = await fetch(`${service.url}/api/auth/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(password),
  });
  const { data } = (await login.json()) as { data: { token: string } };
  let printed = '';
  const follow = (): ChildProcess => {
    const env = { ...process.env, API: `${service.url}/api`, TOKEN: data.token, CURSOR_FILE: join(folder, 'cursor') };
    const child = spawn(process.execPath, [path], { env, stdio: ['ignore', 'pipe', 'ignore'] });
    child.stdout.on('data', (chunk: Buffer) => (printed += chunk.toString()));
    programs.push(child);
    return child;
  };
  const names = (): string[] =>
    printed
      .split('\n')
      .slice(0, -1)
      .map((line) => (JSON.parse(line) as { resource: { name: string } }).resource.name);
  const admin = await service.admin();
  const create = (name: string): Promise<unknown> => admin.call('POST', '/api/nodes', { name });
  const seen = (name: string): Promise<true> =>
    eventually(`the program has printed ${name}`, async () => (names().includes(name) ? true : undefined), 30_000);

  const first = follow();
  await eventually('the program has a cursor', () => readFile(join(folder, 'cursor'), 'utf8').catch(() => undefined));
  for (const name of ['a', 'b', 'c']) await create(name);
  await seen('c');
  await create('before the kill');
  await service.kill();
  await service.start();
  for (const name of ['d', 'e']) await create(name);
  await seen('e');
  first.kill('SIGKILL');
  await once(first, 'exit');
  for (const name of ['f', 'g']) await create(name);
  follow();
  await create('h');
  await seen('h');
  expect([...new Set(names())]).toEqual(['a', 'b', 'c', 'before the kill', 'd', 'e', 'f', 'g', 'h']);
  // It may have died after it printed `e` and before it noted its cursor.
  expect(names().filter((name) => name !== 'e')).toEqual(['a', 'b', 'c', 'before the kill', 'd', 'f', 'g', 'h']);
}, 180_000);
