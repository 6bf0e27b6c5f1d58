/** `gateway-agent join | run | identity` on a machine, against the service (`docs/contract/joining.md#the-machines-side`). */
import { spawn, type ChildProcess } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { compiledRoot } from '../../scripts/stack/process.js';
import { joinByHand } from '../../src/agent/by-hand.js';
import { readCommandLine } from '../../src/agent/command-line.js';
import { canRun } from '../support/can-run.js';
import { withDeadline } from '../../src/kernel/background.js';
import { systemClock } from '../../src/kernel/clock.js';
import { issuePsk, startControlServer } from '../support/agent-control-server.js';
import { eventually } from '../support/eventually.js';
import { joinOf, tokenWith } from '../support/machines.js';
import { startRest, type JsonData, type RestFixture } from '../support/rest-fixture.js';

let rest: RestFixture;
let endpoint: string;
beforeAll(async () => {
  rest = await startRest();
  endpoint = `http://${rest.agents}`;
});
afterAll(() => rest.close());

let folder: string;
let stateDir: string;
let identityPath: string;
const children: ChildProcess[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'joining-'));
  stateDir = join(folder, 'state');
  identityPath = join(stateDir, 'identity.json');
});
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});

type Env = Readonly<Record<string, string>>;

let made = 0;
const makeToken = (fields: object = {}): Promise<JsonData> =>
  rest.data('POST', '/api/join-tokens', { body: { name: `machines ${(made += 1)}`, ...fields } });
const tokenNow = ({ id }: JsonData): Promise<JsonData> => rest.data('GET', `/api/join-tokens/${id}`);
const identity = (): JsonData => JSON.parse(readFileSync(identityPath, 'utf8'));

const program = join(compiledRoot, 'src/agent/main.js');

function start(args: readonly string[], env: Env = {}, preload: readonly string[] = []) {
  const child = spawn(process.execPath, [...preload, program, ...args], {
    env: { PATH: process.env['PATH'], SVC_AGENT_STATE_DIR: stateDir, ...env },
  });
  children.push(child);
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += String(chunk)));
  const exit = new Promise<number | null>((resolve) => child.once('close', resolve));
  return { child, output: () => output, exit };
}

async function agent(args: readonly string[], env: Env = {}, preload: readonly string[] = []) {
  const { exit, output } = start(args, env, preload);
  return { code: await exit, output: output() };
}

const joins = (token: string, ...more: string[]) =>
  agent(['join', '--endpoint', endpoint, ...more], { SVC_JOIN_TOKEN: token });

/** Whether the agent that runs the node is connected. */
const isOnline = async (nodeId: string): Promise<boolean> =>
  (await rest.data('GET', `/api/nodes/${nodeId}`)).status === 'online';

