/** Fleet files on the command line (`docs/contract/automation.md#the-command-line-svcctl`). */
import { spawnSync, type SpawnSyncReturns } from 'node:child_process';
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { RestClient } from '../../scripts/stack/rest-client.js';
import { prepareService, type ServiceProcess } from '../../scripts/stack/service.js';
import { createCertificate } from '../support/certificate.js';
import { projectRoot } from '../support/project-root.js';
import type { Ran } from './support/run-here.js';
import { createRunner, type Runner } from './support/run.js';

let folder: string;
let service: ServiceProcess;
let admin: RestClient;
let script: Runner;
let signedIn: { readonly [name: string]: string };

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'svcctl-fleet-'));
  service = await prepareService({ dataDir: join(folder, 'data') });
  await service.start();
  admin = await service.admin();
  const { token } = await admin.call<{ token: string }>('POST', '/api/auth/tokens', { name: 'script', role: 'admin' });
  signedIn = { HOME: folder, SVC_SERVER: service.url, SVC_TOKEN: token };
  script = createRunner(signedIn);
  for (const [name, address] of [
    ['edge-1', '192.0.2.1'],
    ['edge-2', '192.0.2.2'],
  ]) {
    await admin.call('POST', '/api/nodes', { name, address });
  }
  await admin.call('POST', '/api/l4-upstreams', { name: 'web', endpoint: '203.0.113.5:443' });
});
afterAll(async () => {
  await service.stop();
  rmSync(folder, { recursive: true, force: true });
});

const write = (name: string, text: string): string => {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
};

async function exits(ran: Promise<Ran>, code: number, shown: { out?: RegExp; err?: RegExp }): Promise<Ran> {
  const given = await ran;
  expect([given.code, given.err]).toEqual([code, shown.err === undefined ? '' : expect.stringMatching(shown.err)]);
  if (shown.out !== undefined) expect(given.out).toMatch(shown.out);
  return given;
}

describe('export', () => {
  test('prints what no set owns, and a plan of it is no change', async () => {
    const { out } = await exits(script.run(['export', '--set', '']), 0, { out: /^svc: 1\nset: null\n/ });
    expect(out).toContain('edge-1');
    const file = write('exported.yaml', out);
    await exits(script.run(['plan', '-f', file]), 0, { out: /^no changes\n$/ });
  });

  test('writes a file for each set, and refuses a set that is not there', async () => {
    const into = join(folder, 'exported');
    const { out, err } = await script.run(['export', '-d', into]);
    expect([out, err]).toEqual(['', expect.stringContaining('wrote')]);
    expect(readdirSync(into)).toEqual(['_no-set.yaml']);
    expect(readFileSync(join(into, '_no-set.yaml'), 'utf8')).toContain('edge-2');
    await exits(script.run(['export', '--set', 'nope']), 1, { err: /there is no set nope/ });
  });
});

