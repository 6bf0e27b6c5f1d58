/** `/join.sh` on a machine, against the service (`docs/contract/joining.md#the-machines-side`). */
import { spawnSync } from 'node:child_process';
import { lstatSync, mkdirSync, readlinkSync, writeFileSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { agentUnit } from '../../src/kernel/units.js';
import { version } from '../../src/kernel/version.js';
import { canRun } from '../support/can-run.js';
import { eventually } from '../support/eventually.js';
import { createMachine, type Machine } from '../support/machine-root.js';
import { tokenWith } from '../support/machines.js';
import { startRest, type JsonData, type RestFixture } from '../support/rest-fixture.js';
import { freePort } from '../support/snapshots.js';

let rest: RestFixture;
let base: string;
let script: string;
beforeAll(async () => {
  rest = await startRest();
  base = await rest.app.listen({ host: '127.0.0.1', port: 0 });
  script = await (await fetch(`${base}/join.sh`)).text();
});
afterAll(() => rest.close());

let machine: Machine;
beforeEach(async () => {
  machine = await createMachine();
});
afterEach(() => machine.close());

const [program, unit] = ['/usr/local/lib/gateway-agent/gateway-agent.cjs', '/etc/systemd/system/gateway-agent.service'];
const [env, identity] = ['/etc/gateway-agent/env', '/var/lib/gateway-agent/identity.json'];
const dash = ['dash'];

let made = 0;
/** Without the arguments of the script that `command` has. */
const makeToken = (fields: object = {}): Promise<JsonData> =>
  rest.data('POST', '/api/join-tokens', { body: { name: `machines ${(made += 1)}`, ...fields } });
const isOnline = async (nodeId: string): Promise<boolean> =>
  (await rest.data('GET', `/api/nodes/${nodeId}`)).status === 'online';
const run = (args: readonly string[], environment: Record<string, string> = {}, shell: readonly string[] = dash) =>
  machine.start(script, shell, args, environment).ended;
const endpointOf = (): string => `http://${rest.agents}`;
const systemd = () => machine.calls().filter((call) => /^systemctl (?!is-failed)/.test(call));

const pathOf = (program: string): string =>
  spawnSync('sh', ['-c', `command -v ${program}`], { encoding: 'utf8', timeout: 20_000 }).stdout.trim();
// Busybox takes its own `id` instead of the machine's.
const shells = [['dash'], ...(process.getuid?.() === 0 ? [['busybox', 'sh']] : []), ['bash', '--posix']]
  .map(([name = '', ...options]) => ({ name, shell: [pathOf(name), ...options] }))
  .filter(({ shell: [path] }) => path !== '');

describe('the script', () => {
  test.each(shells)(
    'installs, joins and connects; again it changes nothing; undone, nothing is left ($name)',
    async ({ shell }) => {
      const before = machine.files();
      const { id, token } = await makeToken({ uses: 1 });
      const first = await run(['--endpoint', endpointOf()], { SVC_JOIN_TOKEN: token }, shell);
      expect(first).toEqual({
        code: 0,
        output: expect.stringMatching(/joined as node [-0-9a-f]{36}\n.*connected\n$/s),
      });
      expect(machine.text(env)).toBe(`SVC_CONTROL_ENDPOINT=${endpointOf()}\n`);
      expect(machine.text(unit)).toBe(agentUnit(process.execPath, machine.path(program)));
      expect([env, unit, program, identity].map((path) => lstatSync(machine.path(path)).mode & 0o777)).toEqual([
        0o600, 0o644, 0o755, 0o600,
      ]);
      expect(readlinkSync(machine.path('/usr/local/bin/gateway-agent'))).toBe(machine.path(program));
      const added = machine.files().filter((path) => !before.includes(path));
      expect(added).toEqual([env, unit, '/usr/local/bin/gateway-agent', program, identity]);
      expect(systemd()).toEqual(
        ['daemon-reload', 'restart gateway-agent', 'enable --now gateway-agent'].map((call) => `systemctl ${call}`),
      );
      const { used, nodes } = await rest.data('GET', `/api/join-tokens/${id}`);
      expect([used, nodes.length, await isOnline(nodes[0].id)]).toEqual([1, 1, true]);
      expect(machine.calls().join()).not.toContain(token);

      const downloads = () => machine.calls().filter((call) => call.includes('/agent/')).length;
      const again = await run(['--endpoint', endpointOf()], { SVC_JOIN_TOKEN: token });
      expect([again.code, downloads(), machine.files()]).toEqual([0, 1, [...before, ...added].toSorted()]);
      expect(again.output).toContain(`joined as node ${nodes[0].id}`);

      expect(await run(['--uninstall'])).toEqual({ code: 0, output: expect.stringContaining('uninstalled') });
      await eventually(() => isOnline(nodes[0].id)).toBe(false);
      expect(machine.files()).toEqual(before);
      expect((await run(['--uninstall'])).code).toBe(0);
    },
  );

  test('keeps the settings of the machine, tries again when it is asked to wait, and has an endpoint of its own', async () => {
    mkdirSync(machine.path('/etc/gateway-agent'));
    const own = `SVC_LOG_LEVEL=debug\nSVC_AGENT_METRICS_ADDR=127.0.0.1:${await freePort()}\n`;
    writeFileSync(machine.path(env), `${own}SVC_JOIN_TOKEN=old\nSVC_CONTROL_ENDPOINT=http://old:1`);
    const { token } = await makeToken();
    const asked = await Promise.all(
      Array.from({ length: 120 }, () => fetch(`${base}/agent/SHA256SUMS`, { method: 'HEAD' })),
    );
    expect(asked.map(({ status, headers }) => [status, headers.has('retry-after')])).toContainEqual([429, true]);
    const { code, output } = await run([], { SVC_JOIN_TOKEN: token });
    expect([code, output]).toEqual([0, expect.stringContaining('connected')]);
    expect(machine.text(env)).toBe(`${own}SVC_CONTROL_ENDPOINT=${endpointOf()}\n`);
  });

  test('says why the machine did not join; then the token is gone and nothing runs', async () => {
    const { token } = await makeToken();
    const wrong = tokenWith(token, { secret: Buffer.alloc(32, 1) });
    const { code, output } = await run([], { SVC_JOIN_TOKEN: wrong });
    expect([code, output]).toEqual([
      1,
      expect.stringMatching(/wrong, deleted or expired.*has not joined, and its agent does not run/s),
    ]);
    expect(systemd().at(-1)).toBe('systemctl disable --now gateway-agent');
    expect(machine.text(env)).not.toContain('SVC_JOIN_TOKEN');
    // The same line, with a token that is right.
    expect((await run([], { SVC_JOIN_TOKEN: token })).code).toBe(0);
  });

  test.each(['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT'] as const)(
    'takes the token out when %s ends it, and stops the agent',
    async (signal) => {
      const { token } = await makeToken();
      const { child, ended } = machine.start(script, dash, ['--endpoint', 'http://127.0.0.1:1'], {
        SVC_JOIN_TOKEN: token,
      });
      await eventually(machine.journal).toContain('not joined yet');
      expect(machine.text(env)).toContain(`SVC_JOIN_TOKEN=${token}`);
      expect(lstatSync(machine.path(env)).mode & 0o777).toBe(0o600);
      child.kill(signal);
      expect((await ended).code).toBe(1);
      expect(machine.text(env)).toBe('SVC_CONTROL_ENDPOINT=http://127.0.0.1:1\n');
      expect(systemd().at(-1)).toBe('systemctl disable --now gateway-agent');
      expect(machine.files().filter((path) => /env\.|new\./.test(path))).toEqual([]);
    },
  );

  test('installs nothing but what it was made for', async () => {
    machine.replace('curl', 'while [ "$1" != -o ]; do shift; done; echo "// not the agent" >"$2"');
    const { token } = await makeToken();
    const before = machine.files();
    const { code, output } = await run([], { SVC_JOIN_TOKEN: token });
    expect([code, output]).toEqual([1, expect.stringContaining('not as expected')]);
    expect([machine.files(), systemd()]).toEqual([before, []]);
  });

  const noNode = 'command() { return 1; }';
  test.each([
    ['without root', () => machine.replace('id', 'echo 1000'), 'expected root'],
    ['without systemd', () => (script = script.replace('/run/systemd/system', '/run/nothing')), 'runs systemd'],
    ['without Node', () => (script = script.replace('set -eu', `set -eu\n${noNode}`)), 'expected Node 20.19 or newer'],
    ['with an old Node', () => machine.replace('node', '[ "$1" = -p ] || echo v18.1.0'), 'got v18.1.0'],
    [
      'with Node in a home',
      () => machine.replace('node', 'echo /root/.nvm/node'),
      'every user can run it, not /root/.nvm',
    ],
    [
      'beside the package',
      () => mkdirSync(machine.path('/usr/lib/gateway-agent'), { recursive: true }),
      'not from this script',
    ],
    ['beside a unit by hand', () => writeFileSync(machine.path(unit), ''), 'not from this script'],
    [
      'on a node',
      () => (mkdirSync(machine.path('/etc/gateway-agent')), writeFileSync(machine.path(env), 'SVC_AGENT_ID=a\n')),
      'is the node',
    ],
  ])('does nothing %s', async (_where, given, sentence) => {
    const whole = script;
    given();
    const before = machine.files();
    const { code, output } = await run([], { SVC_JOIN_TOKEN: 'svcjoin1_abc' });
    script = whole;
    expect([code, output]).toEqual([1, expect.stringContaining(sentence)]);
    expect(output).toContain('Nothing was done');
    expect([machine.files(), machine.calls().filter((call) => !/^(id|node) /.test(call))]).toEqual([before, []]);
  });

  test('says how an agent is removed that something else installed', async () => {
    mkdirSync(machine.path('/usr/lib/gateway-agent'), { recursive: true });
    const { code, output } = await run(['--uninstall']);
    expect([code, output]).toEqual([
      1,
      expect.stringMatching(/not from this script. Nothing was done: .*apt purge gateway-agent/),
    ]);
    expect(output).not.toContain('join --endpoint');
  });

  test('takes no token as an argument, and none that is malformed', async () => {
    expect((await run(['svcjoin1_abc'])).output).toContain('The token is no argument');
    expect((await run([], { SVC_JOIN_TOKEN: 'svcjoin1_a\nSVC_AGENT_ID=b' })).output).toContain('expected a join token');
    expect((await run([])).output).toMatch(/expected the join token in SVC_JOIN_TOKEN|expected a join token/);
  });

  test.skipIf(!canRun('script', '--version'))('asks for the token on the terminal, without echo', async () => {
    const { token } = await makeToken();
    const { child, output, ended } = machine.startOnTerminal(script);
    await eventually(output).toContain('Join token: ');
    child.stdin.write(`${token}\r`);
    const { code, output: said } = await ended;
    expect([code, said]).toEqual([0, expect.stringContaining('connected')]);
    expect(said).not.toContain('svcjoin1_');
  });

  test('does nothing in part, and is as short and plain as it must be', async () => {
    expect(script.trimEnd().split('\n').length).toBeLessThanOrEqual(120);
    expect(script).toContain(`file='gateway-agent-${version}.cjs'`);
    const lines = script.trimEnd().split('\n');
    const ends = lines.map((_, count) => lines.slice(0, count).join('\n'));
    const last = lines.at(-1) ?? '';
    for (let length = 1; length < last.length; length += 1)
      ends.push(`${lines.slice(0, -1).join('\n')}\n${last.slice(0, length)}`);
    for (const part of ends) await machine.start(part, dash, []).ended;
    expect(machine.calls()).toEqual(['']);
  });

  test.skipIf(!canRun('shellcheck', '--version'))('pleases shellcheck', () => {
    const checked = spawnSync('shellcheck', ['-s', 'sh', '-'], { input: script, encoding: 'utf8', timeout: 60_000 });
    expect(checked).toMatchObject({ status: 0, stdout: '' });
  });
});
