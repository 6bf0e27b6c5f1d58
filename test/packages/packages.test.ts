/**
 * The packages of a release, installed from their files into places of their own
 * (`docs/contract/joining.md#what-a-release-is`).
 */
import { execFileSync, spawnSync } from 'node:child_process';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makePackages, sourceOf } from '../../packaging/main.js';
import { NativesMissingError } from '../../packaging/natives.js';
import { startProgram, type RunningProgram } from '../../scripts/stack/process.js';
import { prepareService, type ServiceProcess } from '../../scripts/stack/service.js';
import { compilerVersion, dataFormat } from '../../src/kernel/release.js';
import { agentUnit, serviceUnit } from '../../src/kernel/units.js';
import { version } from '../../src/kernel/version.js';
import { canRun } from '../support/can-run.js';
import { eventually } from '../support/eventually.js';
import { projectRoot } from '../support/project-root.js';
import { sandboxOf } from '../support/sandbox.js';

const source = { commit: '0123456789ab', seconds: 1_700_000_000, author: 'A Maintainer <maintainer@example.com>' };
const said = `${version}+${source.commit} (compiler version ${compilerVersion}, format ${dataFormat})`;

let folder: string;
let files: string;
/** Why there are no packages. */
let missing: string | undefined;
const programs: RunningProgram[] = [];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'packages-'));
  files = join(folder, 'files');
  await makePackages(files, source).catch((error: unknown) => {
    if (!(error instanceof NativesMissingError)) throw error;
    missing = error.message;
    process.stdout.write(`packages: ${missing}\n`);
  });
}, 300_000);
afterAll(async () => {
  for (const program of programs) await program.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** This process hears nothing while a program runs, not even that the time of a test is over. */
const bounded = { timeout: 120_000, killSignal: 'SIGKILL' } as const;
const has = (program: string): boolean => canRun(program, '--version');
const run = (command: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): string =>
  execFileSync(command, [...args], {
    ...bounded,
    encoding: 'utf8',
    stdio: 'pipe',
    env: { PATH: process.env['PATH'], ...env },
  });

it('are made of a commit as it is, and of nothing else', () => {
  const clone = join(folder, 'clone');
  const git = (...args: readonly string[]): string => run('git', ['-C', clone, ...args], { HOME: folder });
  mkdirSync(clone);
  expect(() => sourceOf(clone)).toThrow('expected a clone');
  git('init', '--quiet');
  writeFileSync(join(clone, 'file'), 'text');
  git('add', '.');
  git('-c', 'user.name=A B', '-c', 'user.email=a@example.com', 'commit', '--quiet', '--message=First');
  const { commit, author } = sourceOf(clone);
  expect([git('rev-parse', 'HEAD'), author]).toEqual([expect.stringMatching(commit), 'A B <a@example.com>']);
  writeFileSync(join(clone, 'another'), 'text');
  expect(() => sourceOf(clone)).toThrow('files differ from the commit');
  // Files inside the clone of something else are not of its commit.
  mkdirSync(join(clone, 'inner'));
  expect(() => sourceOf(join(clone, 'inner'))).toThrow('expected a clone');
});

it('are the same bytes again, whoever makes them', ({ skip }) => {
  skip(missing !== undefined, missing);
  const again = join(folder, 'again');
  const program = `import { makePackages } from ${JSON.stringify(pathToFileURL(join(projectRoot, 'packaging/main.ts')).href)};
    process.umask(0o077);
    await makePackages(${JSON.stringify(again)}, ${JSON.stringify(source)});`;
  execFileSync(process.execPath, ['--import', 'tsx', '--input-type=module', '--eval', program], {
    timeout: 280_000,
    cwd: projectRoot,
    env: { PATH: process.env['PATH'], HOME: process.env['HOME'], TZ: 'Asia/Tokyo' },
  });
  const sums = readFileSync(join(files, 'SHA256SUMS'), 'utf8');
  expect(readFileSync(join(again, 'SHA256SUMS'), 'utf8')).toBe(sums);
  execFileSync('sha256sum', ['--check', '--strict', 'SHA256SUMS'], { ...bounded, cwd: again, stdio: 'pipe' });
  expect(sums.trim().split('\n')).toHaveLength(readdirSync(again).length - 1);
}, 300_000);

describe('from npm', () => {
  let prefix: string;
  let service: ServiceProcess;
  const npm = (...args: readonly string[]): string =>
    run('npm', [...args, '--global', '--prefix', prefix, '--offline', '--no-audit', '--no-fund'], {
      // Nothing that was downloaded before may help.
      npm_config_cache: join(folder, 'npm-cache'),
      HOME: folder,
    });
  const bin = (name: string): string => join(prefix, 'bin', name);

  it('are installed without network, and work', async ({ skip }) => {
    skip(missing !== undefined, missing);
    prefix = join(folder, 'npm');
    npm(
      'install',
      ...readdirSync(files)
        .filter((name) => name.endsWith('.tgz'))
        .map((name) => join(files, name)),
    );
    const programsThere = ['gateway-control', 'svcctl', 'gateway-agent'];
    expect(programsThere.map((name) => run(bin(name), ['--version']).replace(`${said}\n`, ''))).toEqual([
      'gateway-control ',
      'svcctl ',
      'reference-agent ',
    ]);
    for (const name of programsThere) {
      const own = join(prefix, 'lib/node_modules', name);
      const manifest = JSON.parse(readFileSync(join(own, 'package.json'), 'utf8')) as object;
      expect(manifest).not.toHaveProperty('dependencies');
      expect(manifest).not.toHaveProperty('scripts');
      expect(readFileSync(join(own, 'THIRD-PARTY-LICENSES'), 'utf8')).toMatch(/\n\S+ \d+\.\d+\.\d+: \S/);
    }

    const unit = run(bin('gateway-control'), ['--print-unit']);
    service = await prepareService({ dataDir: join(folder, 'data') });
    const command = [...(sandboxOf(unit) ?? []), bin('gateway-control')];
    await service.start({ command });
    programs.push(service.program());
    expect(await (await fetch(`${service.url}/healthz`)).json()).toEqual({
      status: 'ok',
      version,
      commit: source.commit,
      compiler_version: compilerVersion,
      format: dataFormat,
    });
    expect((await fetch(`${service.url}/console/`)).status).toBe(200);
    const served = await (await fetch(`${service.url}/agent/gateway-agent-${version}.cjs`)).text();
    expect(served).toBe(readFileSync(join(prefix, 'lib/node_modules/gateway-agent/gateway-agent.cjs'), 'utf8'));
    const admin = await service.admin();
    const node = await admin.call<{ id: string; control_psk: string }>('POST', '/api/nodes', { name: 'edge' });
    const agent = startProgram(
      'agent/main',
      {
        SVC_AGENT_ID: node.id,
        SVC_CONTROL_ENDPOINT: service.controlEndpoint,
        SVC_CONTROL_PSK: node.control_psk,
      },
      [],
      { command: [bin('gateway-agent')] },
    );
    programs.push(agent);
    const shown = () => admin.call('GET', `/api/nodes/${node.id}`);
    const agentVersion = `reference-agent ${version}+${source.commit}`;
    await eventually(shown).toMatchObject({ status: 'online', agent_version: agentVersion });

    // Each is worked out in a thread of its own.
    const { generation } = await admin.call<{ generation: number }>('GET', `/api/nodes/${node.id}/config`);
    await admin.call('POST', `/api/nodes/${node.id}/config`);
    const earlier = await admin.call('GET', `/api/nodes/${node.id}/config?generation=${generation}`);
    expect(earlier).toMatchObject({ generation });
    const nodes = Array.from({ length: 200 }, (_, i) => `  node-${i}:\n    address: 10.0.0.1\n`).join('');
    const document = `svc: 1\nset: long\nnodes:\n${nodes}`;
    expect(await admin.call('POST', '/api/fleet/plan', { document })).toMatchObject({ commands: expect.any(Number) });

    // Needs no token that is valid.
    const signedIn = { SVC_SERVER: service.url, SVC_TOKEN: 'svcat_ended' };
    expect(run(bin('svcctl'), ['version'], signedIn)).toBe(`client ${said}\nserver ${said}\n`);
    for (const program of programs.toReversed()) await program.stop();
    expect(verified()).toContain('complete and proven');
  });

  it('are upgraded and removed, and data stays', async ({ skip }) => {
    skip(missing !== undefined, missing);
    const newer = join(folder, 'newer');
    mkdirSync(newer);
    run('tar', ['-xzf', join(files, `gateway-control-${version}.tgz`), '-C', newer]);
    const manifest = join(newer, 'package', 'package.json');
    writeFileSync(manifest, readFileSync(manifest, 'utf8').replace(`"${version}"`, '"99.0.0"'));
    run('tar', ['-cf', `${newer}.tgz`, '-C', newer, 'package']);
    npm('install', `${newer}.tgz`);
    expect(npm('ls')).toContain('gateway-control@99.0.0');
    await service.start({ command: [bin('gateway-control')] });
    programs.push(service.program());
    const { items } = await (await service.admin()).call<{ items: object[] }>('GET', '/api/nodes');
    expect(items).toMatchObject([{ name: 'edge' }]);
    await service.stop();
    expect(verified()).toContain('complete and proven');
    npm('uninstall', 'gateway-control');
    expect(readdirSync(join(prefix, 'bin')).sort()).toEqual(['gateway-agent', 'svcctl']);
    expect(existsSync(join(folder, 'data', 'format.json'))).toBe(true);
  });

  const verified = (): string =>
    run(bin('gateway-control'), ['maintenance', 'log:verify'], { SVC_DATA_DIR: join(folder, 'data') });
});

describe.skipIf(!has('systemd-analyze'))('units', () => {
  it.each([
    ['gateway-control', serviceUnit],
    ['gateway-agent', agentUnit],
  ])('%s is valid, and gets little', (name, unit) => {
    const file = join(folder, `${name}.service`);
    // A program with a name that needs quotes.
    const program = join(folder, 'a "strange" $name, 100%');
    writeFileSync(program, '');
    writeFileSync(file, unit(process.execPath, program));
    // The sentence with which a start is refused is no log line and has no priority of its own.
    expect(readFileSync(file, 'utf8')).toMatch(/^SyslogLevel=err$/m);
    expect(spawnSync('systemd-analyze', ['verify', '--man=no', file], { ...bounded, encoding: 'utf8' })).toMatchObject({
      status: 0,
      stderr: '',
    });
    // In tenths.
    run('systemd-analyze', ['security', '--offline=yes', '--threshold=25', file]);
  });
});

/** Packages are set up in a folder by root alone. */
const canInstall = ['dpkg', 'deb-systemd-helper', 'systemd-sysusers'].every(has) && process.getuid?.() === 0;

describe.skipIf(!has('dpkg-deb'))('from Debian', () => {
  const debOf = (name: string, architecture: string): string => join(files, `${name}_${version}_${architecture}.deb`);
  const architecture = process.arch === 'x64' ? 'amd64' : process.arch;

  it('contain programs of their architecture alone, and no data', ({ skip }) => {
    skip(missing !== undefined, missing);
    const listed = run('dpkg-deb', ['--contents', debOf('gateway-control', 'arm64')]);
    expect(listed).toMatch(/linux-arm64\S*\.node\n/);
    expect(listed).not.toMatch(/x64|musl| \.\/(etc|var)/);
    expect(
      listed
        .trim()
        .split('\n')
        .filter((line) => !line.includes(' root/root ')),
    ).toEqual([]);
    expect(run('dpkg-deb', ['--field', debOf('gateway-agent', 'all'), 'Depends'])).toBe('nodejs (>= 20.19)\n');
  });

  it.skipIf(!canInstall)('are installed, upgraded, removed and purged', ({ skip }) => {
    skip(missing !== undefined, missing);
    const root = join(folder, 'root');
    for (const path of ['etc', 'var/lib/dpkg/updates', 'var/lib/dpkg/info'])
      mkdirSync(join(root, path), { recursive: true });
    writeFileSync(join(root, 'var/lib/dpkg/status'), '');
    const dpkg = (...args: readonly string[]): string =>
      run('dpkg', [`--root=${root}`, '--force-script-chrootless', '--force-depends', '--log=/dev/null', ...args]);
    const there = (path: string): boolean => existsSync(join(root, path));
    const packages = [
      ['gateway-control', debOf('gateway-control', architecture), 'gateway-control '],
      ['gateway-agent', debOf('gateway-agent', 'all'), 'reference-agent '],
    ] as const;
    for (const [name, deb, saidBy] of packages) {
      dpkg('--install', deb);
      expect(run(join(root, 'usr/bin', name), ['--version'])).toBe(`${saidBy}${said}\n`);
      const enabled = `etc/systemd/system/multi-user.target.wants/${name}.service`;
      const isEnabled = (): boolean => lstatSync(join(root, enabled), { throwIfNoEntry: false }) !== undefined;
      expect(isEnabled()).toBe(true);
      expect(there(`etc/${name}`) || there(`var/lib/${name}`)).toBe(false);
      const kept = [`etc/${name}/env`, `var/lib/${name}/data`];
      for (const path of kept) {
        mkdirSync(dirname(join(root, path)), { recursive: true });
        writeFileSync(join(root, path), 'mine');
      }
      run('systemctl', [`--root=${root}`, 'disable', `${name}.service`]);

      const newer = join(folder, `newer-${name}`);
      run('dpkg-deb', ['--raw-extract', deb, newer]);
      const control = join(newer, 'DEBIAN/control');
      writeFileSync(control, readFileSync(control, 'utf8').replace(`Version: ${version}`, 'Version: 99.0.0'));
      run('dpkg-deb', ['-Znone', '--build', newer, `${newer}.deb`]);
      dpkg('--install', `${newer}.deb`);
      expect(run('dpkg-query', [`--admindir=${root}/var/lib/dpkg`, '--show', '--showformat=${Version}', name])).toBe(
        '99.0.0',
      );
      // What somebody disabled stays disabled.
      expect([kept.map((path) => readFileSync(join(root, path), 'utf8')), isEnabled()]).toEqual([
        ['mine', 'mine'],
        false,
      ]);

      dpkg('--remove', name);
      expect([there(`usr/lib/${name}`), there(`usr/bin/${name}`), ...kept.map(there)]).toEqual([
        false,
        false,
        true,
        true,
      ]);
      dpkg('--purge', name);
      expect([there(`etc/${name}`), there(`var/lib/${name}`)]).toEqual([false, false]);
    }
    expect(readFileSync(join(root, 'etc/passwd'), 'utf8')).toMatch(/^gateway-control:.*:\/var\/lib\/gateway-control:/m);
  });
});
