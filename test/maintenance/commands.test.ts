/** The maintenance commands as programs on the data folders of a real service: effect, output and exit code. */
import { once } from 'node:events';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { durationText, progressLine } from '../../scripts/maintenance/progress-bar.js';
import { createRestClient, signIn, type RestClient } from '../../scripts/stack/rest-client.js';
import { startProgram } from '../../scripts/stack/process.js';
import { fleetAggregate } from '../../src/commands/aggregate.js';
import { createGateway } from '../../src/commands/gateway.js';
import { systemContext } from '../../src/commands/system.js';
import { compilerVersion } from '../../src/kernel/release.js';
import type { FleetCommand } from '../../src/domain/fleet/resources.js';
import { openCommittedFleet } from '../../src/projections/fleet/committed-fleet.js';
import { systemClock } from '../../src/kernel/clock.js';
import { streams, type EventMetadata } from '../../src/kernel/event.js';
import { randomIds } from '../../src/kernel/ids.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { storedKeyring } from '../../src/app/installation/keyring.js';
import { loadMasterKey } from '../../src/security/master-key.js';
import { openEmbedded } from '../../src/storage/embedded/open-embedded.js';
import { lastRevision } from '../../src/storage/event-store.js';
import { canRun } from '../support/can-run.js';
import { importFrom } from '../support/installations.js';
import { headOf, linked } from '../support/log-chain.js';
import { inNewNamespaces } from '../support/namespaces.js';
import { maintenanceCommands } from '../../scripts/maintenance/commands.js';
import {
  runMaintenance as run,
  runMaintenanceProgram as runProgram,
  runMaintenanceSeries,
  type ScriptOutcome,
} from '../support/programs.js';
import { prepareServiceHere, type ServiceHere } from '../support/service-here.js';

interface NodeItem {
  readonly id: string;
  readonly generation: number;
  readonly version: number;
}

const nodesOf = async (admin: RestClient): Promise<readonly NodeItem[]> => {
  const { items } = await admin.call<{ items: readonly NodeItem[] }>('GET', '/api/nodes?sort=name');
  return items.map(({ id, generation, version }) => ({ id, generation, version }));
};

let root: string;
let first: string;
let archive: string;
let service: ServiceHere;
let before: readonly NodeItem[];
const inFolder = (dataDir: string): Readonly<Record<string, string>> => ({
  SVC_DATA_DIR: dataDir,
  SVC_HTTP_LISTEN_ADDR: '127.0.0.1:0',
});

/** Runs the service on a folder while `use` runs. */
async function serving<T>(dataDir: string, use: (service: ServiceHere) => Promise<T>): Promise<T> {
  const started = await prepareServiceHere({ dataDir });
  await started.start();
  try {
    return await use(started);
  } finally {
    await started.stop();
  }
}

async function copyOf(name: string): Promise<string> {
  const copy = join(root, name);
  await cp(first, copy, { recursive: true });
  return copy;
}

/** Starts the service, which ends by itself. */
async function refusesToStart(env: Readonly<Record<string, string>>, why: RegExp): Promise<void> {
  const program = startProgram('main', env);
  await once(program.child, 'close');
  expect([program.child.exitCode, program.output()]).toEqual([1, expect.stringMatching(why)]);
}

