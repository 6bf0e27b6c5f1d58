/**
 * The tamper-evident log on the real service with embedded stores: what it says of a log that somebody has changed, and what
 * `log:verify` proves before and after a rotation of the master key, an export and an import (`docs/log-chain.md`).
 */
import { randomUUID } from 'node:crypto';
import { cp, mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { StartError } from '../../src/app/installation/installation.js';
import { setRetentions } from '../../src/commands/facts.js';
import { systemClock } from '../../src/kernel/clock.js';
import type { RecordedCommand } from '../../src/kernel/event.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { openEmbedded } from '../../src/storage/embedded/open-embedded.js';
import { wholeLog } from '../support/installations.js';
import { runMaintenance, type ScriptOutcome } from '../support/programs.js';
import { proof } from '../support/proof.js';
import { prepareServiceHere, type ServiceHere } from '../support/service-here.js';
import { tamper } from '../support/tampering.js';

let root: string;
let good: string;
let folders = 0;

const environment = (dataDir: string, more: object = {}): Readonly<Record<string, string>> => ({
  SVC_DATA_DIR: dataDir,
  SVC_HTTP_LISTEN_ADDR: '127.0.0.1:0',
  ...more,
});
const verify = (dataDir: string, ...args: readonly string[]): Promise<ScriptOutcome> =>
  runMaintenance('log:verify', args, environment(dataDir));

/** A copy of the good folder that may be spoilt. */
async function copy(): Promise<string> {
  folders += 1;
  const folder = join(root, `copy-${folders}`);
  await cp(good, folder, { recursive: true });
  return folder;
}

async function serving<T>(dataDir: string, use: (service: ServiceHere) => Promise<T>, env = {}): Promise<T> {
  const service = await prepareServiceHere({ dataDir, env });
  await service.start();
  try {
    return await use(service);
  } finally {
    await service.stop();
  }
}

/** Starts the service, which refuses. @returns what it says of it */
async function refusedStart(dataDir: string): Promise<string> {
  const service = await prepareServiceHere({ dataDir });
  const sentence = await service.start().then(
    () => service.stop().then(() => 'nothing: it has started'),
    (error: unknown) => (error instanceof StartError ? error.message : String(error)),
  );
  expect(sentence).toMatch(/^The start is refused: /);
  return sentence.replace('The start is refused: ', '');
}

type Change = (commands: readonly RecordedCommand[]) => readonly RecordedCommand[];

/** The log of a folder in a new one, changed, as somebody can write it who has the stores and no master key. */
async function rewritten(from: string, change: Change): Promise<string> {
  folders += 1;
  const folder = join(root, `rewritten-${folders}`);
  const [old, next] = [await openFolder(from), await openFolder(folder)];
  try {
    for (const { stream, events } of change(await wholeLog(old.eventStore))) {
      const plain = events.map(({ id, type, data, metadata }) => ({ id, type, data, metadata }));
      expect((await next.eventStore.append(stream, 'any', plain)).kind).toBe('appended');
    }
    // Without any, it would be a log of which a part is missing.
    await setRetentions(next.eventStore);
  } finally {
    await Promise.all([old.close(), next.close()]);
  }
  await cp(join(from, 'master.key'), join(folder, 'master.key'));
  return folder;
}
const openFolder = (dataDir: string) => openEmbedded({ dataDir, clock: systemClock, logger: silentLogger });

const unlinked = ({ stream, events }: RecordedCommand): RecordedCommand => {
  const [first, ...rest] = events.map((event) => ({ ...event, metadata: { ...event.metadata, link: undefined } }));
  return { stream, events: [first!, ...rest] as unknown as RecordedCommand['events'] };
};

const metric = async (service: ServiceHere, name: string): Promise<number> =>
  Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(await (await fetch(`${service.url}/metrics`)).text())?.[1]);
const headsOf = ({ out }: ScriptOutcome): readonly string[] =>
  Array.from(out.matchAll(/head (\S+)$/gm), ([, head]) => head!);

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'tampered-'));
  good = join(root, 'good');
  await serving(good, async (service) => {
    const admin = await service.admin();
    for (const name of ['a', 'b', 'c']) await admin.call('POST', '/api/nodes', { name, address: '192.0.2.1' });
  });
});
afterAll(async () => {
  await rm(root, { recursive: true, force: true });
});

