/**
 * Which instance makes a backup, when, and what goes: with time passed in, real folders, and archives that a test writes.
 * `docs/contract/joining.md#backups`.
 */
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createBackups, type BackupMaker, type BackupsDeps } from '../../src/backups/backups.js';
import { backupAt } from '../../src/backups/folder.js';
import { ServiceError } from '../../src/kernel/errors.js';
import type { ReadStore } from '../../src/storage/read-store.js';
import { recordingLogger, type LogLine } from '../storage/eventstoredb/fixture.js';
import { createManualClock, type ManualClock } from '../support/manual-clock.js';
import { storesInMemory } from '../support/stores-in-memory.js';
import { leaseOf } from '../support/lease-of.js';

const installationId = '6f1c1d0e-0000-4000-8000-000000000001';
const another = '6f1c1d0e-0000-4000-8000-000000000002';
const hour = 3_600_000;
const day = 24 * hour;
const never = new AbortController().signal;

let root: string;
let clock: ManualClock;
let readStore: ReadStore;
let lines: LogLine[];
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'backups-'));
  clock = createManualClock();
  ({ readStore } = storesInMemory());
  lines = [];
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const nameAt = (at = clock.now(), id = installationId): string => backupAt(id, at).file;
const filesIn = (folder: string): readonly string[] => (existsSync(folder) ? readdirSync(folder).toSorted() : []);
const errors = (): readonly LogLine[] => lines.filter(({ level }) => level === 'error');
const documentOf = async () => {
  const collection = await readStore.collection({ name: 'backups', version: 1 });
  return (await collection.get('backups'))?.fields;
};

interface Instance extends BackupMaker {
  readonly folder: string;
  turn(signal?: AbortSignal): Promise<void>;
  /** Replaces what writes the next archives. */
  writes(write: BackupsDeps['write']): void;
}

const writeWell: BackupsDeps['write'] = async (path) => {
  await writeFile(path, 'archive', { mode: 0o600, flag: 'wx' });
  return { bytes: 7, events: 1 };
};
const noSpace: BackupsDeps['write'] = async (path) => {
  await writeFile(`${path}.part`, 'half');
  throw Object.assign(new Error(`ENOSPC: no space left on device, write '${path}'`), { code: 'ENOSPC' });
};

async function start(
  instanceId: string,
  { dir = 'backups', keep = 3, everyMs = day, makesBackups = true } = {},
  more: Partial<BackupsDeps> = {},
): Promise<Instance> {
  const folder = join(root, dir);
  let write = writeWell;
  const backups = await createBackups({
    settings: makesBackups ? { dir: folder, everyMs, keep } : undefined,
    readStore,
    instanceId,
    installationId,
    clock,
    clockProblem: () => undefined,
    write: (...order) => write(...order),
    logger: recordingLogger(lines),
    ...more,
  });
  return { ...backups, folder, turn: (signal = never) => backups.turn(signal), writes: (next) => void (write = next) };
}

async function daysPass(count: number, ...instances: readonly Instance[]): Promise<void> {
  for (let passed = 0; passed < count * day; passed += hour) {
    clock.advance(hour);
    for (const instance of instances) await instance.turn();
  }
}

test('the first is made at the start, then one each interval; old ones go only when a newer one is there', async () => {
  const one = await start('one');
  expect(one.last()).toBeUndefined();
  await one.turn();
  const names = [nameAt()];
  expect(await documentOf()).toMatchObject({ at: '2025-01-01T00:00:00.000Z', instance_id: 'one', file: names[0] });
  expect(one.last()).toEqual({ at: clock.now(), bytes: 7 });
  clock.advance(day - 1);
  await one.turn();
  expect(filesIn(one.folder)).toEqual(names);
  clock.advance(1);
  await one.turn();
  names.push(nameAt());
  expect(filesIn(one.folder)).toEqual(names);
  const strangers = [nameAt(0, another), `${nameAt(0, another)}.unverified`, 'notes', `${names[0]}.gpg`];
  for (const name of strangers) await writeFile(join(one.folder, name), '');
  await daysPass(5, one);
  expect(filesIn(one.folder)).toEqual(
    [...[2, 1, 0].map((ago) => nameAt(clock.now() - ago * day)), ...strangers].toSorted(),
  );
  one.writes(noSpace);
  const before = filesIn(one.folder);
  await daysPass(9, one);
  expect(filesIn(one.folder)).toEqual(before);
  one.writes(writeWell);
  clock.advance(hour);
  await one.turn();
  // A start makes none while the last is young.
  const made = filesIn(one.folder);
  expect(made).not.toEqual(before);
  await (await start('two')).turn();
  expect(filesIn(one.folder)).toEqual(made);
});