/** Writes fleet commands, then an event of `unknownType` as a newer release would. */
async function written(dataDir: string, commands: readonly FleetCommand[], unknownType?: string): Promise<void> {
  const stores = await openEmbedded({ dataDir, clock: systemClock, logger: silentLogger });
  const { eventStore } = stores;
  const loaded = await loadMasterKey({ dataDir, mayCreate: false });
  if (!loaded.ok) throw new Error(loaded.error);
  const stored = await storedKeyring({ eventStore, masterKey: loaded.value.masterKey });
  if (stored === undefined) throw new Error('the log has no keyring');
  const { logChain } = stored;
  const committed = await openCommittedFleet({ eventStore, logger: silentLogger, logChain });
  await committed.catchUp();
  const state = { ...committed, state: committed.fleet };
  const gateway = createGateway(fleetAggregate, state, {
    eventStore,
    clock: systemClock,
    ids: randomIds,
    logger: silentLogger,
    logChain,
    readOnly: () => undefined,
    sharedTime: systemClock.now,
  });
  for (const command of commands) await gateway.execute(command, systemContext('test'), () => undefined);
  await gateway.close();
  if (unknownType !== undefined) {
    const revision = (await lastRevision(eventStore, streams.fleet)) ?? -1;
    const metadata: EventMetadata = {
      command: { id: randomIds.next(), index: 0, count: 1 },
      actor: systemContext('test').actor,
      request_id: 'test',
      occurred_at: '2026-01-01T00:00:00.000Z',
      schema_version: 1,
    };
    const event = { id: randomIds.next(), type: unknownType, data: {}, metadata };
    const head = await headOf(eventStore, streams.fleet, logChain);
    await eventStore.append(streams.fleet, revision, linked([event], head, streams.fleet, logChain));
  }
  await stores.close();
}

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'commands-'));
  [first, archive] = [join(root, 'first'), join(root, 'archive.jsonl')];
  service = await prepareServiceHere({ dataDir: first });
  await service.start();
  const admin = await service.admin();
  for (let index = 0; index < 5; index += 1) {
    const fields = { name: `node ${index}`, address: '192.0.2.1', labels: { index: `${index}` } };
    const { id } = await admin.call<{ id: string }>('POST', '/api/nodes', fields);
    if (index % 2 === 0) await admin.call('POST', `/api/nodes/${id}/config`);
  }
  before = await nodesOf(admin);
});
afterAll(async () => {
  await service.stop();
  await rm(root, { recursive: true, force: true });
});

describe('while the service runs on embedded stores', () => {
  it('the log is proven and exported, without what comes meanwhile', async () => {
    const beside = join(root, 'beside.jsonl');
    const admin = await service.admin();
    let writing = true;
    const edits = (async () => {
      for (let index = 0; writing; index += 1) {
        await admin.call('POST', '/api/l4-upstreams', { name: `up ${index}`, endpoint: '192.0.2.9:443' });
      }
    })();
    try {
      const [proven, exported] = await runMaintenanceSeries([
        { name: 'log:verify', args: [], env: inFolder(first) },
        { name: 'log:export', args: [beside], env: inFolder(first) },
      ]);
      expect(proven).toMatchObject({ code: 0, out: expect.stringContaining('The log is complete and proven.') });
      expect(exported).toMatchObject({ code: 0, out: expect.stringMatching(/^Exported /) });
    } finally {
      writing = false;
      await edits;
    }
    const env = { SVC_MASTER_KEY_FILE: join(first, 'master.key') };
    expect(await run('log:verify', [beside], env)).toMatchObject({
      code: 0,
      out: expect.stringContaining(`${beside} is complete and proven.`),
    });
    expect((await admin.send('GET', '/api/nodes')).status).toBe(200);
  });

  it('every command that writes refuses, also from another container, and asks to stop the service first', async () => {
    const container = inNewNamespaces('-n') ?? [];
    const outcomes = await runMaintenanceSeries(
      [
        ['projections:rebuild'],
        ['keys:rotate-master'],
        ['keys:rotate-signing'],
        ['admin:reset-password', 'admin'],
        ['compiler:lower', '1'],
      ].map(([name = '', ...args]) => ({ name, args, env: inFolder(first) })),
      container,
    );
    expect(outcomes).toHaveLength(5);
    for (const outcome of outcomes) {
      expect(outcome).toEqual({
        code: 1,
        out: '',
        err: expect.stringMatching(/is in use by another process.*stop the service first\.\n$/),
      });
    }
  });
});