describe('join', () => {
  test('makes the machine a node and keeps who it is, for the owner of the directory alone', async () => {
    const { id, token } = await makeToken({ labels: { rack: '7' }, name_prefix: 'edge-' });
    mkdirSync(stateDir);
    const elsewhere = join(folder, 'elsewhere');
    writeFileSync(elsewhere, 'not to be touched');
    symlinkSync(elsewhere, identityPath);
    const isRoot = process.getuid?.() === 0;
    if (isRoot) chownSync(stateDir, 65_534, 65_533);
    const { code, output } = await joins(token, '--name', 'fra 1');
    expect([code, output]).toEqual([0, expect.stringContaining('this machine is node edge-fra 1')]);
    const { node_id, control_psk, ...rest_ } = identity();
    expect(rest_).toEqual({ endpoint });
    expect(output).not.toContain(control_psk);
    const { mode, uid, gid } = lstatSync(identityPath);
    expect([mode & 0o777, isRoot ? [uid, gid] : []]).toEqual([0o600, isRoot ? [65_534, 65_533] : []]);
    expect([readFileSync(elsewhere, 'utf8'), readdirSync(stateDir)]).toEqual(['not to be touched', ['identity.json']]);
    expect((await tokenNow({ id })).nodes).toMatchObject([{ id: node_id, name: 'edge-fra 1' }]);

    const again = await joins('svcjoin1_whatever');
    expect([again.code, again.output]).toEqual([
      0,
      expect.stringContaining(`Joined already: this machine is node ${node_id}`),
    ]);
  });

  test('does not wait for the end of a session whose grant has come', async () => {
    const issued = issuePsk();
    const value = { nodeId: 'node-1', nodeName: 'n', controlPsk: issued.controlPsk };
    const service = await startControlServer(
      { onSaid: (said, session) => said.$case === 'join' && session.send({ $case: 'joinGrant', value }) },
      issued,
    );
    const parts = Buffer.from(issued.controlPsk.replace('svcpsk1_', ''), 'base64url');
    const token = `svcjoin1_${Buffer.concat([Buffer.alloc(16), parts]).toString('base64url')}`;
    const joined = await withDeadline(joinOf(`127.0.0.1:${service.port}`, systemClock, token), 15_000);
    await service.stop();
    expect(joined).toMatchObject({ kind: 'joined', node_id: 'node-1' });
  });

  test('leaves nothing half-made but one pending node, wherever it is cut', async () => {
    const { id, token } = await makeToken({ uses: 1 });
    const preload = ['--require', fileURLToPath(new URL('../support/cut-at.cjs', import.meta.url))];
    const cutAt = (step: number) =>
      agent(['join', '--endpoint', endpoint], { SVC_JOIN_TOKEN: token, CUT_AT: String(step) }, preload);
    const request = join(stateDir, 'join-request');
    let cuts = 0;
    for (let step = 0; !existsSync(request); step += 1, cuts += 1) {
      expect((await cutAt(step)).code).toBeNull();
    }
    const requestId = readFileSync(request, 'utf8');
    expect(requestId).toMatch(/^[0-9a-f]{32}\n$/);
    for (let step = 0; ; step += 1, cuts += 1) {
      const { code } = await cutAt(step);
      if (existsSync(identityPath)) expect(identity().control_psk).toMatch(/^svcpsk1_/);
      else expect(readFileSync(request, 'utf8')).toBe(requestId);
      if (code === 0) break;
      expect(code).toBeNull();
    }
    expect(cuts).toBeGreaterThan(15);
    expect(readdirSync(stateDir)).toEqual(['identity.json']);
    const { used, nodes } = await tokenNow({ id });
    expect([used, nodes]).toEqual([1, [expect.objectContaining({ id: identity().node_id })]]);
    const { exit, child } = start(['run']);
    await eventually(() => isOnline(identity().node_id)).toBe(true);
    child.kill('SIGTERM');
    expect(await exit).toBe(0);
  });

  test('says why the service refuses, why it is not reached, and what is wrong with the directory', async () => {
    const { token } = await makeToken({ uses: 1 });
    const unknown = await joins(tokenWith(token, { secret: Buffer.alloc(32, 1) }));
    expect([unknown.code, unknown.output]).toEqual([
      3,
      expect.stringMatching(/^Not joined: .* wrong, deleted or expired$/m),
    ]);
    expect((await joins(token)).code).toBe(0);
    rmSync(identityPath);
    const spent = await joins(token);
    expect([spent.code, spent.output]).toEqual([3, expect.stringMatching(/^Not joined: .*used up/m)]);
    const file = join(folder, 'file');
    writeFileSync(file, '');
    const nowhere = await joins(token, '--state-dir', join(file, 'state'));
    expect([nowhere.code, nowhere.output]).toEqual([5, expect.stringMatching(/ENOTDIR/)]);
    writeFileSync(identityPath, '{"node_id":"root:x:0:0"');
    const foreign = await joins(token);
    expect([foreign.code, foreign.output]).toEqual([5, expect.stringMatching(/identity\.json: expected node_id/)]);
    expect(foreign.output).not.toContain('root:');

    const said: string[] = [];
    const stderr = vi.spyOn(process.stderr, 'write').mockImplementation((text) => said.push(String(text)) > 0);
    const given = { kind: 'join', endpoint: 'http://127.0.0.1:1', name: 'a', stateDir: join(folder, 'other') } as const;
    const code = await joinByHand(given, { SVC_JOIN_TOKEN: token }, 1_200);
    stderr.mockRestore();
    expect([code, said.join('')]).toEqual([
      4,
      expect.stringMatching(/; trying again in 1 s\n.*Not joined: http:\/\/127\.0\.0\.1:1 /s),
    ]);
  });

  test.each([
    [['join', '--endpoint', 'http://a:1', 'svcjoin1_abc'], 'expected it in SVC_JOIN_TOKEN'],
    [['join', '--token=svcjoin1_abc'], 'expected it in SVC_JOIN_TOKEN'],
    [['svcjoin1_abc'], 'expected it in SVC_JOIN_TOKEN'],
    [['identity', '--psk', 'svcpsk1_abc'], 'expected it in a file'],
    [['join', '--nam', 'a'], "Unknown option '--nam'"],
    [['join', 'there'], "Unexpected argument 'there'"],
    [['run', '--state-dir', '/a'], "Unknown option '--state-dir'"],
    [['identity'], 'expected --psk-file FILE'],
    [['leave'], 'leave is not one of its arguments'],
  ])('refuses the arguments %j with a sentence, which repeats no secret', (args, sentence) => {
    const command = readCommandLine(args);
    expect(command).toEqual({ kind: 'wrong', message: expect.stringContaining(sentence) });
    expect(JSON.stringify(command)).not.toContain('abc');
  });

  test('needs an endpoint that it can read, and a token or a terminal', async () => {
    const unread = await agent(['join', '--endpoint', 'https://a']);
    expect([unread.code, unread.output]).toEqual([2, expect.stringMatching(/^--endpoint: expected http:/)]);
    const silent = await agent(['join', '--endpoint', endpoint]);
    expect([silent.code, silent.output]).toEqual([
      2,
      expect.stringMatching(/^expected a join token, in SVC_JOIN_TOKEN/),
    ]);
  });

  test.skipIf(!canRun('script', '--version'))('asks for the token on a terminal, without echo', async () => {
    const { token } = await makeToken();
    const line = `${process.execPath} ${program} join --endpoint ${endpoint}`;
    const terminal = spawn('script', ['-qec', line, '/dev/null'], {
      env: { PATH: process.env['PATH'], SVC_AGENT_STATE_DIR: stateDir },
    });
    children.push(terminal);
    let output = '';
    terminal.stdout.on('data', (chunk) => (output += String(chunk)));
    const exit = new Promise((resolve) => terminal.once('close', resolve));
    await eventually(() => output).toContain('Join token: ');
    terminal.stdin.write(`${token}\r`);
    expect([await exit, output]).toEqual([0, expect.stringContaining('Joined: this machine is node')]);
    expect(output).not.toContain('svcjoin1_');
  });
});