describe('two instances', () => {
  test('with one folder: one makes it, and the other when that one is gone', async () => {
    const [one, two] = [await start('one'), await start('two')];
    let writes = 0;
    const counted: BackupsDeps['write'] = (...order) => ((writes += 1), writeWell(...order));
    one.writes(async (...order) => {
      await two.turn();
      return counted(...order);
    });
    two.writes(counted);
    await one.turn();
    expect([writes, filesIn(one.folder)]).toEqual([1, [nameAt()]]);
    await daysPass(3, two);
    expect(writes).toBe(4);
    expect(one.last()?.at).not.toBe(two.last()?.at);
    await one.turn();
    expect(one.last()).toEqual(two.last());
  });

  test('with a folder each: each has one from its start, then either makes the next, and both know of it', async () => {
    const [one, two] = [await start('one', { dir: 'a' }), await start('two', { dir: 'b' })];
    for (const instance of [one, two]) await instance.turn();
    expect([filesIn(one.folder), filesIn(two.folder)]).toEqual([[nameAt()], [nameAt()]]);
    await daysPass(2, one, two);
    expect(filesIn(one.folder).length + filesIn(two.folder).length).toBe(4);
    expect(one.last()).toEqual(two.last());
  });

  test('one that was frozen past its lease makes no backup of what it wrote', async () => {
    const [one, two] = [await start('one'), await start('two', { dir: 'b' })];
    one.writes(async (...order) => {
      const written = await writeWell(...order);
      await readStore.leases.take('backup', { name: 'backup', holder: 'two', ttlMs: day, data: null });
      return written;
    });
    await one.turn();
    expect(filesIn(one.folder)).toEqual([]);
    await two.turn();
    expect(filesIn(two.folder)).toEqual([nameAt()]);
  });

  test('one whose folder fails leaves it to the other, tries again later, and says so once', async () => {
    const [one, two] = [await start('one', { dir: 'a' }), await start('two', { dir: 'b' })];
    one.writes(noSpace);
    await one.turn();
    await two.turn();
    expect([filesIn(one.folder), filesIn(two.folder)]).toEqual([[], [nameAt()]]);
    await daysPass(4, one, two);
    expect(filesIn(one.folder)).toEqual([]);
    expect(errors()).toHaveLength(1);
    expect(two.late()).toBeUndefined();
  });
});

describe('what was left', () => {
  test('half-written files of its own go at the start, and none is taken for a backup', async () => {
    const folder = join(root, 'backups');
    await mkdir(folder);
    const strangers = [`${nameAt(0, another)}.unverified.part`, `x${nameAt(0)}.unverified`];
    for (const name of [`${nameAt(0)}.unverified`, `${nameAt(0)}.unverified.part`, ...strangers])
      writeFileSync(join(folder, name), 'half');
    await (await start('one')).turn();
    expect(filesIn(folder)).toEqual([...strangers, nameAt()].toSorted());
  });

  test('a backup that an emptied read store does not know of counts by its name', async () => {
    const one = await start('one');
    await one.turn();
    const at = clock.now();
    ({ readStore } = storesInMemory());
    clock.advance(day / 2);
    const two = await start('two');
    await two.turn();
    expect(two.last()).toEqual({ at, bytes: 7 });
    expect(await documentOf()).toMatchObject({ instance_id: null, file: nameAt(at) });
    expect(filesIn(two.folder)).toHaveLength(1);
    clock.advance(day / 2);
    await two.turn();
    expect(filesIn(two.folder)).toHaveLength(2);
  });

  test('a folder that was emptied gets one at the next start', async () => {
    const one = await start('one');
    await one.turn();
    await rm(one.folder, { recursive: true });
    clock.advance(hour);
    await (await start('two')).turn();
    expect(filesIn(one.folder)).toEqual([nameAt()]);
  });

  test('a stop in the middle leaves nothing, and no error', async () => {
    const stop = new AbortController();
    const one = await start(
      'one',
      {},
      {
        write: async (path, _at, signal) => {
          await writeFile(`${path}.part`, 'half');
          stop.abort();
          signal.throwIfAborted();
          return { bytes: 0, events: 0 };
        },
      },
    );
    await one.turn(stop.signal);
    expect([filesIn(one.folder), errors()]).toEqual([[], []]);
    expect(await leaseOf(readStore.leases, 'backup', 'backup')).toBeUndefined();
  });
});