describe('plan', () => {
  test('shows what would change as a difference, and says so by its exit code', async () => {
    const file = write(
      'change.yaml',
      'svc: 1\nset: null\nnodes:\n  edge-1: {address: 192.0.2.77}\n  edge-3: {}\n  edge-2: {address: 192.0.2.2}\n',
    );
    const { out } = await exits(script.run(['plan', '-f', file]), 2, {});
    expect(out).toContain('+ create node edge-3');
    expect(out).toMatch(/\n1 to update, 1 to create, in 1 command; 0 nodes get a new configuration\n$/);
    expect(out).toContain('~ update node edge-1\n    - address: 192.0.2.1\n    + address: 192.0.2.77\n');
    expect(await admin.call('GET', '/api/nodes?q=edge-3')).toMatchObject({ total: 0 });
    expect((await script.runAlone(['plan', '-f', '-'], { input: readFileSync(file, 'utf8') })).code).toBe(2);
  });

  test('prints obstacles, and is refused with them', async () => {
    const file = write('owned.yaml', 'svc: 1\nset: mine\nnodes:\n  edge-1: {address: 192.0.2.1}\n');
    await exits(script.run(['plan', '-f', file]), 1, {
      out: /in the way: .*edge-1/,
      err: /1 obstacles are in the way/,
    });
    await exits(script.run(['plan', '-f', file, '--adopt']), 2, { out: /adopt node edge-1/ });
  });

  test('tells a mistake where it stands in the file, and names the file when there are several', async () => {
    const broken = write('broken.yaml', 'svc: 1\nset: null\nnodes:\n  edge-1: {address: [}\n');
    await exits(script.run(['plan', '-f', broken]), 1, { err: /^svcctl: 4:\d+: / });
    const one = write('one.yaml', '# nodes\nsvc: 1\nset: null\nnodes:\n  edge-9: {}\n');
    const two = write(
      'two.yaml',
      '\n\nsvc: 1\nset: null\nupstreams:\n  web:\n    endpoint: 203.0.113.5:443\n    colour: red\n',
    );
    await exits(script.run(['plan', '-f', one, '-f', two]), 1, {
      err: new RegExp(`${two}:8:5: upstreams\\.web\\.colour: `),
    });
    await exits(script.run(['plan', '-f', two]), 1, { err: /^svcctl: invalid_request: 8:5: upstreams\.web\.colour: / });
    const policy = (port: string): string =>
      `policies:\n  - {node: edge-9, transport: tcp, listen_addr: 0.0.0.0, listen_port: ${port}, priority_order: [tls]}\n`;
    const three = write('three.yaml', `svc: 1\nset: null\n${policy('1')}nodes:\n  edge-9: {}\n`);
    const four = write('four.yaml', `svc: 1\nset: null\nnodes:\n  edge-8:\n    colour: red\n${policy('x')}`);
    await exits(script.run(['plan', '-f', three, '-f', four]), 1, {
      err: new RegExp(`${four}:7:\\d+: policies\\[1\\]\\.listen_port: .*; ${four}:5:5: nodes\\.edge-8\\.colour: `),
    });
    const twice = write('twice.yaml', 'svc: 1\nset: null\nnodes:\n  edge-9: {}\n');
    await exits(script.run(['plan', '-f', one, '-f', twice]), 1, {
      err: /twice\.yaml: nodes\.edge-9: it stands in another file/,
    });
    await exits(script.run(['plan', '-f', join(folder, 'none.yaml')]), 3, { err: /none\.yaml/ });
    await exits(script.run(['plan']), 3, { err: /expected -f FILE/ });
  });

  test('puts files of one set together, and plans several sets one after the other', async () => {
    const nodes = write('nodes.yaml', 'svc: 1\nset: a\nnodes:\n  a-1: {}\n');
    const upstreams = write(
      'upstreams.yaml',
      'svc: 1\nset: a\nupstreams:\n  a-web: {endpoint: "203.0.113.9:443"}\n---\nsvc: 1\nset: b\nnodes:\n  b-1: {}\n',
    );
    const { out } = await exits(script.run(['plan', '-f', nodes, '-f', upstreams]), 2, {});
    expect(out).toMatch(/^set a:\n(.*\n)*set b:\n(.*\n)*$/);
    expect(out.split('set b:')[0]).toContain('create node a-1');
    expect(out.split('set b:')[0]).toContain('create l4_upstream a-web');
    expect(out.split('set b:')[1]).toContain('create node b-1');
  });
});

describe('{file} and {env}', () => {
  const { cert, key } = createCertificate('web.example');
  const document = (privateKey: string): string =>
    `svc: 1\ncredentials:\n  web-cert:\n    key_type: tls_cert\n    certificate_pem: {file: keys/web.pem}\n    private_key_pem: ${privateKey}\n`;
  beforeAll(() => {
    mkdirSync(join(folder, 'keys'));
    write('keys/web.pem', cert);
    write('keys/web.key', key);
  });

  test('are read by the command line, from beneath the document and from named variables', async () => {
    const byFile = write('by-file.yaml', document('{file: keys/web.key}'));
    const { out } = await exits(script.run(['plan', '-f', byFile]), 2, { out: /create credential web-cert/ });
    expect(out).not.toContain('PRIVATE KEY');
    const byEnv = write('by-env.yaml', document('{env: WEB_KEY}'));
    const named = ['plan', '-f', byEnv, '--env', 'WEB_KEY'];
    await exits(script.run(named, { env: { WEB_KEY: key } }), 2, { out: /create credential web-cert/ });
    await exits(script.run(named), 3, {
      err: /credentials\.web-cert\.private_key_pem: the variable WEB_KEY is not set/,
    });
    const unnamed = script.run(['plan', '-f', byEnv], { env: { WEB_KEY: key } });
    await exits(unnamed, 3, { err: /reading WEB_KEY needs --env WEB_KEY/ });
    await exits(script.run(['plan', '-f', byEnv, '--no-secrets']), 2, { out: /create credential web-cert/ });
  });

  test('reach nothing outside the folder of the document, by dots or by links', async () => {
    const outside = mkdtempSync(join(tmpdir(), 'svcctl-outside-'));
    writeFileSync(join(outside, 'web.key'), key);
    symlinkSync(join(outside, 'web.key'), join(folder, 'keys/linked.key'));
    for (const path of [join(outside, 'web.key'), '../web.key', 'keys/linked.key', 'keys/none.key', '.']) {
      const file = write('outside.yaml', document(`{file: ${path}}`));
      await exits(script.run(['plan', '-f', file]), 3, { err: /credentials\.web-cert\.private_key_pem: / });
    }
    rmSync(outside, { recursive: true });
  });

  test('are refused by the service where no key is wanted', async () => {
    const file = write('elsewhere.yaml', 'svc: 1\nnodes:\n  x: {address: {file: keys/web.pem}}\n');
    await exits(script.run(['plan', '-f', file]), 1, { err: /3:\d+: nodes\.x\.address: / });
  });
});

