/** `svcctl` against the real service, with pipes and on a terminal (`docs/contract/automation.md#the-command-line-svcctl`). */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'yaml';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { RestClient } from '../../scripts/stack/rest-client.js';
import { prepareService, type ServiceProcess } from '../../scripts/stack/service.js';
import { createCertificate } from '../support/certificate.js';
import { eventually } from '../support/eventually.js';
import { projectRoot } from '../support/project-root.js';
import type { Ran } from './support/run-here.js';
import { startPretendService } from './support/pretend-service.js';
import { createRunner, terminals, type Runner } from './support/run.js';

let folder: string;
let service: ServiceProcess;
let admin: RestClient;
/** Signed in by environment. */
let script: Runner;
/** With a home of its own, not signed in. */
let person: Runner;
let configFile: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'svcctl-'));
  service = await prepareService({ dataDir: join(folder, 'data') });
  await service.start();
  admin = await service.admin();
  const { token } = await admin.call<{ token: string }>('POST', '/api/auth/tokens', { name: 'script', role: 'admin' });
  script = createRunner({ HOME: folder, SVC_SERVER: service.url, SVC_TOKEN: token });
  person = createRunner({ HOME: folder, XDG_CONFIG_HOME: join(folder, 'config') });
  configFile = join(folder, 'config/svcctl/config.json');
});
afterAll(async () => {
  await service.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** The output of a run that succeeds. */
async function done(ran: Promise<Ran>): Promise<string> {
  const { code, out, err } = await ran;
  expect([code, err]).toEqual([0, '']);
  return out;
}

/** A run that fails with a code and one line. */
async function fails(ran: Promise<Ran>, code: number, sentence: RegExp): Promise<void> {
  const { code: was, out, err } = await ran;
  expect([was, out]).toEqual([code, '']);
  expect(err).toMatch(sentence);
  expect(err.trimEnd().split('\n')).toHaveLength(1);
}

describe.skipIf(!terminals)('signing in on a terminal', () => {
  test('asks for what is missing, shows no password, and keeps an API token that only its owner can read', async () => {
    const { code, out } = await person.onTerminal(
      ['login', '--server', service.url],
      [
        ['User name', 'admin\n'],
        ['Password', `${service.adminPassword}\n`],
      ],
    );
    expect([code, out]).toEqual([0, expect.stringContaining('signed in as admin')]);
    expect(out).not.toContain(service.adminPassword);
    expect(statSync(configFile).mode & 0o777).toBe(0o600);
    const [context] = Object.values(JSON.parse(readFileSync(configFile, 'utf8')).contexts) as { token: string }[];
    expect(context!.token).toMatch(/^svcat_/);
    expect(readFileSync(configFile, 'utf8')).not.toContain(service.adminPassword);
    const { items } = await admin.call<{ items: { name: string; role: string }[] }>(
      'GET',
      '/api/auth/tokens?q=svcctl@',
    );
    expect(items).toEqual([expect.objectContaining({ name: expect.stringMatching(/-[0-9a-f]{4}$/), role: 'admin' })]);
    expect(await done(person.run(['whoami']))).toContain('admin (admin)');
    expect(await done(person.run(['context']))).toMatch(/^\* default {2}admin at http/);
  });

  test('a wrong password is refused in the service’s words, and nothing is kept', async () => {
    const before = readFileSync(configFile, 'utf8');
    const answers = [['Password', 'not this one\n']] as const;
    const { code, out } = await person.onTerminal(['login', '--user', 'admin'], answers);
    expect([code, out]).toEqual([5, expect.stringContaining('the user name or the password is wrong (request ')]);
    expect(readFileSync(configFile, 'utf8')).toBe(before);
  });

  test('what an API token may not do asks for the password anew', async () => {
    const created = ['create', 'users', 'grace', '--set', 'role=viewer', '--set', 'password=a password of many words'];
    const answers = [['Password', `${service.adminPassword}\n`]] as const;
    const { code, out } = await person.onTerminal(created, answers);
    expect([code, out]).toEqual([0, expect.stringContaining('created users/grace')]);
    await fails(person.run(created), 3, /a password is asked for on a terminal alone/);
  });

  test('logout deletes the token and forgets it', async () => {
    await done(person.run(['logout']));
    expect(await admin.call('GET', '/api/auth/tokens?q=svcctl@')).toMatchObject({ total: 0 });
    await fails(person.run(['whoami']), 5, /not signed in; run svcctl login/);
    // It still says what it is itself.
    const { code, out, err } = await person.runAlone(['version']);
    expect([code, out]).toEqual([
      5,
      expect.stringMatching(/^client \d+\.\d+\.\d+\+\S+ \(compiler version \d+, format \d+\)\n$/),
    ]);
    expect(err).toMatch(/not signed in; run svcctl login/);
  });

  test('a table is coloured on a terminal alone, and top draws until q', async () => {
    await admin.call('POST', '/api/nodes', { name: 'drawn' });
    const shown = createRunner({ HOME: folder, SVC_SERVER: service.url, SVC_TOKEN: await viewerToken() });
    expect((await shown.onTerminal(['get', 'nodes'])).out).toContain('\u001b[1mNAME');
    expect(await done(shown.run(['get', 'nodes']))).not.toContain('\u001b');
    const { code, out } = await shown.onTerminal(['top'], [['drawn', 'q']]);
    expect([code, out]).toEqual([0, expect.stringContaining('1 nodes')]);
    expect(out).toContain('\u001b[?1049l');
    await fails(shown.run(['top']), 3, /expected a terminal/);
    await done(script.run(['delete', 'nodes', 'drawn', '--yes']));
  });

  test('a delete asks, and anything but yes leaves the resource', async () => {
    await done(script.run(['create', 'upstreams', 'asked', '--set', 'endpoint=192.0.2.1:80']));
    const asked = createRunner({ HOME: folder, SVC_SERVER: service.url, SVC_TOKEN: await operatorToken() });
    const no = await asked.onTerminal(['delete', 'upstreams', 'asked'], [['[y/N]', '\n']]);
    expect([no.code, no.out]).toEqual([1, expect.stringContaining('declined')]);
    const yes = await asked.onTerminal(['delete', 'upstreams', 'asked'], [['[y/N]', 'y\n']]);
    expect([yes.code, yes.out]).toEqual([0, expect.stringContaining('deleted l4-upstreams/asked')]);
  });
});

let made = 0;
const tokenOf = async (role: string): Promise<string> =>
  (await admin.call<{ token: string }>('POST', '/api/auth/tokens', { name: `t${(made += 1)}`, role })).token;
const viewerToken = () => tokenOf('viewer');
const operatorToken = () => tokenOf('operator');

describe('contexts', () => {
  test('a given token is kept from stdin, beside others, and its end is told two weeks before', async () => {
    const { token } = await admin.call<{ token: string }>('POST', '/api/auth/tokens', {
      name: 'ends soon',
      role: 'viewer',
      expires_in_days: 10,
    });
    const login = ['login', '--server', service.url, '--context', 'soon', '--token-stdin'];
    await done(person.runAlone(login, { input: `${token}\n` }));
    await done(
      person.runAlone(['login', '--server', service.url, '--context', 'other', '--token-stdin'], {
        input: await viewerToken(),
      }),
    );
    expect(await done(person.run(['whoami']))).toContain('context other');
    await done(person.run(['context', 'use', 'soon']));
    const { code, out, err } = await person.run(['whoami']);
    expect([code, out]).toEqual([0, expect.stringContaining('token ends soon')]);
    expect(err).toMatch(/the token ends at 20\d\d-/);
    await fails(person.run(['context', 'use', 'nope']), 3, /no context nope; expected one of soon, other/);
    await fails(
      person.run(['login', '--server', service.url]),
      3,
      /no terminal to ask for user name; expected --user NAME/,
    );
  });

  test('SVC_SERVER and SVC_TOKEN come together or not at all', async () => {
    await fails(person.run(['get', 'nodes'], { env: { SVC_SERVER: service.url } }), 3, /SVC_TOKEN is not set/);
    await fails(person.run(['get', 'nodes'], { env: { SVC_TOKEN: 'svcat_x' } }), 3, /SVC_SERVER is not set/);
  });
});

/** Of the node edge-1. */
let firstGeneration: number;

describe('resources', () => {
  test('are created from options and files, with what is shown once', async () => {
    const created = await done(
      script.run(['create', 'nodes', 'edge-1', '--set', 'address=192.0.2.1', '--set', 'labels.region=eu']),
    );
    expect(created).toMatch(/^created nodes\/edge-1 \([0-9a-f-]{36}\)\ncontrol_psk: svcpsk1_/);
    const file = join(folder, 'web.yaml');
    writeFileSync(file, 'name: web\nendpoint: 203.0.113.5:443\n');
    await done(script.run(['create', 'upstreams', '-f', file]));
    await done(
      script.runAlone(['create', 'upstreams', 'piped', '-f', '-'], { input: '{"endpoint": "203.0.113.6:443"}' }),
    );
    const { id: node, generation } = JSON.parse(await done(script.run(['get', 'nodes', 'EDGE-1', '-o', 'json'])));
    firstGeneration = generation;
    const { id: upstream } = JSON.parse(await done(script.run(['get', 'upstreams', 'web', '-o', 'json'])));
    const hop = [`hops[0].node_id=${node}`, 'hops[0].listen_port=8080', 'hops[0].outer=tcp', 'hops[0].security=raw'];
    const fields = ['payload=tcp', ...hop, `target.upstream_id=${upstream}`].flatMap((field) => ['--set', field]);
    await done(script.run(['create', 'chains', 'front', ...fields]));
    await fails(
      script.run(['create', 'chains', 'worse', ...fields, '--set', 'hops[0].listen_port=0']),
      1,
      /hops\[0\]\.listen_port: expected .*\(request /,
    );
    await fails(script.run(['create', 'nodes', 'x', '-f', join(folder, 'none.yaml')]), 3, /none\.yaml/);
  });

  test('are listed as tables, names, JSON and YAML, with the API’s filters, all pages of them', async () => {
    expect(await done(script.run(['get', 'chains']))).toBe(
      'NAME   STATUS  HEALTH   PAYLOAD  HOPS  ENABLED\nfront  draft   unknown  tcp      1     true\n',
    );
    expect(await done(script.run(['get', 'nodes', '-o', 'wide']))).toContain('{"region":"eu"}');
    expect(await done(script.run(['get', 'nodes', '--filter', 'status=offline', '-o', 'json']))).toBe('[]\n');
    expect(await done(script.run(['get', 'nodes', '--filter', 'status=offline', '-o', 'yaml']))).toBe('[]\n');
    const many = Array.from({ length: 210 }, (_, index) => `many ${String(index).padStart(3, '0')}`);
    const upstreams = Object.fromEntries(many.map((name) => [name, { endpoint: '192.0.2.1:80' }]));
    await admin.call('POST', '/api/fleet/apply', { document: JSON.stringify({ svc: 1, set: 'many', upstreams }) });
    const names = (
      await done(script.run(['get', 'upstreams', '--filter', 'q=many', '--sort=-name', '-o', 'name']))
    ).trimEnd();
    expect(names.split('\n')).toEqual(many.toReversed());
    expect(JSON.parse(await done(script.run(['get', 'upstreams', '-o', 'json'])))).toHaveLength(many.length + 2);
    expect(parse(await done(script.run(['get', 'upstreams', '-o', 'yaml'])))).toHaveLength(many.length + 2);
    await fails(script.run(['get', 'upstreams', '--filter', 'nope=1']), 1, /nope/);
    await fails(script.run(['get', 'upstreams', '--filter', 'page=2']), 3, /all pages are read/);
    await fails(script.run(['get', 'upstreams', 'nobody']), 1, /none of the l4-upstreams has the name nobody/);
    await fails(script.run(['get', 'things']), 3, /things: expected a type of resource: nodes, /);
  });

  test('have filters that help lists, all of them, and a label that is written with = is refused', async () => {
    const help = await done(script.run(['get', '--help']));
    const { paths } = (await (await fetch(`${service.url}/openapi.json`)).json()) as {
      paths: Record<string, { get: { parameters: { in: string; name: string }[] } }>;
    };
    const filtersOf = (path: string): string[] =>
      paths[path]!.get.parameters.filter(
        (one) => one.in === 'query' && !/^(page|page_size|after|sort)$/.test(one.name),
      ).map(({ name }) => name);
    const listed = (line: string): string[] => line.split(': ')[1]!.split(', ').toSorted();
    const lines = help.split('\n').filter((line) => line.startsWith('- '));
    expect(lines).toHaveLength(12);
    for (const line of lines) {
      const [, plural] = /^- (\S+):/.exec(line)!;
      const path = { policies: 'nodes/ports', users: 'auth/users', tokens: 'auth/tokens' }[plural!] ?? plural;
      expect([plural, listed(line)]).toEqual([plural, filtersOf(`/api/${path}`).toSorted()]);
    }
    const [, audit] = /^Filters: ([^.]*)\.$/m.exec(await done(script.run(['audit', '--help'])))!;
    expect(audit!.split(/,\s+/).toSorted()).toEqual(filtersOf('/api/audit').toSorted());
    await fails(script.run(['get', 'nodes', '--filter', 'label=region=eu']), 3, /expected label=key:value/);
    await fails(script.run(['get', 'nodes', '--filter', 'status=gone']), 1, /status: expected/);
    await fails(script.run(['get', 'nodes', '--filter', 'colour=red']), 1, /colour/);
  });

  test('are found by several labels at once', async () => {
    await admin.call('POST', '/api/nodes', { name: 'labelled', labels: { region: 'eu', tier: 'a' } });
    const names = (...labels: string[]): Promise<string> =>
      done(script.run(['get', 'nodes', '-o', 'name', ...labels.flatMap((label) => ['--filter', `label=${label}`])]));
    expect(await names('region:eu')).toBe('edge-1\nlabelled\n');
    expect(await names('region:eu', 'tier')).toBe('labelled\n');
    expect(await names('tier', 'region:eu')).toBe('labelled\n');
    await done(script.run(['delete', 'nodes', 'labelled', '--yes']));
  });

  test('have texts in which control characters move no cursor', async () => {
    const description = 'red \u001b[31m\r\nline \u202e';
    await admin.call('POST', '/api/nodes', { name: 'red', description });
    const shown = (format: string): Promise<string> => done(script.run(['get', 'nodes', 'red', '-o', format]));
    for (const sign of ['\u001b', '\r', '\u202e']) expect(await shown('yaml')).not.toContain(sign);
    for (const sign of ['\u001b', '\r']) expect(await shown('json')).not.toContain(sign);
    await done(script.run(['delete', 'nodes', 'red', '--yes']));
  });

  test('are edited in an editor, under the version that was read, and text that was refused is kept', async () => {
    const edit = (command: string) => script.run(['edit', 'upstreams', 'web'], { env: { EDITOR: command } });
    expect(await done(edit('sed -i s/203.0.113.5/203.0.113.9/'))).toBe('changed endpoint of l4-upstreams/web\n');
    expect(await done(edit('true'))).toBe('nothing was changed\n');
    const { id } = JSON.parse(await done(script.run(['get', 'upstreams', 'web', '-o', 'json'])));
    const hasty = join(folder, 'hasty.mjs');
    writeFileSync(
      hasty,
      `import { readFileSync, writeFileSync } from 'node:fs';
       const headers = { authorization: 'Bearer ' + process.env.SVC_TOKEN, 'content-type': 'application/json' };
       await fetch('${service.url}/api/l4-upstreams/${id}', { method: 'PUT', headers, body: '{"enabled":false}' });
       const file = process.argv[2];
       writeFileSync(file, readFileSync(file, 'utf8').replace('203.0.113.9', '203.0.113.10'));`,
    );
    const { code, err } = await edit(`${process.execPath} ${hasty}`);
    expect([code, err]).toEqual([1, expect.stringContaining('If-Match: expected the current version')]);
    const kept = /what you wrote is in (\S+)/.exec(err)![1]!;
    expect(readFileSync(kept, 'utf8')).toContain('203.0.113.10');
    rmSync(join(kept, '..'), { recursive: true });
  });

  test('lose what a deleted line held, unless they cannot be without it', async () => {
    await admin.call('POST', '/api/nodes', { name: 'told', description: 'rack 7' });
    const without = (field: string) =>
      script.run(['edit', 'nodes', 'told'], { env: { EDITOR: `sed -i /^${field}:/d` } });
    expect(await done(without('description'))).toBe('changed description of nodes/told\n');
    const { description } = JSON.parse(await done(script.run(['get', 'nodes', 'told', '-o', 'json'])));
    expect(description).toBeNull();
    const { code, err } = await without('name');
    expect([code, err]).toEqual([1, expect.stringContaining('invalid_request: name: ')]);
    rmSync(join(/what you wrote is in (\S+)/.exec(err)![1]!, '..'), { recursive: true });
    await done(script.run(['delete', 'nodes', 'told', '--yes']));
  });

  test.skipIf(!terminals)(
    'are opened again with what is wrong, until the text is right or left as it was',
    async () => {
      const [editor, seen] = [join(folder, 'editor.mjs'), join(folder, 'seen.json')];
      writeFileSync(
        editor,
        `import { existsSync, readFileSync, writeFileSync } from 'node:fs';
       const file = process.argv[2];
       const seen = existsSync('${seen}') ? JSON.parse(readFileSync('${seen}', 'utf8')) : [];
       const text = readFileSync(file, 'utf8');
       writeFileSync('${seen}', JSON.stringify([...seen, text]));
       const endpoints = ['[', 'nonsense', process.env.SVCCTL_LAST];
       const endpoint = endpoints[Math.min(seen.length, 2)];
       writeFileSync(file, text.replace(/^endpoint: .*/m, 'endpoint: ' + endpoint));`,
      );
      const edit = async (last: string): Promise<Ran> => {
        rmSync(seen, { force: true });
        const env = { EDITOR: `${process.execPath} ${editor}`, SVCCTL_LAST: last };
        const token = await operatorToken();
        return createRunner({ HOME: folder, SVC_SERVER: service.url, SVC_TOKEN: token, ...env }).onTerminal([
          'edit',
          'upstreams',
          'web',
        ]);
      };
      const mended = await edit('203.0.113.9:443');
      expect(mended).toMatchObject({ code: 0, out: expect.stringContaining('nothing was changed') });
      const [first, second, third] = JSON.parse(readFileSync(seen, 'utf8')) as string[];
      expect(first).not.toContain('# svcctl');
      expect(second).toMatch(/^# svcctl: .*web|^# svcctl: .*yaml: .*\n/);
      expect(second).toContain('endpoint: [\n');
      expect(third).toMatch(/^# svcctl: invalid_request: endpoint: .*\n(?!# svcctl)/);
      const left = await edit('nonsense');
      expect([left.code, left.out]).toEqual([1, expect.stringContaining('invalid_request: endpoint: ')]);
      const kept = /what you wrote is in (\S+)/.exec(left.out)![1]!;
      expect(readFileSync(kept, 'utf8')).toMatch(/^(?!# svcctl)[^]*endpoint: nonsense\n/);
      rmSync(join(kept, '..'), { recursive: true });
    },
  );

  test('are deleted with --yes, unless something uses them', async () => {
    await fails(script.run(['delete', 'upstreams', 'web']), 3, /expected --yes/);
    await fails(script.run(['delete', 'upstreams', 'web', '--yes']), 1, /conflict: .*l4_chain "front".*\(request /);
    expect(await done(script.run(['delete', 'upstreams', 'piped', '--yes']))).toContain('deleted l4-upstreams/piped');
  });
});

test('listener policies are resources that are called by their listener', async () => {
  const policy = 'edge-1/tcp/0.0.0.0/8080';
  const order = 'priorityOrder=[raw, tls]';
  expect(await done(script.run(['create', 'policies', policy, '--set', order]))).toBe(`created policies/${policy}\n`);
  expect(await done(script.run(['get', 'policies']))).toBe(
    `NAME                     ORDER\n${policy}  ["raw","tls","reality","noise"]\n`,
  );
  const written = join(folder, 'policy.yaml');
  writeFileSync(written, 'priorityOrder: [tls, raw]\n');
  const swap = { EDITOR: `cp ${written}` };
  expect(await done(script.run(['edit', 'policies', policy], { env: swap }))).toBe(
    `changed priorityOrder of policies/${policy}\n`,
  );
  expect(JSON.parse(await done(script.run(['get', 'policies', policy, '-o', 'json'])))).toMatchObject({
    priorityOrder: ['tls', 'raw', 'reality', 'noise'],
  });
  expect(await done(script.run(['delete', 'policies', policy, '--yes']))).toBe(`deleted policies/${policy}\n`);
  await fails(script.run(['get', 'policies', policy]), 1, /none of the policies is of the listener edge-1/);
  await fails(script.run(['create', 'policies', 'nobody/tcp/::/1']), 3, /there is no node nobody/);
});

describe('operating', () => {
  test('a deploy that nobody can apply is said, and is exit code 1 with --wait', async () => {
    expect(await done(script.run(['deploy', 'front']))).toMatch(/^edge-1 {2}generation \d+ {2}offline\n$/);
    const { code, err } = await script.run(['deploy', 'front', '--wait']);
    expect([code, err]).toEqual([1, 'svcctl: 1 of 1 nodes have not applied it: offline\n']);
  });

  test('a node has a history, configurations to compare, commands, and an environment file', async () => {
    expect(await done(script.run(['history', 'edge-1']))).toMatch(/admin by script {2}l4_chain\.deploy {2}front\n/);
    const { generation } = JSON.parse(await done(script.run(['get', 'nodes', 'edge-1', '-o', 'json'])));
    expect(parse(await done(script.run(['history', 'edge-1', '--generation', String(generation)])))).toMatchObject({
      generation,
    });
    expect(await done(script.run(['diff', 'edge-1', String(firstGeneration), String(generation)]))).toMatch(
      /^\+.*8080/m,
    );
    await fails(script.run(['diff', 'edge-1', '0', 'x']), 3, /x: expected a generation/);
    expect(await done(script.run(['command', 'edge-1', 'RELOAD_CONFIG']))).toContain('RELOAD_CONFIG is queued');
    await fails(script.run(['command', 'edge-1', 'SELF_DESTRUCT']), 3, /SELF_DESTRUCT: expected a command/);
    await done(script.run(['create', 'nodes', 'edge-2']));
    expect(await done(script.run(['command', 'edge-1', 'edge-2', 'RUN_DIAGNOSTICS']))).toMatch(
      /^RUN_DIAGNOSTICS is queued for 2 nodes \(entry \S+\) until 2/,
    );
    const label = (...words: string[]) => script.run(['label', ...words]);
    expect(await done(label('edge-1', 'edge-2', 'tier=a=b', 'rack-'))).toMatch(/^changed labels of 2 nodes \(entry /);
    expect(await done(label('--filter', 'label=tier:a=b', 'tier-'))).toMatch(/^changed labels of 2 nodes \(entry /);
    expect(await done(label('edge-2', 'tier-'))).toBe('nothing to change\n');
    await fails(label('edge-1'), 3, /expected KEY=VALUE or KEY- after the nodes/);
    await fails(label('tier=x'), 3, /expected names of nodes, or --filter/);
    await fails(label('--filter', 'label=tier', 'edge-1', 'tier-'), 3, /expected names of nodes, or --filter/);
    await fails(label('--filter', 'label=tier', 'tier-'), 1, /no node fits the filters/);
    await done(script.run(['delete', 'nodes', 'edge-2', '--yes']));
    const { endpoint } = await admin.call<{ endpoint: string }>('GET', '/api/nodes/control-endpoint');
    expect(await done(script.run(['node', 'env', 'edge-1']))).toMatch(
      new RegExp(`^SVC_AGENT_ID=.*\\nSVC_CONTROL_ENDPOINT=${endpoint}\\n#`),
    );
    await fails(script.run(['node', 'env', 'edge-1', '--issue']), 3, /--yes/);
    expect(await done(script.run(['node', 'env', 'edge-1', '--issue', '--yes']))).toMatch(/^SVC_CONTROL_PSK=svcpsk1_/m);
    expect(await done(script.run(['psk', 'edge-1', '--yes']))).toMatch(/^svcpsk1_\S+\n$/);
  });

  test('a PSK gets a candidate, and the identity is rotated and retired', async () => {
    await fails(script.run(['psk', 'edge-1', '--valid-days', '3']), 3, /--candidate/);
    expect(await done(script.run(['psk', 'edge-1', '--candidate', '--valid-days', '3']))).toMatch(/^svcpsk1_\S+\n$/);
    expect(await done(script.run(['psk', 'edge-1', '--drop-candidate']))).toContain('edge-1');
    await fails(script.run(['psk', 'edge-1', '--drop-candidate']), 1, /has no candidate/);
    expect(await done(script.run(['identity']))).toMatch(/^KEY +SINCE +NODES +PUBLIC KEY\ncurrent /);
    expect(await done(script.run(['identity', 'rotate']))).toMatch(/\nnext /);
    await fails(script.run(['identity', 'rotate']), 1, /second identity/);
    await fails(script.run(['identity', 'retire']), 3, /--yes/);
    await fails(script.run(['identity', 'retire', '--yes']), 1, /a PSK of the old identity: .*"edge-1"/);
    await done(script.run(['identity', 'retire', '--yes', '--force']));
    expect(JSON.parse(await done(script.run(['identity', '-o', 'json']))).next).toBeNull();
  });

  test('a machine joins with a line, whose token is a resource like others', async () => {
    const options = ['--uses', '3', '--label', 'region=eu', '--prefix', 'edge-', '--expires-in-hours', '2'];
    const [command, ...more] = (await done(script.run(['node', 'join', ...options]))).split('\n');
    expect([command, more]).toEqual([
      expect.stringMatching(/^curl -fsSL --retry 9 'http:.*SVC_JOIN_TOKEN='svcjoin1_[\w-]{107}' sh -s -- --endpoint '/),
      [''],
    ]);
    const [made] = JSON.parse(await done(script.run(['get', 'join-tokens', '-o', 'json'])));
    expect(made).toMatchObject({ uses: 3, used: 0, labels: { region: 'eu' }, name_prefix: 'edge-' });
    const created = await done(script.run(['create', 'join-tokens', 'rack', '--set', 'uses=2']));
    expect(created).toMatch(/^created join-tokens\/rack .*\ntoken: svcjoin1_.*\ncommand: curl /);
    expect(await done(script.run(['get', 'join-tokens', 'rack']))).toMatch(/^NAME +USED +OF +ENDS .*\nrack +0 +2 +2/);
    await fails(script.run(['edit', 'join-tokens', 'rack']), 3, /join-tokens cannot be edited/);
    await done(script.run(['delete', 'join-tokens', 'rack', '--yes']));
    await fails(script.run(['node', 'join', '--uses', 'many']), 3, /--uses many: expected a whole number/);
    await fails(script.run(['node', 'join', '--label', 'eu']), 3, /--label eu: expected field=value/);
    await fails(script.run(['node', 'join', '--uses', '1001']), 1, /uses: expected an integer from 1 to 1000/);
  });

  test('a change waits for somebody to confirm it', async () => {
    const file = join(folder, 'unsure.yaml');
    writeFileSync(file, 'svc: 1\nsettings: {metrics_interval_secs: 33}\n');
    const confirming = ['--confirm', 'manual', '--confirm-secs', '600'];
    await done(script.run(['apply', '-f', file, '--yes', ...confirming]));
    writeFileSync(file, 'svc: 1\nsettings: {metrics_interval_secs: 34}\n');
    const refused = await script.run(['apply', '-f', file, '--yes']);
    const [, id = ''] = /in the way: .* confirm or revert the entry ([0-9a-f-]{36}) first/.exec(refused.out) ?? [];
    expect(refused.code).toBe(1);
    expect(await done(script.run(['audit', 'confirm', id]))).toMatch(/^confirmed: fleet\.apply .* \(entry /);
    await done(script.run(['apply', '-f', file, '--yes']));
    writeFileSync(file, 'svc: 1\nsettings: {metrics_interval_secs: 35}\n');
    const alone = await script.run(['apply', '-f', file, '--yes', '--confirm', 'manual']);
    expect([alone.code, alone.err]).toEqual([1, expect.stringContaining('together with confirm_secs')]);
  });

  test('a change is rolled out by a policy, and the rollout is shown and steered', async () => {
    await done(script.run(['create', 'rollout-policies', 'careful', '--set', 'waves=[{nodes: 1}]']));
    for (const name of ['wave-1', 'wave-2'])
      await done(script.run(['create', 'nodes', name, '--set', 'issue_psk=false']));
    const file = join(folder, 'settings.yaml');
    writeFileSync(file, 'svc: 1\nsettings: {multiplex: true, multiplex_port: 7443}\n');
    const applied = await script.run(['apply', '-f', file, '--yes', '--rollout', 'careful']);
    expect([applied.code, applied.err]).toEqual([0, expect.stringMatching(/^svcctl: rollout [0-9a-f-]{36}\n$/)]);
    const id = applied.err.trim().split(' ').at(-1)!;
    expect(await done(script.run(['rollouts', '-o', 'name']))).toBe(`${id}\n`);
    expect(await done(script.run(['rollouts']))).toMatch(/(running|baking) +1 of 2 +careful +fleet.apply +default/);
    expect(await done(script.run(['rollouts', id, '--filter', 'wave=2']))).toMatch(/NODE[\s\S]*wave-2/);
    expect(await done(script.run(['rollouts', 'pause', id]))).toBe(`rollout ${id} is paused, wave 1\n`);
    await fails(script.run(['rollouts', 'advance', id]), 1, /the rollout is paused/);
    expect(await done(script.run(['rollouts', 'resume', id]))).toMatch(/is (running|baking), wave 1/);
    expect(await done(script.run(['rollouts', 'revert', id]))).toContain('is reverted');
    expect(await done(script.run(['events', '--types', 'rollout']))).toMatch(
      /careful {2}(running|baking) → paused, wave 1[\s\S]*→ reverted/,
    );
    for (const name of ['wave-1', 'wave-2']) await done(script.run(['delete', 'nodes', name, '--yes']));
  });

  test('a change is in the audit, and is taken back', async () => {
    await done(script.run(['edit', 'upstreams', 'web'], { env: { EDITOR: 'sed -i s/203.0.113.9/203.0.113.77/' } }));
    const filter = ['audit', '--filter', 'action=l4_upstream.update', '--limit', '1'];
    const entry = (await done(script.run([...filter, '-o', 'name']))).trim();
    expect(await done(script.run(filter))).toContain('admin by script');
    await fails(script.run(['audit', '--filter', 'script']), 3, /--filter script: expected field=value/);
    await fails(script.run(['audit', '--limit', 'few']), 3, /--limit few: expected a whole number/);
    const endpoint = async (): Promise<string> =>
      JSON.parse(await done(script.run(['get', 'upstreams', 'web', '-o', 'json']))).endpoint;
    expect(await done(script.run(['revert', entry, '--dry-run']))).toBe(
      'would change l4_upstream web endpoint: 203.0.113.77:443 → 203.0.113.9:443\n',
    );
    expect(await endpoint()).toBe('203.0.113.77:443');
    expect(await done(script.run(['revert', entry]))).toContain('changed endpoint: 203.0.113.77:443 → 203.0.113.9:443');
    expect(await endpoint()).toBe('203.0.113.9:443');
    await fails(script.run(['revert', entry]), 1, /conflict: /);
  });

  test('status prints the figures of the dashboard', async () => {
    expect(await done(script.run(['status']))).toMatch(/^nodes +total 1 {2}online 0 /);
    expect(JSON.parse(await done(script.run(['status', '-o', 'json'])))).toMatchObject({ nodes: { total: 1 } });
  });

  test('events are printed from the first on, and followed over a restart of the service', async () => {
    const first = (await done(script.run(['events', '--types', 'command', '-o', 'json']))).split('\n', 1)[0];
    expect(JSON.parse(first!)).toMatchObject({ type: 'command', data: { resource: { type: 'service' } } });
    const { cursor } = await admin.call<{ cursor: string }>('GET', '/api/events');
    const following = script.follow(['events', '--follow', '--types', 'command', '--after', cursor]);
    const make = (name: string) => admin.call('POST', '/api/l4-upstreams', { name, endpoint: '192.0.2.1:80' });
    await make('before the kill');
    await service.kill();
    await service.start();
    admin = await service.admin();
    await make('after the kill');
    await eventually(() => following.text()).toContain('after the kill');
    await following.stop();
    expect(following.text().match(/before the kill/g)).toHaveLength(1);
  });
});

describe('a service that is not there, or not the one', () => {
  test('is exit code 4 when it does not answer', async () => {
    await fails(script.run(['get', 'nodes'], { env: { SVC_SERVER: 'http://127.0.0.1:9' } }), 4, /out of reach/);
  });

  test('gets no token over plain http, unless it is on this machine or --insecure says so', async () => {
    const elsewhere = { SVC_SERVER: 'http://192.0.2.1:8081' };
    await fails(script.run(['get', 'nodes'], { env: elsewhere }), 3, /plain http.*expected https, or --insecure/);
  });

  test('with a certificate that nobody has signed is trusted by --ca-file alone', async () => {
    const tls = createCertificate();
    const file = join(folder, 'ca.pem');
    writeFileSync(file, tls.cert);
    const own = await startPretendService(
      () => ({ status: 401, error: 'unauthenticated: nobody knows this token' }),
      tls,
    );
    const env = { SVC_SERVER: own.url, SVC_TOKEN: 'svcat_x' };
    await fails(script.run(['get', 'nodes'], { env }), 4, /out of reach: .*certificate/);
    await fails(script.runAlone(['get', 'nodes', '--ca-file', file], { env }), 5, /unauthenticated: /);
    await own.stop();
  });
});

describe('completion', () => {
  let complete: (...words: string[]) => string[];
  beforeAll(async () => {
    const [bash, bin] = [join(folder, 'completion.bash'), join(folder, 'bin')];
    writeFileSync(bash, await done(script.run(['completion', 'bash'])));
    mkdirSync(bin);
    const program = join(projectRoot, 'cli/bin/svcctl.js');
    writeFileSync(join(bin, 'svcctl'), `#!/bin/sh\nexec '${process.execPath}' '${program}' "$@"\n`, { mode: 0o755 });
    const env = {
      PATH: `${bin}:${process.env['PATH']}`,
      HOME: folder,
      SVC_SERVER: service.url,
      SVC_TOKEN: await viewerToken(),
    };
    complete = (...words) => {
      const typed = words.map((word) => `'${word}'`).join(' ');
      const ask = `source '${bash}'; COMP_WORDS=(${typed}); COMP_CWORD=${words.length - 1}; _svcctl; printf '%s\\n' "\${COMPREPLY[@]}"`;
      return execFileSync('bash', ['-c', ask], { env, cwd: folder, timeout: 60_000 }).toString().trimEnd().split('\n');
    };
    await done(script.run(['create', 'upstreams', 'two words', '--set', 'endpoint=192.0.2.1:80']));
  });

  test('knows the commands, the types, the options and their values', async () => {
    expect(await done(script.run(['completion', 'zsh']))).toContain('#compdef svcctl');
    expect(await done(script.run(['completion', 'fish']))).toContain('complete -c svcctl');
    expect(complete('svcctl', 'de')).toEqual(['delete', 'deploy']);
    expect(complete('svcctl', 'get', 'l4-')).toEqual(['l4-chains', 'l4-upstreams']);
    expect(complete('svcctl', 'node', '')).toEqual(['env', 'join']);
    expect(complete('svcctl', 'get', 'join')).toEqual(['join-tokens']);
    expect(complete('svcctl', 'deploy', 'front', '--')).toEqual([
      '--rollout',
      '--confirm',
      '--confirm-secs',
      '--wait',
      '--context',
      '--ca-file',
      '--insecure',
    ]);
    expect(complete('svcctl', 'get', 'nodes', '-o', '')).toEqual(['table', 'wide', 'json', 'yaml', 'name']);
    expect(complete('svcctl', 'completion', 'z')).toEqual(['zsh']);
  });

  test('knows names of nodes, chains, other resources, sets and contexts', async () => {
    const file = join(folder, 'set.yaml');
    writeFileSync(file, 'svc: 1\nset: completed\nnodes: {completed-1: {}, completed-2: {}}\n');
    await done(script.run(['apply', '-f', file, '--yes']));
    expect(complete('svcctl', 'psk', 'completed')).toEqual(['completed-1', 'completed-2']);
    expect(complete('svcctl', 'deploy', 'fr')).toEqual(['front']);
    expect(complete('svcctl', 'get', 'upstreams', 'two')).toEqual(['two\\ words']);
    expect(complete('svcctl', 'edit', 'upstreams', 'two\\ w')).toEqual(['two\\ words']);
    expect(complete('svcctl', 'command', 'edge-1', 'RUN')).toEqual(['RUN_DIAGNOSTICS']);
    expect(complete('svcctl', 'drift', 'comp')).toEqual(['completed']);
    expect(complete('svcctl', 'export', '--set', 'comp')).toEqual(['completed']);
    mkdirSync(join(folder, '.config/svcctl'), { recursive: true });
    const contexts = { berlin: { server: service.url, user: 'ada', token: await viewerToken() } };
    writeFileSync(join(folder, '.config/svcctl/config.json'), JSON.stringify({ current: 'berlin', contexts }));
    expect(complete('svcctl', 'context', 'use', '')).toEqual(['berlin']);
    expect(complete('svcctl', '--context', 'b')).toEqual(['berlin']);
  });

  test('offers files behind -f, and says nothing when the service is not there', async () => {
    expect(complete('svcctl', 'plan', '-f', 'completion')).toEqual(['completion.bash']);
    const env = { SVC_SERVER: 'http://127.0.0.1:9' };
    expect(await done(script.runAlone(['complete', '--', 'deploy', ''], { env }))).toBe('');
  });
});