test('a log that nobody touched is proven; one whose end was cut off is found out by a head that was kept', async () => {
  const [folder, before] = [await copy(), await copy()];
  const [fleet, accounts, own] = (await proof(folder)).heads;
  await serving(folder, async (service) => {
    expect(await metric(service, 'svc_log_broken')).toBe(0);
    // Each start tells the heads that it finds.
    expect(service.output()).toContain(`"heads":["${fleet}","${accounts}","${own}"]`);
    await (await service.admin()).call('POST', '/api/nodes', { name: 'd', address: '192.0.2.4' });
  });
  const proven = await verify(folder, '--contains', fleet!, '--contains', accounts!, '--contains', own!);
  expect(proven.code).toBe(0);
  const [kept] = headsOf(proven);
  expect(proven.out).toContain('The log is complete and proven.');
  // The folder as it was is the log without its end.
  expect((await proof(before)).problems).toEqual([]);
  expect(await verify(before, '--contains', kept!)).toMatchObject({
    code: 4,
    out: expect.stringMatching(
      /PROBLEM: svc-fleet ends at revision \d+: it was cut off before the expected head svc-fleet@/,
    ),
  });
  expect(await verify(before, '--contains', 'svc-fleet@1')).toMatchObject({ code: 2 });
});

describe('a changed event', () => {
  test('of any stream ends the start, and is named by log:verify', async () => {
    const folder = await copy();
    const changes = [
      ['svc-fleet', 2, '192.0.2.1', '203.0.113.66'],
      ['svc-accounts', 0, '"role":"admin"', '"role":"viewer"'],
      ['svc-service', 1, '"version":1', '"version":0'],
    ] as const;
    for (const [stream, revision, before, after] of changes) {
      await tamper(folder, stream, revision, (text) => text.replace(before, after));
    }
    const breaks = (stream: string, revision: number | string): RegExp =>
      new RegExp(
        `the log chain of ${stream} breaks at revision ${revision}, command [\\w-]{36}: its MAC does not fit its events`,
      );
    expect(await refusedStart(folder)).toMatch(breaks('svc-\\w+', '\\d'));
    const { code, out } = await verify(folder);
    expect(code).toBe(4);
    for (const [stream, revision] of changes) expect(out).toMatch(breaks(stream, revision));
    expect(out).toContain('The log is damaged: see above.');
  });

  test('that was deleted, alone or with its whole command, is named as well', async () => {
    const folder = await copy();
    await tamper(folder, 'svc-fleet', 3, () => undefined);
    expect((await proof(folder)).problems).toContain(
      'svc-fleet continues at revision 4 instead of 3: events are missing',
    );
    await tamper(folder, 'svc-fleet', 2, () => undefined);
    expect(await refusedStart(folder)).toMatch(/^svc-fleet continues at 4 instead of 2\./);
  });
});

