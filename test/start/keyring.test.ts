/** The keyring in the log: made once, opened by the master key alone, never replaced by an older one. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { streams } from '../../src/kernel/event.js';
import { randomIds } from '../../src/kernel/ids.js';
import { createKeyring, nextVersion, withNewKey } from '../../src/security/keyring.js';
import type { MasterKey } from '../../src/security/master-key.js';
import {
  ensureKeyring,
  recordKeyring,
  replaceKeyring,
  storedKeyring,
  WrongMasterKeyError,
  type StoredKeyring,
} from '../../src/app/installation/keyring.js';
import { ensureServiceIdentity } from '../../src/app/installation/service-identity.js';
import { clearTextIn } from '../support/clear-text.js';
import { createCommandFixture, refusalOf, type CommandFixture } from '../support/command-fixture.js';
import { testMasterKey } from '../support/log-chain.js';
import { answerLost, notWritten, unavailable } from '../support/scripted-event-store.js';

let fixture: CommandFixture;
beforeEach(async () => {
  fixture = await createCommandFixture();
});
afterEach(() => fixture.close());

const options = (masterKey: MasterKey = testMasterKey()) => {
  const { clock, store: eventStore } = fixture;
  return { eventStore, masterKey, clock, ids: randomIds };
};
const typesOf = async (stream: string) => (await fixture.log(stream)).map(({ type }) => type);

/** What a start does. */
async function started(masterKey?: MasterKey): Promise<StoredKeyring> {
  const stored = await ensureKeyring(options(masterKey));
  const { logChain } = stored;
  await ensureServiceIdentity({ ...options(masterKey), logChain, keyring: createKeyring({ ...stored.content }) });
  await recordKeyring({ ...options(masterKey), logChain });
  return stored;
}

describe('the keyring', () => {
  it('is made by the first start and read by every later one', async () => {
    const { content } = await started();
    expect((await started()).content).toEqual(content);
    fixture = await fixture.reopened();
    expect((await started()).content).toEqual(content);
    expect(await typesOf(streams.keyring)).toEqual(['KeyringWrapped']);
    expect(await typesOf(streams.service)).toEqual(['ServiceIdentityCreated', 'KeyringRecorded']);
  });

  it('is one for all first starts at the same time', async () => {
    const all = await Promise.all([started(), started(), started()]);
    for (const { content } of all) expect(content).toEqual(all[0]?.content);
    expect(await typesOf(streams.service)).toEqual(['ServiceIdentityCreated', 'KeyringRecorded']);
  });

  it.each([
    ['is lost', [answerLost]],
    ['says unavailable, then that nothing was written', [unavailable, notWritten]],
  ])('is made once when the answer of an append %s', async (_, script) => {
    fixture.store.script(...script);
    const { content } = await started();
    expect((await started()).content).toEqual(content);
    expect(await typesOf(streams.keyring)).toEqual(['KeyringWrapped']);
  });

  it('is not made while the log cannot be read', async () => {
    fixture.store.failReads(1);
    expect((await refusalOf(ensureKeyring(options()))).code).toBe('unavailable');
  });

  it('does not open with another master key, and the refusal names both', async () => {
    await started();
    const refused = started(testMasterKey(8));
    await expect(refused).rejects.toThrow(WrongMasterKeyError);
    await expect(refused).rejects.toThrow(testMasterKey(8).keyId);
    await expect(refused).rejects.toThrow(testMasterKey().keyId);
  });

  it('is not made again for an installation whose keyring is gone', async () => {
    await started();
    const inner = fixture.store;
    const eventStore = {
      ...inner,
      read: (...[stream, range]: Parameters<typeof inner.read>) =>
        inner.read(stream === streams.keyring ? 'svc-nothing' : stream, range),
    };
    await expect(ensureKeyring({ ...options(), eventStore })).rejects.toThrow('the log lacks the keyring');
  });

  it('is wrapped by a new master key in one append, and the old one no longer opens it', async () => {
    const stored = await started();
    await replaceKeyring(options(testMasterKey(8)), stored, nextVersion(stored.content));
    await expect(started()).rejects.toThrow(WrongMasterKeyError);
    const again = await started(testMasterKey(8));
    expect(again.content).toEqual({ ...stored.content, version: 2 });
    expect((await typesOf(streams.service)).filter((type) => type === 'KeyringRecorded')).toHaveLength(2);
  });

  it('that was replaced by a kill between its two appends is recorded by the next start', async () => {
    const stored = await started();
    fixture.store.script(async (write) => write(), unavailable);
    const content = withNewKey(stored.content);
    await replaceKeyring(options(), stored, content).catch(() => undefined);
    expect((await started()).content).toEqual(content);
    const [, , recorded] = await fixture.log(streams.service);
    expect(recorded?.data).toMatchObject({ version: 2 });
  });

  it('is not replaced twice from the same version', async () => {
    const stored = await started();
    const [one, two] = [withNewKey(stored.content), withNewKey(stored.content)];
    await replaceKeyring(options(), stored, one);
    expect((await refusalOf(replaceKeyring(options(), stored, two))).code).toBe('unavailable');
    expect((await started()).content).toEqual(one);
  });

  it('of an earlier version, put back behind the newest, is refused', async () => {
    const stored = await started();
    const [first] = await fixture.log(streams.keyring);
    await replaceKeyring(options(), stored, withNewKey(stored.content));
    const { id: _id, ...event } = first!;
    await fixture.stores.eventStore.append(streams.keyring, 'any', [{ ...event, id: randomIds.next() }]);
    await expect(storedKeyring(options())).rejects.toThrow(/is version 1, and the installation has recorded version 2/);
  });

  it('of the recorded version and another content is refused', async () => {
    const stored = await started();
    await replaceKeyring(options(), stored, withNewKey(stored.content));
    const [, second] = await fixture.log(streams.keyring);
    // The same version, wrapped once more, as by somebody who has the master key and an old backup.
    const { wrapKeyring } = await import('../../src/security/keyring.js');
    const data = wrapKeyring(testMasterKey(), withNewKey(stored.content));
    const { id: _id, ...event } = second!;
    await fixture.stores.eventStore.append(streams.keyring, 'any', [{ ...event, data, id: randomIds.next() }]);
    await expect(storedKeyring(options())).rejects.toThrow(/with different content/);
  });

  it('shows no key in the log', async () => {
    const stored = await started();
    const keys = stored.content.sealing.map(({ key }) => key);
    expect(clearTextIn([await fixture.log(streams.keyring), await fixture.log(streams.service)], keys)).toEqual([]);
  });
});