describe('the example of a repository', () => {
  test('plans on a branch, applies on the main one, and leaves nothing to plan', async () => {
    const examples = join(projectRoot, 'examples/fleet-in-git');
    const pipeline = (word: string): SpawnSyncReturns<string> =>
      spawnSync(join(examples, 'pipeline.sh'), [word], {
        encoding: 'utf8',
        timeout: 60_000,
        env: { ...process.env, ...signedIn, SVCCTL: `${process.execPath} ${join(projectRoot, 'cli/bin/svcctl.js')}` },
      });
    expect(pipeline('plan')).toMatchObject({ status: 0, stdout: expect.stringContaining('+ create l4_chain site') });
    expect(await admin.call('GET', '/api/l4-chains')).toMatchObject({ total: 0 });
    expect(pipeline('apply')).toMatchObject({ status: 0, stdout: expect.stringContaining('applied 1 command') });
    await exits(script.run(['plan', '-f', join(examples, 'fleet.yaml')]), 0, { out: /^no changes\n$/ });
    expect(await admin.call('GET', '/api/l4-chains')).toMatchObject({ items: [{ name: 'site', status: 'deployed' }] });
    expect(pipeline('')).toMatchObject({ status: 3 });
  });
});

describe('apply', () => {
  const fleet = (address: string): string =>
    `svc: 1\nset: applied\nnodes:\n  new-1: {address: ${address}}\n  new-2: {}\nupstreams:\n  new-web: {endpoint: "203.0.113.7:443"}\n`;

  test('carries a plan out as one command, writes PSKs that only their owner reads, and leaves nothing to plan', async () => {
    const file = write('fleet.yaml', fleet('192.0.2.31'));
    await exits(script.run(['apply', '-f', file]), 3, { out: /\+ create node new-1/, err: /expected --yes/ });
    expect(await admin.call('GET', '/api/nodes?q=new-')).toMatchObject({ total: 0 });
    const keys = join(folder, 'psks');
    const applied = await exits(script.run(['apply', '-f', file, '--yes', '--psk-dir', keys]), 0, {
      out: /applied 1 command \(apply [0-9a-f-]{36}\)/,
    });
    expect(applied.out).not.toContain('svcpsk1_');
    expect(readdirSync(keys)).toEqual(['new-1.env', 'new-2.env']);
    expect(statSync(join(keys, 'new-1.env')).mode & 0o777).toBe(0o600);
    expect(readFileSync(join(keys, 'new-1.env'), 'utf8')).toMatch(
      /^SVC_AGENT_ID=[0-9a-f-]{36}\nSVC_CONTROL_ENDPOINT=.*\nSVC_CONTROL_PSK=svcpsk1_/,
    );
    await exits(script.run(['plan', '-f', file]), 0, { out: /^no changes\n$/ });
    const { items } = await admin.call<{ items: { action: string; resource: { name: string } }[] }>(
      'GET',
      '/api/audit?resource_type=fleet',
    );
    expect(items.filter(({ resource }) => resource.name === 'applied')).toEqual([
      expect.objectContaining({ action: 'fleet.apply', token: expect.objectContaining({ name: 'script' }) }),
    ]);
  });

  test('with --wait fails for a node that is offline, and says which', async () => {
    const file = write(
      'waited.yaml',
      `svc: 1
set: waited
nodes: {waited-1: {}}
upstreams: {waited-web: {endpoint: "203.0.113.8:443"}}
chains:
  waited:
    payload: tcp
    hops: [{node: waited-1, listen_port: 8081, outer: tcp, security: raw}]
    target: {upstream: waited-web}
    deploy: true
`,
    );
    await exits(script.run(['apply', '-f', file, '--yes', '--wait']), 1, {
      out: /; 1 node gets a new configuration\napplied 1 command \(apply \S+\)\nwaited-1 {2}offline\n$/,
      err: /^svcctl: 1 of 1 nodes have not applied it: 1 offline\n$/,
    });
    const { out } = await exits(script.run(['plan', '-f', file, '-o', 'json']), 0, {});
    expect(JSON.parse(out)).toMatchObject({ steps: [], obstacles: [], commands: 0, etag: expect.any(String) });
  });

  test('keeps PSKs out of its answer with -o json', async () => {
    const file = write('quiet.yaml', 'svc: 1\nset: quiet\nnodes: {quiet-1: {}}\n');
    const keys = join(folder, 'quiet');
    const { code, out, err } = await script.run(['apply', '-f', file, '--yes', '--psk-dir', keys, '-o', 'json']);
    expect([code, err]).toEqual([0, `wrote ${join(keys, 'quiet-1.env')}\n`]);
    expect(JSON.parse(out)).toMatchObject({ control_psks: [{ node: 'quiet-1', control_psk: null }], incomplete: null });
    expect(out).not.toContain('svcpsk1_');
  });

  test('is compared with what was changed by hand since, and is taken back as a whole', async () => {
    const file = write(
      'site.yaml',
      'svc: 1\nset: site\nupstreams:\n  site-a: {endpoint: "192.0.2.41:80"}\n  site-b: {endpoint: "192.0.2.42:80"}\n',
    );
    await exits(script.run(['apply', '-f', file, '--yes']), 0, {});
    await exits(script.run(['drift', 'site']), 0, { out: /^no drift\n$/ });
    await exits(
      script.run(['edit', 'upstreams', 'site-a'], { env: { EDITOR: 'sed -i s/192.0.2.41/192.0.2.49/' } }),
      0,
      {},
    );
    const byHand =
      /~ l4_upstream site-a\n {4}- endpoint: 192\.0\.2\.41:80\n {4}\+ endpoint: 192\.0\.2\.49:80\n {6}by entry [0-9a-f-]{36}\n$/;
    await exits(script.run(['drift', 'site']), 2, { out: byHand });
    await exits(script.run(['drift']), 2, { out: /^set site:\n/ });
    await exits(script.run(['drift', 'nope']), 1, { err: /no set has this name/ });
    const { out } = await exits(script.run(['apply', '-f', file, '--yes']), 0, { out: /~ update l4_upstream site-a/ });
    const apply = /\(apply (\S+)\)/.exec(out)![1]!;
    await exits(script.run(['drift']), 0, { out: /^no drift\n$/ });
    await exits(script.run(['revert', apply, '--dry-run']), 0, {
      out: /^would change l4_upstream site-a endpoint: 192\.0\.2\.41:80 → 192\.0\.2\.49:80\n$/,
    });
    await exits(script.run(['drift']), 0, {});
    await exits(script.run(['revert', apply]), 0, {
      out: /^changed l4_upstream site-a endpoint: .*\nfleet\.\S+ site \(entry [0-9a-f-]{36}\)\n$/,
    });
    await exits(script.run(['drift', 'site']), 2, { out: byHand });
    await exits(script.run(['revert', apply]), 1, { err: /conflict: / });
  });

  test('says the first changes of a large revert that is only tried, and all changes of one that is done', async () => {
    const many = (last: number): string =>
      Array.from({ length: 30 }, (_, n) => `  large-${n}: {endpoint: "192.0.2.${last}:${1000 + n}"}\n`).join('');
    const document = (last: number): string => `svc: 1\nset: large\nupstreams:\n${many(last)}`;
    await exits(script.run(['apply', '-f', write('large.yaml', document(51)), '--yes']), 0, {});
    const { out } = await exits(script.run(['apply', '-f', write('large.yaml', document(52)), '--yes']), 0, {});
    const apply = /\(apply (\S+)\)/.exec(out)![1]!;
    await exits(script.run(['revert', apply, '--dry-run']), 0, {
      out: /^(would change l4_upstream large-\d+ endpoint: .*\n){20}and 10 more fields\n$/,
    });
    await exits(script.run(['revert', apply]), 0, {
      out: /^(changed l4_upstream large-\d+ endpoint: .*\n){30}fleet\.revert large \(entry [0-9a-f-]{36}\)\n$/,
    });
  });

  test('prunes what the file no longer has, and is refused with what is in the way', async () => {
    const file = write('fleet.yaml', 'svc: 1\nset: applied\nnodes:\n  new-1: {address: 192.0.2.31}\nupstreams: {}\n');
    await exits(script.run(['apply', '-f', file, '--prune', '--max-deletes', '1', '--yes']), 1, {
      out: /in the way: /,
      err: /obstacles are in the way/,
    });
    await exits(script.run(['apply', '-f', file, '--prune', '--yes']), 0, {
      out: /- delete node new-2\n(.*\n)*applied 1 command/,
    });
    expect(await admin.call('GET', '/api/nodes?q=new-')).toMatchObject({ total: 1 });
    expect(await admin.call('GET', '/api/l4-upstreams?q=new-')).toMatchObject({ total: 0 });
    await exits(script.run(['apply', '-f', file, '--prune']), 0, { out: /^no changes\n/ });
    await exits(script.run(['apply', '-f', file, '--psk-dir', join(file, 'x'), '--yes']), 3, { err: /--psk-dir/ });
  });
});
