/** The first start creates the user `admin`, once, whatever instances start at the same time. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { tuning } from '../../src/commands/tuning.js';
import { streams } from '../../src/kernel/event.js';
import { initialPasswordFile } from '../../src/app/first-admin.js';
import { startAccounts, type AccountsInstance } from '../support/accounts-fixture.js';
import { clearTextIn } from '../support/clear-text.js';
import { createCommandFixture, refusalOf, type CommandFixture } from '../support/command-fixture.js';
import { answerLost } from '../support/scripted-event-store.js';

let fixture: CommandFixture;
let folders: string[];
let instances: AccountsInstance[];

beforeEach(async () => {
  fixture = await createCommandFixture();
  folders = [mkdtempSync(join(tmpdir(), 'admin-')), mkdtempSync(join(tmpdir(), 'admin-'))];
  // Both start before either has created a user.
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

test('the first start creates an admin whose password is in a file that only its owner can read', async () => {
  await instances[0]!.firstAdmin(folders[0]!);
  expect(statSync(fileOf(folders[0]!)).mode & 0o777).toBe(0o600);
  expect(readdirSync(folders[0]!)).toEqual([initialPasswordFile]);
  expect(await login(passwordIn(folders[0]!))).toMatchObject({ user: { username: 'admin', role: 'admin' } });
});

test('a later start creates nothing and leaves the file as it is', async () => {
  await instances[0]!.firstAdmin(folders[0]!);
  const password = passwordIn(folders[0]!);
  await instances[0]!.firstAdmin(folders[0]!);
  expect(passwordIn(folders[0]!)).toBe(password);
  expect((await fixture.log(streams.accounts)).length).toBe(1);
});

test('of two first starts on different folders one creates the admin, and only its file stays', async () => {
  await Promise.all(instances.map((instance, index) => instance.firstAdmin(folders[index]!)));
  expect((await fixture.log(streams.accounts)).length).toBe(1);
  const withFile = folders.filter((folder) => readdirSync(folder).length > 0);
  expect(withFile.length).toBe(1);
  expect(await login(passwordIn(withFile[0]!))).toMatchObject({ user: { username: 'admin' } });
});

test('two first starts on one folder agree on the password in the file', async () => {
  await Promise.all(instances.map((instance) => instance.firstAdmin(folders[0]!)));
  expect((await fixture.log(streams.accounts)).length).toBe(1);
  expect(readdirSync(folders[0]!)).toEqual([initialPasswordFile]);
  expect(await login(passwordIn(folders[0]!))).toMatchObject({ user: { username: 'admin' } });
});

test('an admin that is written after its start has given up has the password in the file', async () => {
  let late: (() => Promise<unknown>) | undefined;
  fixture.store.script(async (write) => {
    late = write;
    fixture.clock.advance(tuning.outcomeWaitMs);
    return { kind: 'unknown', cause: 'late' };
  });
  expect((await refusalOf(instances[0]!.firstAdmin(folders[0]!))).message).toContain('may have been');
  // The next start reads the log before the late write, and decides after it.
  fixture.store.script(async (write) => {
    await late?.();
    return write();
  });
  await instances[1]!.firstAdmin(folders[0]!);
  expect((await fixture.log(streams.accounts)).length).toBe(1);
  expect(await login(passwordIn(folders[0]!))).toMatchObject({ user: { username: 'admin' } });
});

test('an append whose answer is lost creates one admin', async () => {
  fixture.store.script(answerLost);
  await instances[0]!.firstAdmin(folders[0]!);
  expect(await login(passwordIn(folders[0]!))).toMatchObject({ user: { username: 'admin' } });
});

test('an empty file is replaced by one with a password', async () => {
  writeFileSync(fileOf(folders[0]!), '\n', { mode: 0o644 });
  await instances[0]!.firstAdmin(folders[0]!);
  expect(passwordIn(folders[0]!).length).toBeGreaterThanOrEqual(20);
  expect(statSync(fileOf(folders[0]!)).mode & 0o777).toBe(0o600);
});

test('with SVC_ADMIN_PASSWORD no file is written', async () => {
  await Promise.all(instances.map((instance, index) => instance.firstAdmin(folders[index]!, 'correct horse battery')));
  expect(folders.flatMap((folder) => readdirSync(folder))).toEqual([]);
  expect(await login('correct horse battery')).toMatchObject({ user: { username: 'admin' } });
  const log = await fixture.log(streams.accounts);
  expect(log.length).toBe(1);
  expect(clearTextIn(log, ['correct horse battery', '$argon2id$'])).toEqual([]);
});
