/** What a person meets when something is wrong: each is a sentence and an exit code, and nothing hangs. */
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'yaml';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { projectRoot } from '../support/project-root.js';
import { startPretendService, type Asked, type Given, type PretendService } from './support/pretend-service.js';
import { createRunner, terminals, type Runner } from './support/run.js';

let folder: string;
let service: PretendService;
/** Signed in by environment. */
let script: Runner;
/** Signed in by a file, or not at all. */
let person: Runner;
let answer: (asked: Asked) => Given | undefined;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'svcctl-mistakes-'));
  answer = () => undefined;
  service = await startPretendService((asked) => answer(asked));
  script = createRunner({ HOME: folder, SVC_SERVER: service.url, SVC_TOKEN: 'svcat_x' });
  person = createRunner({ HOME: folder, XDG_CONFIG_HOME: folder });
});
afterEach(async () => {
  await service.stop();
  rmSync(folder, { recursive: true, force: true });
});

const upstream = (name: string) => ({ id: '0a921c95-6082-453d-ba98-8573cb97dc91', name, endpoint: '192.0.2.1:80' });
const listOf = (...items: readonly object[]): Given => ({
  data: { items, total: items.length, page: 1, page_size: 200 },
});
const expired: Given = { status: 401, error: 'unauthenticated: the token has expired' };

const configFile = () => join(folder, 'svcctl/config.json');
function signedIn(more: object = {}): void {
  mkdirSync(join(folder, 'svcctl'), { recursive: true });
  const context = { server: service.url, user: 'ada', token: 'svcat_x', token_id: 'a-token', ...more };
  writeFileSync(configFile(), JSON.stringify({ current: 'default', contexts: { default: context } }));
}

describe.skipIf(!terminals)('a question', () => {
  test.each([
    ['Ctrl-D', '\u0004'],
    ['Ctrl-C', '\u0003'],
  ])('that is answered with %s is declined, and the command says so', async (_, key) => {
    answer = ({ path }) =>
      path.startsWith('/api/l4-upstreams?') ? listOf(upstream('web')) : { data: upstream('web') };
    const { code, out } = await script.onTerminal(['delete', 'upstreams', 'web'], [['[y/N]', key]]);
    expect([code, out]).toEqual([1, expect.stringContaining('svcctl: declined; nothing was changed')]);
    expect(service.asked.filter((asked) => asked.startsWith('DELETE'))).toEqual([]);
  });

  test('for a password ends with Ctrl-D too', async () => {
    const { code, out } = await person.onTerminal(
      ['login', '--server', service.url, '--user', 'ada'],
      [['Password of ada', '\u0004']],
    );
    expect([code, out]).toEqual([1, expect.stringContaining('svcctl: declined; nothing was changed')]);
    expect(service.asked).toEqual([]);
  });

  test('for a password does not come before http to another machine is refused', async () => {
    const { code, out } = await person.onTerminal(['login', '--server', 'http://192.0.2.1:8081', '--user', 'ada']);
    expect([code, out]).toEqual([3, expect.stringContaining('plain http')]);
    expect(out).not.toContain('Password');
  });
});

describe('a token that has ended', () => {
  test('is told with what helps', async () => {
    answer = () => expired;
    signedIn();
    expect(await person.run(['get', 'nodes'])).toEqual({
      code: 5,
      out: '',
      err: 'svcctl: unauthenticated: the token has expired; run svcctl login (request asked-1)\n',
    });
    expect((await script.run(['get', 'nodes'])).err).toContain('expired; set SVC_TOKEN to another token');
  });

  test('that the service does not know is told of as a token, not as a header', async () => {
    const error = 'unauthenticated: expected a valid token in the header Authorization: Bearer <token>';
    answer = () => ({ status: 401, error });
    signedIn();
    const { code, err } = await person.run(['get', 'nodes']);
    expect([code, err]).toEqual([
      5,
      'svcctl: unauthenticated: this token is not valid; run svcctl login (request asked-1)\n',
    ]);
  });

  test('is forgotten by logout, whether the service or the file says so', async () => {
    answer = () => expired;
    for (const more of [{}, { expires_at: '2020-01-01T00:00:00.000Z' }]) {
      signedIn(more);
      expect(await person.run(['logout'])).toEqual({ code: 0, out: 'signed out of default\n', err: '' });
      expect(JSON.parse(readFileSync(configFile(), 'utf8')).contexts).toEqual({});
    }
    expect(service.asked).toEqual(Array(2).fill('DELETE /api/auth/tokens/a-token'));
  });

  test('is kept by logout while the service cannot say that it has ended', async () => {
    answer = () => ({ status: 503, error: 'unavailable: the event store is out of reach' });
    signedIn();
    expect(await person.run(['logout'])).toMatchObject({ code: 1, err: expect.stringContaining('unavailable: ') });
    expect(JSON.parse(readFileSync(configFile(), 'utf8')).contexts).toHaveProperty('default');
  });
});

