import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { initialPasswordFile } from '../../src/start/first-admin.js';
import { streams } from '../../src/kernel/event.js';
import type { AccountsInstance } from '../support/accounts-fixture.js';
import { startAccounts } from '../support/accounts-fixture.js';
import { clearTextIn } from '../support/clear-text.js';
import type { CommandFixture } from '../support/command-fixture.js';
import { createCommandFixture, refusalOf } from '../support/command-fixture.js';
import { answerLost } from '../support/scripted-event-store.js';
import { tuning } from '../../src/commands/tuning.js';

let fixture: CommandFixture;
let folders: string[];
let instances: AccountsInstance[];

beforeEach(async () => {
  fixture = await createCommandFixture();
  folders = [mkdtempSync(join(tmpdir(), 'admin-')), mkdtempSync(join(tmpdir(), 'admin-'))];
  // Both start before either has made a user.
  instances = [await startAccounts(fixture), await startAccounts(fixture)];
});
afterEach(async () => {
  for (const instance of instances) await instance.close();
  for (const folder of folders) rmSync(folder, { recursive: true });
  await fixture.close();
});

const fileOf = (folder: string): string => join(folder, initialPasswordFile);
const passwordIn = (folder: string): string => readFileSync(fileOf(folder), 'utf8').trim();
const login = (password: string) => instances[0]!.handlers.login('admin', password, '192.0.2.1', 'r');

test('the first start makes an admin whose password is in a file for the owner alone', async () => {
  await instances[0]!.firstAdmin(folders[0]!);
  expect(statSync(fileOf(folders[0]!)).mode & 0o777).toBe(0o600);
  expect(readdirSync(folders[0]!)).toEqual([initialPasswordFile]);
  expect(await login(passwordIn(folders[0]!))).toMatchObject({ user: { username: 'admin', role: 'admin' } });
});

test('a later start makes nothing and leaves the file alone', async () => {
  await instances[0]!.firstAdmin(folders[0]!);
  const password = passwordIn(folders[0]!);
  await instances[0]!.firstAdmin(folders[0]!);
  expect(passwordIn(folders[0]!)).toBe(password);
  expect((await fixture.log(streams.accounts)).length).toBe(1);
});

test('of two first starts in folders of their own one makes the admin, and only its file stays', async () => {
  await Promise.all(instances.map((instance, index) => instance.firstAdmin(folders[index]!)));
  expect((await fixture.log(streams.accounts)).length).toBe(1);
  const left = folders.filter((folder) => readdirSync(folder).length > 0);
  expect(left.length).toBe(1);
  expect(await login(passwordIn(left[0]!))).toMatchObject({ user: { username: 'admin' } });
});

test('of two first starts on one folder neither takes the password of the other away', async () => {
  await Promise.all(instances.map((instance) => instance.firstAdmin(folders[0]!)));
  expect((await fixture.log(streams.accounts)).length).toBe(1);
  expect(readdirSync(folders[0]!)).toEqual([initialPasswordFile]);
  expect(await login(passwordIn(folders[0]!))).toMatchObject({ user: { username: 'admin' } });
});

test('an admin that was written after its start had given up has the password of the file', async () => {
  let late: (() => Promise<unknown>) | undefined;
  fixture.store.script(async (write) => {
    late = write;
    fixture.clock.advance(tuning.outcomeWaitMs);
    return { kind: 'unknown', cause: 'late' };
  });
  expect((await refusalOf(instances[0]!.firstAdmin(folders[0]!))).message).toContain('may have been');
  // The next start looks before it is there, and decides after it has come.
  fixture.store.script(async (write) => {
    await late?.();
    return write();
  });
  await instances[1]!.firstAdmin(folders[0]!);
  expect((await fixture.log(streams.accounts)).length).toBe(1);
  expect(await login(passwordIn(folders[0]!))).toMatchObject({ user: { username: 'admin' } });
});

test('a lost answer makes one admin', async () => {
  fixture.store.script(answerLost);
  await instances[0]!.firstAdmin(folders[0]!);
  expect(await login(passwordIn(folders[0]!))).toMatchObject({ user: { username: 'admin' } });
});

test('a file that someone left empty is no password', async () => {
  writeFileSync(fileOf(folders[0]!), '\n', { mode: 0o644 });
  await instances[0]!.firstAdmin(folders[0]!);
  expect(passwordIn(folders[0]!).length).toBeGreaterThanOrEqual(20);
  expect(statSync(fileOf(folders[0]!)).mode & 0o777).toBe(0o600);
});

test('with SVC_ADMIN_PASSWORD there is no file', async () => {
  await Promise.all(instances.map((instance, index) => instance.firstAdmin(folders[index]!, 'correct horse battery')));
  expect(folders.flatMap((folder) => readdirSync(folder))).toEqual([]);
  expect(await login('correct horse battery')).toMatchObject({ user: { username: 'admin' } });
  const log = await fixture.log(streams.accounts);
  expect(log.length).toBe(1);
  expect(clearTextIn(log, ['correct horse battery', '$argon2id$'])).toEqual([]);
});