describe('a log that was put together anew, with its own events, by somebody without the master key', () => {
  test('without any MAC has no log chain: it is neither started, imported nor folded', async () => {
    const folder = await rewritten(good, (commands) => commands.map(unlinked));
    expect(await refusedStart(folder)).toMatch(/breaks at revision 0, .*: it carries no MAC\./);
    const { code, out } = await verify(folder);
    expect([code, out]).toEqual([3, expect.stringContaining('The log has no log chain')]);
    const rebuilt = await runMaintenance('projections:rebuild', [], environment(folder));
    expect(rebuilt).toMatchObject({ code: 1, err: expect.stringContaining('it has no log chain') });
    const archive = join(root, 'stripped.jsonl');
    expect(await runMaintenance('log:export', [archive], environment(folder))).toMatchObject({ code: 0 });
    const key = { SVC_MASTER_KEY_FILE: join(good, 'master.key') };
    expect(await runMaintenance('log:import', [archive], environment(join(root, 'nowhere'), key))).toMatchObject({
      code: 1,
      err: expect.stringContaining(`${archive} is not imported: it has no log chain.\n`),
    });
  });

  test('with one stream as it was before is not started: another stream names what it lacks', async () => {
    const folder = await copy();
    await serving(folder, async (service) => {
      const { id } = await (await service.admin()).call<{ id: string }>('GET', '/api/auth/me');
      expect(id).toBeDefined();
    });
    // The accounts as they were before that start.
    const older = await rewritten(folder, (commands) => {
      const accounts = commands.filter(({ stream }) => stream === 'svc-accounts');
      return commands.filter((command) => command.stream !== 'svc-accounts' || command !== accounts.at(-1));
    });
    const { code, out } = await verify(older);
    expect([code, out]).toEqual([
      4,
      expect.stringMatching(
        /svc-accounts ends at revision 1: it was cut off before the head svc-accounts@2:.*, which svc-service names/,
      ),
    ]);
    expect(await refusedStart(older)).toMatch(
      /^svc-accounts does not hold its head svc-accounts@2:.*, which svc-service names/,
    );
  });

  test('with the accounts of another installation under the same master key is not started', async () => {
    const key = { SVC_MASTER_KEY_FILE: join(good, 'master.key') };
    const staging = join(root, 'staging');
    await serving(staging, async () => undefined, key);
    await cp(join(good, 'master.key'), join(staging, 'master.key'));
    const theirs = await openFolder(staging);
    const accounts = (await wholeLog(theirs.eventStore)).filter(({ stream }) => stream === 'svc-accounts');
    await theirs.close();
    const mixed = await rewritten(good, (commands) => [
      ...commands.filter(({ stream }) => stream !== 'svc-accounts'),
      ...accounts,
    ]);
    expect(await refusedStart(mixed)).toMatch(/svc-accounts breaks at revision 0, .* another installation wrote it/);
  });

  test('with a key for tokens that was replaced put back is not started', async () => {
    const folder = await copy();
    expect(await runMaintenance('keys:rotate-signing', [], environment(folder))).toMatchObject({ code: 0 });
    const again = await rewritten(folder, (commands) => {
      const [created] = commands.filter(({ stream }) => stream === 'svc-service');
      const [event] = created!.events;
      return [...commands, { ...created!, events: [{ ...event, id: randomUUID(), type: 'TokenSigningKeyReplaced' }] }];
    });
    expect(await refusedStart(again)).toMatch(/svc-service breaks at revision \d+, .*: it was not written after/);
  });

  test('with a keyring that was replaced put back is neither started nor imported', async () => {
    const folder = await copy();
    const keyring = ({ stream }: RecordedCommand): boolean => stream === 'svc-keyring';
    const before = await openFolder(folder);
    const [older] = (await wholeLog(before.eventStore)).filter(keyring);
    await before.close();
    expect(await runMaintenance('keys:rotate-sealing', [], environment(folder))).toMatchObject({ code: 0 });
    const again = await rewritten(folder, (commands) =>
      commands.map((command) => (keyring(command) ? older! : command)),
    );
    const sentence = /keyring in the event log is version 1, and the installation has recorded version 2/;
    await expect(serving(again, async () => undefined)).rejects.toThrow(sentence);
    expect(await verify(again)).toMatchObject({ code: 4, out: expect.stringMatching(sentence) });
    const archive = join(root, 'older-keyring.jsonl');
    expect(await runMaintenance('log:export', [archive], environment(again))).toMatchObject({ code: 0 });
    const key = { SVC_MASTER_KEY_FILE: join(good, 'master.key') };
    expect(await runMaintenance('restore', [archive], environment(join(root, 'no-restore'), key))).toMatchObject({
      code: 1,
      out: expect.stringMatching(sentence),
    });
  });

  test('with an event of somebody else behind its end goes on without it, by an export up to there', async () => {
    const foreign = await rewritten(good, (commands) => {
      const last = commands.findLast(({ stream }) => stream === 'svc-fleet')!;
      const [event] = last.events;
      const metadata = { ...event.metadata, command: { id: randomUUID(), index: 0, count: 1 } };
      return [...commands, unlinked({ ...last, events: [{ ...event, id: randomUUID(), metadata }] })];
    });
    const sentence = await refusedStart(foreign);
    const [, at] = /svc-fleet breaks at revision (\d+), /.exec(sentence) ?? [];
    const archive = join(root, 'up-to.jsonl');
    const place = `svc-fleet@${Number(at) - 1}`;
    const exported = await runMaintenance('log:export', [archive, '--up-to', place], environment(foreign));
    expect(exported).toMatchObject({
      code: 0,
      out: expect.stringContaining(`svc-fleet is cut behind revision ${Number(at) - 1}`),
    });
    const target = join(root, 'without-tail');
    await mkdir(target);
    await cp(join(good, 'master.key'), join(target, 'master.key'));
    expect(await runMaintenance('log:import', [archive], environment(target))).toMatchObject({ code: 0 });
    await serving(target, async (service) => {
      const { items } = await (await service.admin()).call<{ items: readonly unknown[] }>('GET', '/api/nodes');
      expect(items).toHaveLength(3);
    });
    expect(await verify(target)).toMatchObject({ code: 0 });
  });

  test('cut in the middle takes the other streams back to where they know nothing of the rest', async () => {
    const folder = await copy();
    const [fleet] = (await proof(folder)).streams;
    await serving(folder, async (service) => {
      await (await service.admin()).call('POST', '/api/nodes', { name: 'later', address: '192.0.2.5' });
    });
    const archive = join(root, 'earlier.jsonl');
    const place = `svc-fleet@${fleet!.head!.revision}`;
    expect(await runMaintenance('log:export', [archive, '--up-to', place], environment(folder))).toMatchObject({
      code: 0,
      out: expect.stringMatching(/svc-accounts is cut behind revision 1\n.*svc-service is cut behind/s),
    });
    const key = { SVC_MASTER_KEY_FILE: join(good, 'master.key') };
    expect(await runMaintenance('log:verify', [archive], environment(root, key))).toMatchObject({ code: 0 });
    const nowhere = await runMaintenance(
      'log:export',
      [`${archive}2`, '--up-to', 'svc-fleet@999'],
      environment(folder),
    );
    expect(nowhere).toMatchObject({ code: 1, err: expect.stringContaining('No command ends at svc-fleet@999') });
  });
});