test('a folder of contexts that cannot be written is told before a token is made', async () => {
  symlinkSync('nowhere', join(folder, 'svcctl'));
  answer = () => ({ data: { username: 'ada', items: [] } });
  const { code, err } = await person.runAlone(['login', '--server', service.url, '--token-stdin'], {
    input: 'svcat_y',
  });
  expect([code, err, service.asked]).toEqual([3, expect.stringContaining(`svcctl: ${configFile()}: `), []]);
});

test('a relative --ca-file is kept as a path that holds in every folder', async () => {
  writeFileSync(join(folder, 'ca.pem'), '');
  answer = ({ path }) => (path.startsWith('/api/auth/me') ? { data: { username: 'ada' } } : listOf());
  const login = ['login', '--server', service.url, '--token-stdin', '--ca-file', 'ca.pem'];
  expect(await person.runAlone(login, { input: 'svcat_y', cwd: folder })).toMatchObject({ code: 0, err: '' });
  expect(JSON.parse(readFileSync(configFile(), 'utf8')).contexts.default.ca_file).toBe(join(folder, 'ca.pem'));
});

test('a port that speaks http is told in a sentence', async () => {
  const server = service.url.replace('http:', 'https:');
  expect(await script.run(['get', 'nodes'], { env: { SVC_SERVER: server } })).toEqual({
    code: 4,
    out: '',
    err: `svcctl: ${server} is out of reach: this port speaks http; expected ${service.url}\n`,
  });
});

test('a port that speaks https is told of where one that hears http says nothing', async () => {
  const silent = createServer((socket) => socket.on('error', () => undefined).once('data', () => socket.end()));
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  const server = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
  const { code, err } = await script.run(['get', 'nodes'], { env: { SVC_SERVER: server } });
  silent.close();
  const hint = `expected ${server.replace('http:', 'https:')}, if this port speaks https`;
  expect([code, err]).toEqual([4, `svcctl: ${server} is out of reach: other side closed; ${hint}\n`]);
});

test('a port that closes each connection at once, as one of a balancer without a service, is told in a sentence', async () => {
  const empty = createServer((socket) => socket.on('error', () => undefined).end());
  await new Promise<void>((resolve) => empty.listen(0, '127.0.0.1', resolve));
  const server = `http://127.0.0.1:${(empty.address() as AddressInfo).port}`;
  const { code, err } = await script.runAlone(['get', 'nodes'], { env: { SVC_SERVER: server } });
  empty.close();
  // Whether the request or the end comes first is chance.
  expect([code, err]).toEqual([4, expect.stringMatching(/closed/)]);
});

test.each([302, 307])('a redirect (%i) is told of, and neither a token nor a password follows it', async (status) => {
  const elsewhere = await startPretendService(() => listOf(upstream('web')));
  const location = `${elsewhere.url}/api/nodes`;
  answer = () => ({ status, headers: { location } });
  const { code, err } = await script.run(['create', 'nodes', 'edge']);
  await elsewhere.stop();
  const told = `svcctl: the answer is ${status} to ${location}, and not of this service (request asked-1)\n`;
  expect([code, err, elsewhere.asked]).toEqual([1, told, []]);
});

test.each([
  ['/api/events', ['events']],
  ['/api/events', ['history', '0a921c95-6082-453d-ba98-8573cb97dc91']],
  ['/healthz', ['version']],
  ['/api/fleet/applies/', ['revert', '0a921c95-6082-453d-ba98-8573cb97dc91']],
  ['/openapi.json', ['edit', 'upstreams', '0a921c95-6082-453d-ba98-8573cb97dc91']],
  ['/api/nodes', ['get', 'nodes']],
])('an answer of %s that breaks off is told as a service out of reach', async (path, args) => {
  answer = (asked) => (asked.path.startsWith(path) ? { breaksOff: true } : { data: upstream('web') });
  const { code, err } = await script.run(args);
  expect([code, err]).toEqual([4, 'svcctl: the answer broke off: terminated\n']);
});

test('a word that is no command for agents is told as wrong use, and nothing is asked', async () => {
  const { code, err } = await script.run(['command', 'edge-1', 'RESTART']);
  const words = 'RELOAD_CONFIG, RESTART_PINGORA, RUN_DIAGNOSTICS';
  expect([code, err]).toEqual([3, `svcctl: RESTART: expected a command after the nodes: ${words}\n`]);
  expect(service.asked).toEqual([]);
});