describe('an installation', () => {
  beforeAll(() => service.stop());

  it('moves to another folder with its generations, and runs there', async () => {
    const exported = await runProgram('log:export', [archive], inFolder(first));
    expect(exported.err).toMatch(/^exporting 100 % /m);
    expect(exported.code).toBe(0);
    const digest = /content sha256 (\w+)/.exec(exported.out)?.[1];
    const verified = await run('log:verify', [archive], {});
    expect(verified).toMatchObject({
      code: 1,
      out: expect.stringContaining(`${archive} is complete, and not proven: The master key cannot be used`),
    });
    expect(verified.out).toContain(`content sha256 ${digest}`);

    const second = join(root, 'second');
    expect(await run('log:import', [archive], inFolder(second))).toMatchObject({
      code: 1,
      err: expect.stringMatching(/The master key cannot be used: /),
    });
    await mkdir(second, { recursive: true });
    await cp(join(first, 'master.key'), join(second, 'master.key'));
    const imported = await run('log:import', [archive], inFolder(second));
    expect(imported).toMatchObject({ code: 0, out: expect.stringMatching(/^Imported \d+ events into /) });
    const verifiedLog = await run('log:verify', [], inFolder(second));
    expect(verifiedLog).toMatchObject({ code: 0, out: expect.stringContaining(`content sha256 ${digest}`) });
    expect(verifiedLog.out).toMatch(/^ {2}svc-fleet +\d+ commands proven; head svc-fleet@\d+:[\w-]{43}$/m);
    expect(verifiedLog.out).toMatch(/^ {2}svc-accounts +\d+ commands proven; head svc-accounts@\d+:[\w-]{43}$/m);
    await serving(second, async (moved) => {
      const admin = await moved.admin();
      expect(await nodesOf(admin)).toEqual(before);
      await admin.call('POST', '/api/nodes', { name: 'after the move', address: '192.0.2.2' });
    });
    expect(await run('log:import', [archive], inFolder(first))).toMatchObject({
      code: 1,
      err: expect.stringMatching(/the target is not empty: its log has events in svc-/),
    });
  });

  it.skipIf(!canRun('prlimit', '--version'))(
    'is not exported to a disk without room for the last line, and is once there is',
    async () => {
      const [file, { size }] = [join(root, 'full-disk.jsonl'), await stat(archive)];
      const runs = [{ name: 'log:export', args: [file], env: inFolder(first) }];
      const [full] = await runMaintenanceSeries(runs, ['prlimit', `--fsize=${size - 100}:unlimited`]);
      expect(full).toMatchObject({ code: 1, err: expect.stringContaining('EFBIG') });
      expect((await readdir(root)).filter((name) => name.startsWith('full-disk'))).toEqual(['full-disk.jsonl.part']);
      expect(await run('log:export', [file], inFolder(first))).toMatchObject({ code: 0 });
      expect((await stat(file)).size).toBe(size);
    },
  );

  it.each([
    ['log:import', () => [archive]],
    ['projections:rebuild', () => []],
  ])('is not called damaged when %s is interrupted during the proof', async (name, args) => {
    const stop = new AbortController();
    let out = '';
    vi.stubEnv('SVC_DATA_DIR', first);
    vi.spyOn(process.stdout, 'write').mockImplementation((text) => ((out += String(text)), true));
    vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
      // The first of the streams is proven.
      if (String(text).startsWith('proving ')) stop.abort();
      return true;
    });
    try {
      const command = await maintenanceCommands.find((one) => one.name === name)!.load();
      expect(await command.run(args(), stop.signal)).toBe(130);
    } finally {
      vi.restoreAllMocks();
      vi.unstubAllEnvs();
    }
    expect([stop.signal.aborted, out]).toEqual([true, '']);
  });

  it('is not called unfit for a service when the proof of a restore is interrupted, and proven by the next one', async () => {
    const folder = join(root, 'interrupted');
    await mkdir(folder, { recursive: true });
    await cp(join(first, 'master.key'), join(folder, 'master.key'));
    const stop = new AbortController();
    let out = '';
    vi.stubEnv('SVC_DATA_DIR', folder);
    vi.spyOn(process.stderr, 'write').mockReturnValue(true);
    vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
      out += String(text);
      if (String(text).startsWith('Imported ')) stop.abort();
      return true;
    });
    try {
      const command = await maintenanceCommands.find(({ name }) => name === 'restore')!.load();
      expect(await command.run([archive], stop.signal)).toBe(130);
    } finally {
      vi.restoreAllMocks();
      vi.unstubAllEnvs();
    }
    expect(out).toMatch(/\nInterrupted: run the same command again .*\n$/);
    expect(await run('restore', [archive], inFolder(folder))).toMatchObject({
      code: 0,
      out: expect.stringContaining('The log is complete and proven.'),
    });
  });

  it('that is half imported does not start, and the same import completes it', async () => {
    const half = join(root, 'half');
    const stores = await openEmbedded({ dataDir: half, clock: systemClock, logger: silentLogger });
    const stop = new AbortController();
    const onProgress = (_bytes: number, events: number): void => (events > 0 ? stop.abort() : undefined);
    expect(await importFrom(archive, stores, { signal: stop.signal, onProgress })).toBeUndefined();
    await stores.close();
    await refusesToStart(inFolder(half), /hold an unfinished import: run log:import with the same file again/);
    await cp(join(first, 'master.key'), join(half, 'master.key'));
    const copy = join(root, 'half.jsonl');
    const reads = [['log:verify'], ['log:export', copy]].map(([name = '', ...args]) => ({
      name,
      args,
      env: inFolder(half),
    }));
    for (const outcome of await runMaintenanceSeries(reads)) {
      expect(outcome).toEqual({
        code: 1,
        out: '',
        err: expect.stringMatching(/^The log in .* is not whole: an import into it was not finished \(run log:import/),
      });
    }
    const finished = await run('log:import', [archive], inFolder(half));
    expect(finished).toMatchObject({
      code: 0,
      out: expect.stringMatching(/of the events are from an interrupted run/),
    });
  });

  it('gets its read models rebuilt, one or all, and compared', async () => {
    const outcomes = await runMaintenanceSeries(
      [[], ['audit'], [], ['--check']].map((args) => ({ name: 'projections:rebuild', args, env: inFolder(first) })),
    );
    expect(outcomes).toMatchObject([
      ...['all read models', 'audit', 'all read models'].map((what) => ({
        code: 0,
        out: expect.stringMatching(new RegExp(`^Rebuilt ${what} from \\d+`)),
      })),
      { code: 0, out: expect.stringMatching(/^\d+ documents .*: 0 different\.\n$/) },
    ]);
    await serving(first, async (again) => expect(await nodesOf(await again.admin())).toEqual(before));
  });

  it('has no document compared where the read store is lost', async () => {
    const copy = await copyOf('without read models');
    await rm(join(copy, 'read'), { recursive: true });
    const checked = await run('projections:rebuild', ['--check'], inFolder(copy));
    expect(checked.out).toMatch(/^0 documents compared .*: 0 different\.\n[1-9]\d* were not compared/);
  });

  it('gets another master key and keeps running; the old key no longer opens anything', async () => {
    const copy = await copyOf('rotated');
    const old = await readFile(join(copy, 'master.key'), 'utf8');
    const rotated = await run('keys:rotate-master', [], inFolder(copy));
    expect(rotated).toMatchObject({ code: 0, out: expect.stringMatching(/^The keyring is now wrapped by mk_/) });
    expect(await readFile(join(copy, 'master.key'), 'utf8')).not.toBe(old);
    const files = await readdir(copy);
    expect(files.some((name) => name.startsWith('master.key.mk_'))).toBe(true);
    expect(files).not.toContain('master.key.new');
    for (const text of [rotated.out, rotated.err]) expect(text).not.toContain(old.trim());
    await serving(copy, async (again) => expect(await nodesOf(await again.admin())).toEqual(before));
    await refusesToStart({ ...inFolder(copy), SVC_MASTER_KEY: old.trim() }, /master key/);
    // To a given key; refused while the current key is the wrong one.
    const given = { ...inFolder(copy), SVC_NEW_MASTER_KEY: Buffer.alloc(32, 7).toString('base64') };
    expect(await run('keys:rotate-master', [], { ...given, SVC_MASTER_KEY: old.trim() })).toMatchObject({ code: 1 });
    expect(await run('keys:rotate-master', [], given)).toMatchObject({ code: 0 });
    const env = { SVC_MASTER_KEY: given.SVC_NEW_MASTER_KEY };
    const last = await prepareServiceHere({ dataDir: copy, env });
    await last.start();
    await last.stop();
  }, 120_000);

  it('starts with one of its keys wherever the command that replaces it is killed, and the command repeated finishes it', async () => {
    const copy = await copyOf('killed');
    const keyFile = join(copy, 'master.key');
    const old = await readFile(keyFile, 'utf8');
    // The new key is made, and nothing is wrapped by it yet.
    await writeFile(join(copy, 'master.key.new'), `${Buffer.alloc(32, 5).toString('base64')}\n`);
    await serving(copy, async (again) => expect(await nodesOf(await again.admin())).toEqual(before));
    // The keyring is wrapped by it, and the file is not in its place yet.
    const given = { ...inFolder(copy), SVC_NEW_MASTER_KEY_FILE: join(copy, 'master.key.new') };
    expect(await run('keys:rotate-master', [], given)).toMatchObject({ code: 0 });
    expect(await readFile(keyFile, 'utf8')).toBe(old);
    await refusesToStart(inFolder(copy), /run keys:rotate-master again/);

    expect(await run('keys:rotate-master', [], inFolder(copy))).toMatchObject({ code: 0 });
    expect(await readFile(keyFile, 'utf8')).not.toBe(old);
    await serving(copy, async (again) => expect(await nodesOf(await again.admin())).toEqual(before));
  }, 120_000);

  it('gets another master key by the same command again when that was killed while it wrote the key', async () => {
    const copy = await copyOf('killed-writing');
    const killed = `
      import { open } from 'node:fs/promises';
      const file = await open('/dev/null');
      Object.getPrototypeOf(file).writeFile = () => process.kill(process.pid, 'SIGKILL');
      await file.close();`;
    const program = { ...inFolder(copy), NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(killed)}` };
    expect(await runProgram('keys:rotate-master', [], program)).toMatchObject({ code: null, out: '' });
    expect(await run('keys:rotate-master', [], inFolder(copy))).toMatchObject({ code: 0 });
  });

  it('gets another key that seals, and still opens what the earlier one has sealed', async () => {
    const copy = await copyOf('sealing');
    expect(await run('keys:rotate-sealing', [], inFolder(copy))).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^The keyring has 2 keys now; sk_[\w-]+ seals from now on\.\n$/),
    });
    await serving(copy, async (again) => {
      const admin = await again.admin();
      expect(await nodesOf(admin)).toEqual(before);
      await admin.call('POST', '/api/credentials', { name: 'sealed anew', key_type: 'x25519' });
    });
  });

  it('goes back to the compiler of an older release with higher generations, but not below this release', async () => {
    const copy = await copyOf('gone-back');
    const lower = (version: number): Promise<ScriptOutcome> => run('compiler:lower', [String(version)], inFolder(copy));
    expect(await lower(compilerVersion)).toMatchObject({
      code: 1,
      err: `the log is at compiler version ${compilerVersion}, and ${compilerVersion} is not lower\n`,
    });
    await written(copy, [{ type: 'RaiseCompilerVersion', version: compilerVersion + 2 }]);
    expect(await lower(compilerVersion + 1)).toMatchObject({
      code: 1,
      err: expect.stringMatching(/lower than \d+: run this command from the release that you go back to\.\n$/),
    });
    expect(await lower(compilerVersion)).toEqual({
      code: 0,
      out: `The log was at compiler version ${compilerVersion + 2} and is now at ${compilerVersion}; every node has a new generation.\n`,
      err: '',
    });
    await serving(copy, async (again) => {
      const admin = await again.admin();
      for (const [index, { generation }] of (await nodesOf(admin)).entries()) {
        expect(generation).toBeGreaterThan(before[index]?.generation ?? Infinity);
      }
      const { items } = await admin.call<{ items: readonly unknown[] }>('GET', '/api/audit?action=service.update');
      expect(items[0]).toMatchObject({
        changes: [{ path: 'compiler_version', before: compilerVersion + 2, after: compilerVersion }],
        revertible: false,
      });
    });
  });

  it('does not go back when a newer release has written an event that this one does not know', async () => {
    const copy = await copyOf('newer-events');
    await written(copy, [{ type: 'RaiseCompilerVersion', version: compilerVersion + 1 }], 'MoonPhaseChanged');
    expect(await run('compiler:lower', [String(compilerVersion)], inFolder(copy))).toMatchObject({
      code: 1,
      err: expect.stringMatching(/^This release cannot read the log: the event MoonPhaseChanged .*\.\n$/),
    });
  });

  it('gets a new password for an account whose password is lost', async () => {
    const copy = await copyOf('forgotten');
    await serving(copy, async (before) => {
      await (await before.admin()).call('POST', '/api/join-tokens', { name: 'made by the admin' });
    });
    const reset = await run('admin:reset-password', ['Admin'], inFolder(copy));
    expect(reset).toMatchObject({
      code: 0,
      out: expect.stringContaining('\nJoin tokens of this account that were deleted: 1.\n'),
    });
    const password = reset.out.trim().split('\n').at(-1) ?? '';
    expect(password).toHaveLength(24);
    const typed = 'a password that was typed';
    let token = '';
    await serving(copy, async (again) => {
      const admin = createRestClient(again.url);
      ({ token } = await admin.call<{ token: string }>('POST', '/api/auth/login', { username: 'admin', password }));
      await expect(again.admin()).rejects.toThrow();
      const joins = await createRestClient(again.url, token).call<{ total: number }>('GET', '/api/join-tokens');
      expect(joins.total).toBe(0);
    });
    expect(await run('keys:rotate-signing', [], inFolder(copy))).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^Tokens are now signed with a new key; all earlier tokens have ended\./),
    });
    const quiet = await runProgram('admin:reset-password', ['admin', '--stdin'], inFolder(copy), `${typed}\n`);
    expect(quiet).toMatchObject({ code: 0, out: expect.not.stringContaining(typed) });
    await serving(copy, async (again) => {
      expect((await createRestClient(again.url, token).send('GET', '/api/auth/me')).status).toBe(401);
      const admin = await signIn(again.url, 'admin', typed);
      const { items } = await admin.call<{ items: readonly unknown[] }>('GET', '/api/audit?action=user.update');
      const entry = {
        actor: { type: 'system', id: 'service', name: 'service' },
        resource: expect.objectContaining({ name: 'admin' }),
        changes: [{ path: 'password', before: '***', after: '***' }],
        revertible: false,
      };
      expect(items).toEqual([expect.objectContaining(entry), expect.objectContaining(entry)]);
    });
    expect(await runProgram('admin:reset-password', ['admin', '--stdin'], inFolder(copy), 'too short\n')).toMatchObject(
      {
        code: 2,
        err: expect.stringContaining('A password has 12 to 256 characters'),
      },
    );
    expect(await run('admin:reset-password', ['nobody'], inFolder(copy))).toMatchObject({
      code: 1,
      err: 'There is no account "nobody".\n',
    });
  }, 120_000);
});

describe('wrong arguments', () => {
  it('are answered with one sentence, the usage and exit code 2', async () => {
    const refused: readonly (readonly [string, readonly string[], string])[] = [
      ['log:export', [], 'The file to write is missing.'],
      ['log:export', [''], 'An argument is empty, perhaps for a variable that is not set.'],
      ['log:export', ['a', 'b'], '"b" is one argument too many.'],
      ['log:import', [], 'The archive to import is missing.'],
      [
        'log:export',
        ['a', '--up-to', 'svc-fleet'],
        '"svc-fleet" is not a place: expected STREAM@REVISION, with one of svc-fleet, svc-accounts, svc-service.',
      ],
      ['log:verify', ['--all'], '--all is not an option of this command.'],
      ['projections:rebuild', ['users'], 'There is no read model "users".'],
      ['admin:reset-password', [], 'The name of the account is missing.'],
      ['compiler:lower', [], 'The compiler version to go back to is missing.'],
      ['compiler:lower', ['0'], '"0" is not a compiler version: expected 1 or more.'],
      ['compiler:lower', ['two'], '"two" is not a compiler version: expected 1 or more.'],
      ['compiler:lower', ['1', '2'], '"2" is one argument too many.'],
    ];
    const outcomes = await runMaintenanceSeries(refused.map(([name, args]) => ({ name, args, env: inFolder(first) })));
    for (const [index, [name, , sentence]] of refused.entries()) {
      const { code, out, err } = outcomes[index]!;
      expect([name, code, out]).toEqual([name, 2, '']);
      expect(err.startsWith(`${sentence}\n\nUsage: gateway-control maintenance ${name} `)).toBe(true);
    }
  });

  it('name the closest command, and list all with --help', async () => {
    const [unknown, missing, help] = await runMaintenanceSeries(
      ['log:exprot', '', '--help'].map((name) => ({ name, args: [], env: {} })),
    );
    expect(unknown).toMatchObject({ code: 2, out: '' });
    expect(unknown?.err).toMatch(/^"log:exprot" is not a maintenance command; the closest is log:export\.\n\nUsage: /);
    expect(missing).toMatchObject({ code: 2, out: '' });
    expect(help).toMatchObject({ code: 0, err: '' });
    for (const { name, does } of maintenanceCommands)
      expect(help?.out).toMatch(new RegExp(`^  ${name} +${does}$`, 'm'));
  });

  it('never create an installation in an empty folder', async () => {
    const empty = join(root, 'empty');
    await mkdir(empty);
    const outcomes = await runMaintenanceSeries(
      [
        ['log:verify'],
        ['projections:rebuild'],
        ['keys:rotate-master'],
        ['compiler:lower', '1'],
        ['log:import', join(root, 'nowhere')],
      ].map(([name = '', ...args]) => ({ name, args, env: inFolder(empty) })),
    );
    const err = `The data folder ${empty} holds no installation: set SVC_DATA_DIR to the folder of one.\n`;
    expect(outcomes.slice(0, -1)).toEqual(Array.from({ length: 4 }, () => ({ code: 1, out: '', err })));
    expect(outcomes.at(-1)).toMatchObject({ code: 1 });
    expect(await readdir(empty)).toEqual([]);
  });
});

describe('the progress of a command', () => {
  it('is printed with its rate and the time left', () => {
    const state = { share: 0.5, count: 6_000, elapsedMs: 2_000, startShare: 0.25, startCount: 2_000 };
    expect(progressLine('importing', 'events', state, 10)).toBe(
      'importing [#####-----]  50 %  6,000 events  2,000/s  4 s left',
    );
    expect(progressLine('importing', 'events', { ...state, share: 1 }, 0)).toBe(
      'importing 100 %  6,000 events  2,000/s',
    );
    const nothing = { share: 0, count: 0, elapsedMs: 0, startShare: 0, startCount: 0 };
    expect(progressLine('x', 'events', nothing, 4)).toBe('x [----]   0 %  0 events  0/s');
    expect([5, 65, 3_725].map(durationText)).toEqual(['5 s', '1 min 05 s', '1 h 02 min']);
  });
});
