import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createKeyring } from '../../src/security/keyring.js';
import { createMasterKey } from '../../src/security/master-key.js';
import { newDataKey, unwrapDataKey, wrapDataKey } from '../../src/security/data-keys.js';
import type { WrappedKey } from '../../src/security/data-keys.js';
import { rewrapDataKeys } from '../../src/security/rewrap.js';
import { isSealedValue, keyIdOfBytes, openBytesWith, sealBytesWith } from '../../src/security/sealing.js';
import type { SealContext, SealedValue } from '../../src/security/sealing.js';
import { createMemoryDataKeyStore } from '../support/memory-data-key-store.js';
import { flipped } from '../support/noise-parties.js';

const context: SealContext = { stream: 'svc-fleet', resourceId: 'node-1', field: 'psk_verifier' };

function setup(maxCachedKeys?: number) {
  const masterKey = createMasterKey(Uint8Array.from(randomBytes(32)));
  const store = createMemoryDataKeyStore();
  const open = (key = masterKey) =>
    createKeyring({ masterKey: key, store, ...(maxCachedKeys === undefined ? {} : { maxCachedKeys }) });
  return { masterKey, store, keyring: open(), reopened: open };
}

const openedBytes = (result: { kind: string; plaintext?: Uint8Array }): number[] => {
  if (result.kind !== 'opened' || result.plaintext === undefined)
    throw new Error(`not opened: ${JSON.stringify(result)}`);
  return [...result.plaintext];
};