test('a backup was made even if the read store is away right behind it', async () => {
  const release = () => Promise.reject(new ServiceError('unavailable', 'the read store is away'));
  const away = { ...readStore, leases: { ...readStore.leases, release } };
  const one = await start('one', {}, { readStore: away });
  await one.turn();
  expect([errors(), one.last()]).toEqual([[], { at: clock.now(), bytes: 7 }]);
});

test('no lease of an instance that was killed stays behind the next start', async () => {
  const killed = { name: 'killed', holder: 'killed', ttlMs: -1, data: null };
  await readStore.leases.take('backup_makers', killed);
  await start('one');
  expect(await readStore.leases.renew('backup_makers', [killed])).toEqual(['killed']);
});

describe('late', () => {
  test('after two intervals without one, with the reason, on every instance while one makes backups', async () => {
    const [one, two] = [await start('one', { everyMs: hour }), await start('two', { makesBackups: false })];
    one.writes(noSpace);
    const late = async () => {
      for (const instance of [one, two]) await instance.turn();
      expect(two.late()).toEqual(one.late());
      return two.late();
    };
    expect(await late()).toBeUndefined();
    expect(two.last()).toEqual({ at: 0, bytes: 0 });
    clock.advance(2 * hour);
    expect(await late()).toBeUndefined();
    clock.advance(1);
    expect(await late()).toEqual({ ageMs: null, reason: 'no space is left in the folder of backups' });
    // A restart does not begin anew.
    const three = await start('three', { everyMs: hour });
    three.writes(noSpace);
    await three.turn();
    expect(three.late()).toBeDefined();
    await three.close();
    expect(errors().map(({ message }) => message)).toEqual(['no backup could be made', 'no backup could be made']);
    one.writes(writeWell);
    clock.advance(10 * 60_000);
    expect(await late()).toBeUndefined();
    await two.turn();
    expect(two.last()).toEqual({ at: clock.now() - 1, bytes: 7 });
    one.writes(async () => {
      throw new Error('what was written does not verify: line 7: not a JSON object');
    });
    await daysPass(1, one);
    expect(await late()).toMatchObject({ reason: expect.stringMatching(/^what was written does not verify/) });
    await one.close();
    await two.turn();
    expect([two.late(), two.last()?.bytes]).toEqual([undefined, 7]);
  });

  test('when the only instance that makes backups has died, though not when it was stopped', async () => {
    const [one, two] = [await start('one', { everyMs: hour }), await start('two', { makesBackups: false })];
    await one.turn();
    // As when its lease has ended.
    await readStore.leases.release('backup_makers', 'one', 'one');
    await daysPass(1, two);
    expect(two.late()).toEqual({ ageMs: day, reason: null });
    const again = await start('again', { everyMs: hour });
    await again.turn();
    await two.turn();
    expect(two.late()).toBeUndefined();
    await again.close();
    await daysPass(1, two);
    expect(two.late()).toBeUndefined();
  });

  test('a folder that is none is named without its path', async () => {
    writeFileSync(join(root, 'backups'), '');
    const one = await start('one', { everyMs: hour });
    await daysPass(1, one);
    expect(one.late()).toEqual({ ageMs: null, reason: 'the folder of backups cannot be used (EEXIST)' });
    expect(errors()).toHaveLength(1);
  });
});

describe('a clock that is wrong', () => {
  test('ahead, and back again: a backup of the future counts as none, and as the oldest', async () => {
    const one = await start('one');
    await one.turn();
    const real = clock.now();
    clock.advance(400 * day);
    await one.turn();
    const future = nameAt();
    clock.advance(real + hour - clock.now());
    await one.turn();
    expect(one.last()?.at).toBe(real);
    await daysPass(1, one);
    expect(filesIn(one.folder)).toEqual([real, real + day].map((at) => nameAt(at)).concat(future));
    await daysPass(1, one);
    expect(filesIn(one.folder)).toEqual([0, 1, 2].map((days) => nameAt(real + days * day)));
  });

  test('as its stores say: nothing is made and nothing removed', async () => {
    let problem: string | undefined = 'the clock of this instance is 90 s behind the newest event of the event store';
    const one = await start('one', {}, { clockProblem: () => problem });
    await daysPass(3, one);
    expect(filesIn(one.folder)).toEqual([]);
    expect(one.late()).toEqual({ ageMs: null, reason: problem });
    problem = undefined;
    await one.turn();
    expect([filesIn(one.folder), one.late()]).toEqual([[nameAt()], undefined]);
  });
});