test.each([
  ['json', JSON.stringify([upstream('web')], undefined, 2).slice(0, -2)],
  ['yaml', 'endpoint: 192.0.2.1:80\n'],
  ['name', 'web\n'],
])('a list as %s is printed page by page', async (format, shown) => {
  answer = () =>
    service.asked.length === 1 ? { data: { items: [upstream('web')], total: 2, next: 'more' } } : { breaksOff: true };
  const { code, out } = await script.run(['get', 'upstreams', '-o', format]);
  expect([code, out]).toEqual([4, expect.stringContaining(shown)]);
});

test('the end of a certificate is in the list of credentials', async () => {
  answer = () => listOf({ name: 'web', key_type: 'tls_cert', certificate: { not_after: '2027-01-01T00:00:00.000Z' } });
  const { out } = await script.run(['get', 'credentials']);
  expect(out).toContain('web   tls_cert  2027-01-01T00:00:00.000Z');
});

test('a server that is another one is told in a sentence', async () => {
  answer = () => ({ headers: { 'content-type': 'text/html; charset=utf-8' } });
  for (const args of [['get', 'nodes'], ['status'], ['events'], ['incidents']]) {
    const { code, err } = await script.run(args);
    expect([code, err]).toEqual([1, 'svcctl: the answer is 200, and not of this service (request asked-1)\n']);
  }
});

test.each(['{', '{}', 'null', '[]'])('a file of contexts that holds %s is told, with what helps', async (text) => {
  mkdirSync(join(folder, 'svcctl'));
  writeFileSync(configFile(), text);
  for (const args of [['get', 'nodes'], ['context'], ['login', '--server', service.url]]) {
    const { code, err } = await person.run(args);
    const told = `svcctl: ${configFile()}: expected JSON with contexts; mend it, or delete it and sign in again\n`;
    expect([code, err]).toEqual([3, told]);
  }
});

test('a deploy that is done does not seem to have failed because names cannot be read behind it', async () => {
  const chain = { id: '0a921c95-6082-453d-ba98-8573cb97dc91', name: 'front' };
  const deployment = { nodes: [{ node_id: 'node-1', generation: 7, state: 'pushed', errors: [] }] };
  answer = ({ method, path }) => {
    if (method === 'POST') return { data: { deployment, warnings: [], rollout_id: null } };
    if (path.startsWith('/api/nodes/ports')) return { status: 503, error: 'unavailable: read models lag' };
    return path.startsWith('/api/l4-chains?') ? listOf(chain) : { data: chain };
  };
  expect(await script.run(['deploy', 'front'])).toEqual({ code: 0, out: 'node-1  generation 7  pushed\n', err: '' });
});

test('a value that is no YAML is told with its option', async () => {
  const { code, err } = await script.run(['create', 'nodes', 'edge', '--set', 'description=[eu']);
  expect([code, err]).toEqual([3, expect.stringMatching(/^svcctl: --set description: Flow sequence .* column 4:\n$/)]);
  expect(service.asked).toEqual([]);
});

describe('output of which nobody reads the rest', () => {
  const plan = { steps: [{ action: 'create', resource: { type: 'node', name: 'a' }, changes: [] }], nodes: [] };
  const planned = { data: { ...plan, obstacles: [], commands: 1, etag: 'e', warnings: [] } };
  const file = (): string => {
    writeFileSync(join(folder, 'fleet.yaml'), 'svc: 1\n');
    return join(folder, 'fleet.yaml');
  };

  test('does not make changes seem to be none, nor an apply that was not made seem done', async () => {
    answer = () => planned;
    expect(await script.unread(['plan', '-f', file()])).toBe(2);
    expect(await script.unread(['apply', '-f', file(), '--yes'])).toBe(1);
    expect(service.asked).toEqual(Array(2).fill('POST /api/fleet/plan'));
  });

  test('ends a list without a failure', async () => {
    answer = () => listOf(upstream('web'));
    expect(await script.unread(['get', 'upstreams'])).toBe(0);
  });

  test('ends commands to many nodes with a failure only while some have got none', async () => {
    const nodes = Array.from({ length: 501 }, (_, index) => ({ id: `node-${index}`, name: `node-${index}` }));
    const entry = { id: 'e', resource: { name: '500 nodes' } };
    answer = ({ method }) => (method === 'GET' ? listOf(...nodes) : { data: { entry, items: [] } });
    const tell = ['command', '--filter', 'label=region', 'RELOAD_CONFIG'];
    expect(await script.unread(tell)).toBe(1);
    nodes.pop();
    expect(await script.unread(tell)).toBe(0);
    expect(service.asked.filter((asked) => asked.startsWith('POST'))).toHaveLength(2);
  });
});

