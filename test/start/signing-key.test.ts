/** The key that signs tokens is replaced, and running instances take the new one up. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { streams } from '../../src/kernel/event.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { followInMemory } from '../../src/projections/log-follower.js';
import type { Keyring } from '../../src/security/keyring.js';
import { createTokens, type Tokens } from '../../src/security/tokens.js';
import { ensureServiceIdentity } from '../../src/app/installation/service-identity.js';
import { foldSigningKey, replaceSigningKey } from '../../src/app/installation/signing-key.js';
import { testKeyring } from '../support/keyring.js';
import { clearTextIn } from '../support/clear-text.js';
import { createCommandFixture, refusalOf, type CommandFixture } from '../support/command-fixture.js';
import { until } from '../support/delivery-fixture.js';
import { answerLost, notWritten, unavailable } from '../support/scripted-event-store.js';

interface Instance {
  readonly tokens: Tokens;
  problems(): readonly string[];
}

const subject = { sub: 'u', role: 'admin', ver: 'of the password' };
let fixture: CommandFixture;
let keyring: Keyring;
let closing: (() => Promise<void>)[];

beforeEach(async () => {
  fixture = await createCommandFixture();
  keyring = testKeyring();
  closing = [];
});
afterEach(async () => {
  await Promise.all(closing.map((close) => close()));
  await fixture.close();
});

const options = () => ({ ...fixture.options, keyring });

async function instance(keys: Keyring = keyring): Promise<Instance> {
  const current = await ensureServiceIdentity({ ...fixture.options, keyring: keys });
  const tokens = createTokens({ seed: current.signingSeed, ttlSeconds: 3_600, clock: fixture.clock });
  const logger = silentLogger;
  const { logChain } = fixture.options;
  const fold = foldSigningKey({ keyring: keys, logChain, tokens, at: current.at, logger });
  closing.push(followInMemory({ eventStore: fixture.store, logger, folds: [fold] }).close);
  return { tokens, problems: fold.problems };
}

const accepts = ({ tokens }: Instance, token: string): boolean => tokens.verify(token) !== undefined;

test('every running instance refuses the tokens of the replaced key and accepts those of the new one', async () => {
  const [first, second] = [await instance(), await instance()];
  const { token } = first.tokens.issue(subject);
  expect([accepts(first, token), accepts(second, token)]).toEqual([true, true]);
  await replaceSigningKey(options());
  await until(() => !accepts(first, token) && !accepts(second, token), 'both end the token');
  await until(() => accepts(second, first.tokens.issue(subject).token), 'both sign by the new key');
  expect([first.problems(), second.problems()]).toEqual([[], []]);
});

test('a start after a replacement uses the newest key', async () => {
  const { token } = (await instance()).tokens.issue(subject);
  await replaceSigningKey(options());
  const publicKey = await replaceSigningKey(options());
  const started = await instance();
  expect(accepts(started, token)).toBe(false);
  expect(accepts(started, started.tokens.issue(subject).token)).toBe(true);
  expect((await ensureServiceIdentity(options())).at.signingKey?.signing_public).toBe(publicKey);
});

test('a token that was valid when the instance started stays valid until the key is replaced', async () => {
  await instance();
  await replaceSigningKey(options());
  const started = await instance();
  const { token } = started.tokens.issue(subject);
  await replaceSigningKey(options());
  await until(() => !accepts(started, token), 'the replacement ends it');
});

test.each([
  ['is lost', answerLost],
  ['says unavailable', unavailable],
  ['is open, and nothing was written', notWritten],
])('a replacement whose answer %s replaces the key once', async (_, script) => {
  await instance();
  fixture.store.script(script);
  const publicKey = await replaceSigningKey(options());
  expect((await fixture.log(streams.service)).map(({ type }) => type)).toEqual([
    'ServiceIdentityCreated',
    'TokenSigningKeyReplaced',
  ]);
  expect((await ensureServiceIdentity(options())).at.signingKey?.signing_public).toBe(publicKey);
});

test('replacements at the same time all succeed, and the last one in the log counts', async () => {
  const running = await instance();
  await Promise.all([replaceSigningKey(options()), replaceSigningKey(options()), replaceSigningKey(options())]);
  const started = await instance();
  await until(() => accepts(running, started.tokens.issue(subject).token), 'the running instance has the last key');
  expect(running.problems()).toEqual([]);
});

test('an instance that cannot read the new key accepts no token and says so, until a key follows that it can read', async () => {
  const running = await instance();
  const { token } = running.tokens.issue(subject);
  // Another keyring seals what this instance cannot open.
  await replaceSigningKey({ ...fixture.options, keyring: testKeyring(8) });
  await until(() => running.problems().length === 1, 'the instance says so');
  expect(running.problems()[0]).toMatch(/^the new key that signs tokens cannot be read: .*the service identity/);
  expect([accepts(running, token), accepts(running, running.tokens.issue(subject).token)]).toEqual([false, true]);
  await replaceSigningKey(options());
  await until(() => running.problems().length === 0, 'the instance has the newest key');
});

test('stores on which the service has never started have no key to replace', async () => {
  expect((await refusalOf(replaceSigningKey(options()))).code).toBe('conflict');
});

test('no private key is in the log', async () => {
  const before = (await ensureServiceIdentity(options())).signingSeed;
  await replaceSigningKey(options());
  const after = (await ensureServiceIdentity(options())).signingSeed;
  expect(clearTextIn(await fixture.log(streams.service), [before, after])).toEqual([]);
});