describe('a sealed value', () => {
  it('opens to the same bytes after JSON and a restart, whatever the bytes', async () => {
    const { keyring, reopened } = setup();
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 300 }), async (plaintext) => {
        const sealed = await keyring.seal(plaintext, context);
        expect(Object.keys(sealed).sort()).toEqual(['alg', 'ct', 'key_id', 'nonce']);
        const read = JSON.parse(JSON.stringify(sealed)) as SealedValue;
        expect(openedBytes(keyring.openSync(read, context))).toEqual([...plaintext]);
        expect(openedBytes(await reopened().open(read, context))).toEqual([...plaintext]);
        const bulk = await keyring.sealBytes(plaintext, context, sealed.key_id);
        expect(openedBytes(await keyring.openBytes(bulk, context))).toEqual([...plaintext]);
        expect(openedBytes(await reopened().openBytes(bulk, context))).toEqual([...plaintext]);
      }),
      { numRuns: 40 },
    );
  });

  it('opens in no other stream, resource or field, even when their names concatenate to the same text', async () => {
    const { keyring } = setup();
    const sealed = await keyring.seal(Buffer.from('secret'), context);
    const bulk = await keyring.sealBytes(Buffer.from('secret'), context, sealed.key_id);
    const elsewhere: SealContext[] = [
      { ...context, stream: 'svc-accounts' },
      { ...context, resourceId: 'node-2' },
      { ...context, field: 'other' },
      { stream: 'svc-fleetnode-1', resourceId: '', field: 'psk_verifier' },
      { stream: 'svc-fleet', resourceId: 'node-1psk', field: '_verifier' },
      { stream: 'svc-fleet|node-1', resourceId: 'psk_verifier', field: '' },
    ];
    for (const other of elsewhere) {
      expect(await keyring.open(sealed, other)).toEqual({ kind: 'refused', reason: 'tampered' });
      expect(await keyring.openBytes(bulk, other)).toEqual({ kind: 'refused', reason: 'tampered' });
    }
  });

  it('does not open with any byte altered', async () => {
    const { keyring } = setup();
    const sealed = await keyring.seal(Buffer.from('secret'), context);
    for (const part of ['nonce', 'ct'] as const) {
      const bytes = Buffer.from(sealed[part], 'base64url');
      for (let index = 0; index < bytes.length; index += 1) {
        const altered = { ...sealed, [part]: Buffer.from(flipped(bytes, index)).toString('base64url') };
        expect(await keyring.open(altered, context)).toEqual({ kind: 'refused', reason: 'tampered' });
      }
    }
    const bulk = await keyring.sealBytes(Buffer.from('secret'), context, sealed.key_id);
    for (let index = 0; index < bulk.length; index += 1) {
      expect((await keyring.openBytes(flipped(bulk, index), context)).kind).not.toBe('opened');
    }
    for (let length = 0; length < bulk.length; length += 1) {
      expect((await keyring.openBytes(bulk.subarray(0, length), context)).kind).not.toBe('opened');
    }
  });

  it('is never the same twice and shows nothing of its content', async () => {
    const { keyring, store } = setup();
    const secret = Buffer.from('correct horse battery staple');
    const first = await keyring.seal(secret, context);
    const second = await keyring.seal(secret, context, first.key_id);
    expect(second.key_id).toBe(first.key_id);
    expect(second.ct).not.toBe(first.ct);
    const stored = JSON.stringify([first, second, [...store.entries]]);
    expect(stored).not.toContain(secret.toString('base64url').slice(0, 8));
    expect(stored).not.toContain('horse');
  });

  it('is refused under another master key, with a reason and no secret', async () => {
    const { keyring, reopened } = setup();
    const sealed = await keyring.seal(Buffer.from('hunter2hunter2'), context);
    const other = reopened(createMasterKey(Uint8Array.from(randomBytes(32))));
    expect(await other.open(sealed, context)).toEqual({ kind: 'refused', reason: 'wrong_master_key' });
    await expect(other.seal(Buffer.from('hunter2hunter2'), context, sealed.key_id)).rejects.toThrow(
      `data key ${sealed.key_id} cannot be unwrapped: wrong_master_key`,
    );
  });

  it('does not open once its data key is shredded, before and after a restart', async () => {
    const { keyring, reopened, store } = setup();
    const sealed = await keyring.seal(Buffer.from('secret'), context);
    const bulk = await keyring.sealBytes(Buffer.from('secret'), context, sealed.key_id);
    const neighbour = await keyring.seal(Buffer.from('kept'), { ...context, resourceId: 'node-2' });
    await keyring.shred(sealed.key_id);
    expect(await keyring.open(sealed, context)).toEqual({ kind: 'shredded' });
    expect(keyring.openSync(sealed, context)).toEqual({ kind: 'not_cached' });
    expect(await reopened().openBytes(bulk, context)).toEqual({ kind: 'shredded' });
    expect(store.entries.has(sealed.key_id)).toBe(false);
    expect((await reopened().open(neighbour, { ...context, resourceId: 'node-2' })).kind).toBe('opened');
    const anew = await keyring.seal(Buffer.from('secret'), context, sealed.key_id);
    expect(anew.key_id).not.toBe(sealed.key_id);
  });

  it('stays shredded when a lookup is under way during the shred', async () => {
    const { masterKey, store, keyring } = setup();
    const sealed = await keyring.seal(Buffer.from('secret'), context);
    let release = (): void => undefined;
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    const slow = createKeyring({
      masterKey,
      store: {
        ...store,
        async get(keyId) {
          const wrapped = await store.get(keyId);
          await gate;
          return wrapped;
        },
      },
    });
    const opening = slow.open(sealed, context);
    await slow.shred(sealed.key_id);
    release();
    await opening;
    expect(slow.openSync(sealed, context)).toEqual({ kind: 'not_cached' });
  });

  it("is not sealed under another resource's key", async () => {
    const { keyring } = setup();
    const keyId = await keyring.createKey('node-2');
    await expect(keyring.seal(Buffer.from('secret'), context, keyId)).rejects.toThrow('another resource');
  });

  it('does not open when its wrapped key was moved to another id or resource', async () => {
    const { keyring, reopened, store } = setup();
    const a = await keyring.seal(Buffer.from('a'), context);
    const b = await keyring.seal(Buffer.from('b'), { ...context, resourceId: 'node-2' });
    const wrapped = store.entries.get(a.key_id)!;
    store.entries.set(b.key_id, wrapped);
    store.entries.set(a.key_id, { ...wrapped, resource_id: 'node-2' });
    expect(await reopened().open(a, context)).toEqual({ kind: 'refused', reason: 'wrong_master_key' });
    expect(await reopened().open(b, { ...context, resourceId: 'node-2' })).toEqual({
      kind: 'refused',
      reason: 'wrong_master_key',
    });
  });

  it('keeps no more keys in memory than it may, and none after a close', async () => {
    const { keyring, store } = setup(2);
    const sealed = [];
    for (const resourceId of ['a', 'b', 'c']) {
      sealed.push(await keyring.seal(Buffer.from(resourceId), { ...context, resourceId }));
    }
    const [a, b, c] = sealed as [SealedValue, SealedValue, SealedValue];
    expect(keyring.openSync(a, { ...context, resourceId: 'a' })).toEqual({ kind: 'not_cached' });
    expect(keyring.openSync(b, { ...context, resourceId: 'b' }).kind).toBe('opened');
    const before = store.reads();
    expect((await keyring.open(a, { ...context, resourceId: 'a' })).kind).toBe('opened');
    expect(store.reads()).toBe(before + 1);
    expect(keyring.openSync(c, { ...context, resourceId: 'c' })).toEqual({ kind: 'not_cached' });
    keyring.close();
    expect(keyring.openSync(a, { ...context, resourceId: 'a' })).toEqual({ kind: 'not_cached' });
  });

  it('is recognised by its form alone; anything else is refused without throwing', async () => {
    const { keyring } = setup();
    const sealed = await keyring.seal(Buffer.from('x'), context);
    expect(isSealedValue(sealed)).toBe(true);
    await fc.assert(
      fc.asyncProperty(fc.jsonValue(), async (value) => {
        expect(isSealedValue(value)).toBe(false);
        expect((await keyring.open(value as unknown as SealedValue, context)).kind).toBe('refused');
      }),
    );
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 80 }), async (bytes) => {
        expect((await keyring.openBytes(bytes, context)).kind).not.toBe('opened');
      }),
    );
    expect((await keyring.open({ ...sealed, nonce: 'AAAA' }, context)).kind).toBe('refused');
  });

  it.each<[string, unknown]>([
    ['nothing', undefined],
    ['null', null],
    ['a text', 'xc20p'],
    ['another algorithm', { alg: 'xc20', key_id: 'k', nonce: 'AA', ct: 'AA' }],
    ['no algorithm', { key_id: 'k', nonce: 'AA', ct: 'AA' }],
    ['a number as key id', { alg: 'xc20p', key_id: 5, nonce: 'AA', ct: 'AA' }],
    ['a number as nonce', { alg: 'xc20p', key_id: 'k', nonce: 5, ct: 'AA' }],
    ['a number as ciphertext', { alg: 'xc20p', key_id: 'k', nonce: 'AA', ct: 5 }],
    ['padding', { alg: 'xc20p', key_id: 'k', nonce: 'AA==', ct: 'AA' }],
    ['a character of the other base64', { alg: 'xc20p', key_id: 'k', nonce: 'AA', ct: 'A+' }],
    ['no ciphertext', { alg: 'xc20p', key_id: 'k', nonce: 'AA' }],
  ])('is not: %s', async (_name, value) => {
    const { keyring } = setup();
    const malformed = { kind: 'refused', reason: 'malformed' };
    expect(isSealedValue(value)).toBe(false);
    expect(await keyring.open(value as SealedValue, context)).toEqual(malformed);
    expect(keyring.openSync(value as SealedValue, context)).toEqual(malformed);
  });

  it('as bytes names its key, which has 1 to 255 bytes', () => {
    const key = randomBytes(32);
    for (const length of [1, 255]) {
      const sealed = sealBytesWith(key, 'k'.repeat(length), new Uint8Array(0), context);
      expect(keyIdOfBytes(sealed)).toBe('k'.repeat(length));
      // The tag is missing, which shows only when it is opened.
      const shortest = sealed.subarray(0, 2 + length + 24);
      expect(keyIdOfBytes(shortest)).toBe('k'.repeat(length));
      expect(openBytesWith(key, shortest, context)).toEqual({ kind: 'refused', reason: 'tampered' });
      for (const malformed of [
        shortest.subarray(0, -1),
        Buffer.concat([Buffer.of(2), sealed.subarray(1)]),
        Buffer.concat([Buffer.of(1, 0), sealed.subarray(2)]),
        Buffer.of(1),
        Buffer.of(),
      ]) {
        expect(keyIdOfBytes(malformed)).toBeUndefined();
        expect(openBytesWith(key, malformed, context)).toEqual({ kind: 'refused', reason: 'malformed' });
      }
    }
    for (const length of [0, 256]) {
      expect(() => sealBytesWith(key, 'k'.repeat(length), new Uint8Array(0), context)).toThrow(`got ${length}`);
    }
  });

  it('is opened from memory once its key is there', async () => {
    const { keyring, store } = setup();
    const sealed = await keyring.seal(Buffer.from('secret'), context);
    const before = store.reads();
    await keyring.open(sealed, context);
    expect(store.reads()).toBe(before);
  });

  it('as bytes of another form is refused, and the store is not asked', async () => {
    const { keyring, store } = setup();
    expect(await keyring.openBytes(Buffer.of(9, 9, 9), context)).toEqual({ kind: 'refused', reason: 'malformed' });
    expect(store.reads()).toBe(0);
  });

  it('stops a rotation of the master key when its data key is wrapped by neither, or labelled wrong', async () => {
    const to = createMasterKey(randomBytes(32));
    for (const change of [
      (wrapped: WrappedKey): WrappedKey => ({ ...wrapped, master_key_id: to.keyId }),
      (wrapped: WrappedKey): WrappedKey => ({ ...wrapped, ct: wrapped.nonce }),
      (): WrappedKey => ({ ...wrapDataKey(to, 'dk_1', 'node-1', newDataKey()), master_key_id: 'mk_other' }),
      (): WrappedKey => ({ ...wrapDataKey(to, 'dk_2', 'node-1', newDataKey()), resource_id: 'node-2' }),
    ]) {
      const { masterKey, store } = setup();
      await store.put('dk_1', change(wrapDataKey(createMasterKey(randomBytes(32)), 'dk_1', 'node-1', newDataKey())));
      const label = store.entries.get('dk_1')?.master_key_id;
      expect(await rewrapDataKeys(store, masterKey, to)).toEqual({
        ok: false,
        error: `data key dk_1 is wrapped by ${label}, not ${masterKey.keyId}`,
      });
    }
  });

  it('does not stop a rotation when its data key is shredded meanwhile', async () => {
    const { masterKey, store, keyring } = setup();
    await keyring.createKey('node-1');
    const listing = {
      ...store,
      async *list() {
        yield 'dk_gone';
        yield* store.list();
      },
    };
    const to = createMasterKey(randomBytes(32));
    expect(await rewrapDataKeys(listing, masterKey, to)).toEqual({ ok: true, value: { rewrapped: 1, kept: 0 } });
  });

  it('has a data key of 32 bytes: nothing else that was wrapped is one', () => {
    const { masterKey } = setup();
    for (const length of [0, 31, 33]) {
      expect(unwrapDataKey(masterKey, 'k', wrapDataKey(masterKey, 'k', 'r', randomBytes(length)))).toBeUndefined();
    }
    expect(unwrapDataKey(masterKey, 'k', wrapDataKey(masterKey, 'k', 'r', newDataKey()))).toHaveLength(32);
  });

  it('survives a rotation of the master key, even an interrupted one', async () => {
    const { masterKey, store, keyring, reopened } = setup();
    const sealed: SealedValue[] = [];
    for (let index = 0; index < 10; index += 1) sealed.push(await keyring.seal(Buffer.of(index), context));
    const next = createMasterKey(Uint8Array.from(randomBytes(32)));
    let puts = 0;
    const failing = {
      ...store,
      async put(keyId: string, wrapped: Parameters<typeof store.put>[1]) {
        puts += 1;
        if (puts > 4) throw new Error('disk full');
        await store.put(keyId, wrapped);
      },
    };
    await expect(rewrapDataKeys(failing, masterKey, next)).rejects.toThrow('disk full');
    expect(await rewrapDataKeys(store, masterKey, next)).toEqual({ ok: true, value: { rewrapped: 6, kept: 4 } });
    for (const [index, value] of sealed.entries()) {
      expect(openedBytes(await reopened(next).open(value, context))).toEqual([index]);
    }
    expect(await reopened(masterKey).open(sealed[0]!, context)).toEqual({
      kind: 'refused',
      reason: 'wrong_master_key',
    });
    const stranger = createMasterKey(Uint8Array.from(randomBytes(32)));
    expect((await rewrapDataKeys(store, stranger, masterKey)).ok).toBe(false);
  });
});