test('a plan for which there is no place yet is asked for again', async () => {
  const plan = { steps: [], nodes: [], obstacles: [], commands: 0, etag: 'e' };
  const busy = { status: 429, headers: { 'retry-after': '1' }, error: 'rate_limited: one plan at a time' };
  answer = () => (service.asked.length < 3 ? busy : { data: plan });
  const file = join(folder, 'fleet.yaml');
  writeFileSync(file, 'svc: 1\n');
  expect(await script.run(['plan', '-f', file])).toEqual({ code: 0, out: 'no changes\n', err: '' });
  expect(service.asked).toEqual(Array(3).fill('POST /api/fleet/plan'));
});

test.skipIf(!existsSync('/dev/full'))('a full disk is told in a line', () => {
  signedIn();
  const { status, stderr } = spawnSync(
    'sh',
    ['-c', `exec "${process.execPath}" "${join(projectRoot, 'cli/bin/svcctl.js')}" context > /dev/full`],
    { env: { PATH: process.env['PATH'], HOME: folder, XDG_CONFIG_HOME: folder }, encoding: 'utf8', timeout: 60_000 },
  );
  expect([status, stderr]).toEqual([1, expect.stringMatching(/^svcctl: the output cannot be written: ENOSPC.*\n$/)]);
});

test('a file that is not UTF-8 is refused, so that no name is changed by reading it', async () => {
  const latin1 = (name: string, text: string): string => {
    writeFileSync(join(folder, name), text, 'latin1');
    return join(folder, name);
  };
  const nodes = latin1('nodes.yaml', 'svc: 1\nnodes: {Süd: {}}\n');
  latin1('web.key', 'ü');
  const credential = 'web: {key_type: x25519, private_key: {file: web.key}}';
  const keys = latin1('keys.yaml', `svc: 1\ncredentials: {${credential}}\n`);
  for (const [args, error] of [
    [['plan', '-f', nodes], `${nodes}: expected UTF-8`],
    [['create', 'nodes', '-f', nodes], `${nodes}: expected UTF-8`],
    [['plan', '-f', keys], 'web.key: expected UTF-8'],
  ] as const) {
    const { code, err } = await script.run(args);
    expect([code, err]).toEqual([3, expect.stringContaining(error)]);
  }
  expect(service.asked.filter((asked) => asked.startsWith('POST'))).toEqual([]);
});

test('a pipe in place of a key is refused, and nobody waits for it', async () => {
  execFileSync('sh', ['-c', 'mkfifo key'], { cwd: folder, timeout: 60_000 });
  const file = join(folder, 'fleet.yaml');
  writeFileSync(file, 'svc: 1\ncredentials:\n  c: {key_type: tls_cert, private_key_pem: {file: key}}\n');
  expect(await script.run(['plan', '-f', file])).toMatchObject({
    code: 3,
    err: 'svcctl: credentials.c.private_key_pem: key: expected a file\n',
  });
});

test('YAML has no character that moves a cursor or turns a line, and reads back the same', async () => {
  const name = 'a\u009b31m\u202eb\u2066\u061c\nc';
  answer = () => listOf({ ...upstream(name), labels: { [name]: name } });
  const { code, out } = await script.run(['get', 'upstreams', '-o', 'yaml']);
  expect([code, out]).toEqual([0, expect.stringContaining('a\\u009b31m\\u202eb\\u2066\\u061c\\nc')]);
  expect(out).not.toMatch(/[\u0080-\u009f\u202e\u2066\u061c]/);
  expect(parse(out)).toEqual([{ ...upstream(name), labels: { [name]: name } }]);
});

test('every command that help shows is on the page of the reference', async () => {
  const page = readFileSync(join(projectRoot, 'docs/reference/svcctl.md'), 'utf8');
  const left: string[][] = [[]];
  const shown: string[] = [];
  for (let path = left.pop(); path !== undefined; path = left.pop()) {
    const commands = /\nCommands:\n(.*?)(\n\n|$)/s.exec((await script.run([...path, '--help'])).out)?.[1] ?? '';
    for (const [, name = ''] of commands.matchAll(/^ {2}([a-z-]+)/gm)) {
      if (name === 'help') continue;
      left.push([...path, name]);
      shown.push(`## svcctl ${[...path, name].join(' ')}`);
    }
  }
  expect(shown).toContain('## svcctl rollouts resume');
  expect(shown.filter((heading) => !page.includes(`\n${heading}\n`))).toEqual([]);
});