describe('run', () => {
  test('joins first, with token and endpoint of the environment, and connects as that node from then on', async () => {
    const { id, token } = await makeToken({ name_prefix: 'cloud-' });
    const env = { SVC_JOIN_TOKEN: token, SVC_CONTROL_ENDPOINT: endpoint };
    const first = start([], env);
    await eventually(() => existsSync(identityPath)).toBe(true);
    const { node_id, control_psk } = identity();
    await eventually(() => isOnline(node_id)).toBe(true);
    first.child.kill('SIGTERM');
    expect(await first.exit).toBe(0);
    for (const secret of [token.slice(12, 60), control_psk.slice(8, 40)]) expect(first.output()).not.toContain(secret);
    for (const line of first.output().trim().split('\n')) expect(JSON.parse(line)).toHaveProperty('level');

    const second = start(['run'], env);
    await eventually(second.output).toContain('connected to the service');
    second.child.kill('SIGTERM');
    expect(await second.exit).toBe(0);
    expect((await tokenNow({ id })).used).toBe(1);

    const other = await rest.data('POST', '/api/nodes', { body: { name: 'of the environment' } });
    const third = start(['run'], { ...env, SVC_AGENT_ID: other.id, SVC_CONTROL_PSK: other.control_psk });
    await eventually(() => isOnline(other.id)).toBe(true);
    third.child.kill('SIGTERM');
    expect(await third.exit).toBe(0);
  });

  test('ends with a code of its own when the service refuses, waits for one that is not there, and names what is missing', async () => {
    const { token } = await makeToken();
    const env = { SVC_JOIN_TOKEN: tokenWith(token, { secret: Buffer.alloc(32, 1) }), SVC_CONTROL_ENDPOINT: endpoint };
    const refused = await agent(['run'], env);
    expect([refused.code, refused.output]).toEqual([3, expect.stringContaining('wrong, deleted or expired')]);
    const waiting = start(['run'], { SVC_JOIN_TOKEN: token, SVC_CONTROL_ENDPOINT: 'http://127.0.0.1:1' });
    await eventually(waiting.output).toContain('not joined yet');
    waiting.child.kill('SIGTERM');
    expect(await waiting.exit).toBe(0);
    for (const [given, missing] of [
      [{}, /SVC_AGENT_ID: required: .*SVC_JOIN_TOKEN/],
      [{ SVC_JOIN_TOKEN: token }, /SVC_CONTROL_ENDPOINT: required/],
      [{ ...env, SVC_JOIN_TOKEN: 'svcjoin1_x' }, /SVC_JOIN_TOKEN: expected a join token/],
      [{ ...env, SVC_LOG_LEVEL: 'loud' }, /SVC_LOG_LEVEL: expected/],
    ] as const) {
      const { code, output } = await agent(['run'], given);
      expect([code, output]).toEqual([2, expect.stringMatching(missing)]);
    }
  });
});

describe('identity', () => {
  test('takes a PSK that was issued by hand', async () => {
    const { token } = await makeToken();
    const file = join(folder, 'psk');
    const change = (...args: string[]) => agent(['identity', '--psk-file', file, ...args]);
    expect((await change()).output).toMatch(/identity\.json: expected the identity of a machine that has joined/);
    expect((await joins(token)).code).toBe(0);
    const { node_id, control_psk: former } = identity();
    expect(await change()).toEqual({ code: 2, output: expect.stringContaining('(ENOENT)') });
    writeFileSync(file, 'svcpsk1_secret\n');
    expect(await change()).toEqual({ code: 2, output: expect.not.stringContaining('secret') });
    const issued = await rest.data('POST', `/api/nodes/${node_id}/psk`);
    writeFileSync(file, `${issued.control_psk}\n`);
    chmodSync(identityPath, 0o644);
    const { code, output } = await change('--state-dir', stateDir);
    expect([code, output]).toEqual([0, expect.stringContaining(issued.fingerprint ?? 'SHA256:')]);
    expect(identity()).toEqual({ node_id, control_psk: issued.control_psk, former_control_psk: former, endpoint });
    // Written twice, it is not its own former one.
    await change();
    expect(identity().former_control_psk).toBe(former);
    expect(lstatSync(identityPath).mode & 0o777).toBe(0o600);
    const { child, exit } = start(['run']);
    await eventually(() => isOnline(node_id)).toBe(true);
    child.kill('SIGTERM');
    expect(await exit).toBe(0);
  });
});
