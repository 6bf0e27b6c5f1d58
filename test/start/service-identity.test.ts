/** The keys of an installation: created once, shared by every start, readable with the master key only. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { streams } from '../../src/kernel/event.js';
import type { Keyring } from '../../src/security/keyring.js';
import { x25519PairOf } from '../../src/kernel/crypto/crypto.js';
import { tokenKeysFrom } from '../../src/security/tokens.js';
import { ensureServiceIdentity, type ServiceIdentity } from '../../src/app/installation/service-identity.js';
import { WrongMasterKeyError } from '../../src/app/installation/keyring.js';
import { testKeyring } from '../support/keyring.js';
import { createCommandFixture, refusalOf, type CommandFixture } from '../support/command-fixture.js';
import { answerLost, notWritten, unavailable } from '../support/scripted-event-store.js';
import { clearTextIn } from '../support/clear-text.js';

let fixture: CommandFixture;
beforeEach(async () => {
  fixture = await createCommandFixture();
});
afterEach(() => fixture.close());

const start = async (keyring?: Keyring): Promise<ServiceIdentity> =>
  ensureServiceIdentity({ ...fixture.options, keyring: keyring ?? testKeyring() });
test('the first start creates an identity, and every later start reads it', async () => {
  const identity = await start();
  expect(x25519PairOf(identity.staticPrivate).publicKey).toEqual(Buffer.from(identity.staticPublic));
  expect(() => tokenKeysFrom(identity.signingSeed)).not.toThrow();
  expect(await start()).toEqual(identity);
  fixture = await fixture.reopened();
  expect(await start()).toEqual(identity);
  expect((await fixture.log(streams.service)).length).toBe(1);
});

test('first starts at the same time agree on one identity', async () => {
  const started = await Promise.all([start(), start(), start()]);
  expect(started[1]).toEqual(started[0]);
  expect(started[2]).toEqual(started[0]);
  expect((await fixture.log(streams.service)).length).toBe(1);
});

test('a first start whose outcome is unknown agrees with what was written', async () => {
  fixture.store.script(answerLost);
  const identity = await start();
  expect(await start()).toEqual(identity);
  expect((await fixture.log(streams.service)).length).toBe(1);
});

test('a first start tries again while the event store is unavailable', async () => {
  fixture.store.script(unavailable, notWritten);
  const identity = await start();
  expect(fixture.store.appends.length).toBe(3);
  expect(await start()).toEqual(identity);
});

test('a log that cannot be read stops the start', async () => {
  fixture.store.failReads(1);
  expect((await refusalOf(start())).code).toBe('unavailable');
});

test('an identity that another keyring has sealed is refused', async () => {
  await start();
  await expect(start(testKeyring(8))).rejects.toThrow(WrongMasterKeyError);
});

test('neither private key is in the log or in an error message', async () => {
  const identity = await start();
  const secrets = [identity.staticPrivate, identity.signingSeed];
  expect(clearTextIn(await fixture.log(streams.service), secrets)).toEqual([]);
  // The search itself works: the public key is found.
  expect(clearTextIn(await fixture.log(streams.service), [identity.staticPublic])).not.toEqual([]);
  const error = await start(testKeyring(8)).catch((thrown: unknown) => thrown);
  expect(clearTextIn([error], [...secrets, new Uint8Array(32).fill(8), new Uint8Array(32).fill(7)])).toEqual([]);
});

test('the keys of tokens come from a seed of 32 bytes, and from no other', () => {
  const { publicKey } = tokenKeysFrom(new Uint8Array(32));
  expect(publicKey.asymmetricKeyType).toBe('ed25519');
  for (const bytes of [31, 33]) expect(() => tokenKeysFrom(new Uint8Array(bytes))).toThrow(RangeError);
});