test('a rotation of the master key, interrupted and repeated, keeps the whole log provable by the new key alone', async () => {
  const folder = await copy();
  const before = (await proof(folder)).heads;
  const old = (await readFile(join(folder, 'master.key'), 'utf8')).trim();
  const next = Buffer.alloc(32, 9).toString('base64');
  const rotate = (): Promise<ScriptOutcome> =>
    runMaintenance('keys:rotate-master', [], environment(folder, { SVC_MASTER_KEY: old, SVC_NEW_MASTER_KEY: next }));
  expect(await rotate()).toMatchObject({ code: 0 });
  expect(await rotate()).toMatchObject({ code: 0 });
  await rm(join(folder, 'master.key'));
  const created = async (service: ServiceHere): Promise<unknown> =>
    (await service.admin()).call('POST', '/api/nodes', { name: 'after the rotation', address: '192.0.2.7' });
  await serving(folder, created, { SVC_MASTER_KEY: next });
  const contains = before.flatMap((head) => ['--contains', head]);
  const proven = await runMaintenance('log:verify', contains, environment(folder, { SVC_MASTER_KEY: next }));
  expect(proven).toMatchObject({ code: 0 });
  await expect(proof(folder, old)).rejects.toThrow(/the master key mk_[\w-]+ is not the one/);
});

test('an archive and its copy are proven by the heads of the log, and refused under another master key', async () => {
  const archive = join(root, 'archive.jsonl');
  expect(await runMaintenance('log:export', [archive], environment(good))).toMatchObject({ code: 0 });
  const key = (await readFile(join(good, 'master.key'), 'utf8')).trim();
  const heads = (await proof(good)).heads.flatMap((head) => ['--ends-on', head]);
  const withKey = (folder: string, SVC_MASTER_KEY: string) => environment(folder, { SVC_MASTER_KEY });
  expect(await runMaintenance('log:verify', [archive, ...heads], withKey(root, key))).toMatchObject({ code: 0 });

  const target = join(root, 'imported');
  const other = Buffer.alloc(32, 3).toString('base64');
  expect(await runMaintenance('log:import', [archive], withKey(target, other))).toMatchObject({
    code: 1,
    err: expect.stringMatching(/the master key mk_[\w-]+ is not the one that the keyring/),
  });
  expect(await runMaintenance('log:import', [archive], withKey(target, key))).toMatchObject({ code: 0 });
  expect(await proof(target, key)).toEqual(await proof(good));
});
