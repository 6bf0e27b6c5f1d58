import { afterEach, beforeEach, expect, test } from 'vitest';
import { openDataKeyStore } from '../../src/security/data-key-documents.js';
import type { ServiceIdentity } from '../../src/start/service-identity.js';
import { ensureServiceIdentity, WrongMasterKeyError } from '../../src/start/service-identity.js';
import { streams } from '../../src/kernel/event.js';
import type { Keyring } from '../../src/security/keyring.js';
import { serviceIdentityFrom, tokenKeysFrom } from '../../src/security/service-identity.js';
import { openKeyring } from '../support/accounts-fixture.js';
import type { CommandFixture } from '../support/command-fixture.js';
import { createCommandFixture, refusalOf } from '../support/command-fixture.js';
import { answerLost, notWritten, unavailable } from '../support/scripted-event-store.js';
import { clearTextIn } from '../support/clear-text.js';

let fixture: CommandFixture;
beforeEach(async () => {
  fixture = await createCommandFixture();
});
afterEach(() => fixture.close());

const start = async (keyring?: Keyring): Promise<ServiceIdentity> =>
  ensureServiceIdentity({ ...fixture.options, keyring: keyring ?? (await openKeyring(fixture)) });
const keyIds = async (): Promise<readonly string[]> => {
  const ids: string[] = [];
  for await (const id of (await openDataKeyStore(fixture.stores.readStore)).list()) ids.push(id);
  return ids;
};

test('the first start makes an identity, and every later one finds it', async () => {
  const made = await start();
  expect(serviceIdentityFrom(made.staticPrivate).publicKey.bytes).toEqual(new Uint8Array(made.staticPublic));
  expect(() => tokenKeysFrom(made.signingSeed)).not.toThrow();
  expect(await start()).toEqual(made);
  fixture = await fixture.reopened();
  expect(await start()).toEqual(made);
  expect((await fixture.log(streams.service)).length).toBe(1);
});

test('first starts at once agree on one identity, and keep no keys but its own', async () => {
  const started = await Promise.all([start(), start(), start()]);
  expect(started[1]).toEqual(started[0]);
  expect(started[2]).toEqual(started[0]);
  expect((await fixture.log(streams.service)).length).toBe(1);
  expect((await keyIds()).length).toBe(2);
});

test('a first start whose outcome is unknown agrees with what was written', async () => {
  fixture.store.script(answerLost);
  const made = await start();
  expect(await start()).toEqual(made);
  expect((await fixture.log(streams.service)).length).toBe(1);
});

test('a first start tries again while the store is away, and gives up in the end', async () => {
  fixture.store.script(unavailable, notWritten);
  const made = await start();
  expect(fixture.store.appends.length).toBe(3);
  expect(await start()).toEqual(made);
});

test('a log that can not be read stops the start', async () => {
  fixture.store.failReads(1);
  expect((await refusalOf(start())).code).toBe('unavailable');
});

test('another master key is refused with one clear sentence', async () => {
  await start();
  const error = await start(await openKeyring(fixture, 8)).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(WrongMasterKeyError);
  expect((error as Error).message).toMatch(/^the master key is not the one/);
});

test('a read store without the keys is refused with what to do', async () => {
  await start();
  const keyring = await openKeyring(fixture);
  for (const id of await keyIds()) await keyring.shred(id);
  const error = await start().catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(WrongMasterKeyError);
  expect((error as Error).message).toContain('restore the read store');
});

test('neither private key is in the log, and no error tells one', async () => {
  const made = await start();
  const secrets = [made.staticPrivate, made.signingSeed];
  expect(clearTextIn(await fixture.log(streams.service), secrets)).toEqual([]);
  // The search finds what is there.
  expect(clearTextIn(await fixture.log(streams.service), [made.staticPublic])).not.toEqual([]);
  const error = await start(await openKeyring(fixture, 8)).catch((thrown: unknown) => thrown);
  expect(clearTextIn([error], [...secrets, new Uint8Array(32).fill(8), new Uint8Array(32).fill(7)])).toEqual([]);
});
