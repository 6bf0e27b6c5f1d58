/** The keyring: what it seals opens in its place alone, and its wrapped form with its master key alone. */
import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  createKeyring,
  digestOf,
  newKeyring,
  nextVersion,
  unwrapKeyring,
  withNewKey,
  wrapKeyring,
  type KeyringContent,
  type Place,
} from '../../src/security/keyring.js';
import { createMasterKey } from '../../src/security/master-key.js';
import {
  isSealedValue,
  keyIdOfBytes,
  openBytesWith,
  sealBytesWith,
  type SealedValue,
} from '../../src/security/sealing.js';
import { testKeyring, testKeyringContent } from '../support/keyring.js';
import { flipped } from '../support/noise-parties.js';

const place: Place = { stream: 'svc-fleet', resourceId: 'node-1', field: 'psk_verifier' };
const secret = Buffer.from('correct horse battery staple');
const tampered = { kind: 'refused', reason: 'tampered' };

describe('a sealed value', () => {
  it('opens with the same bytes, however long, as a value and as bytes', () => {
    const keyring = testKeyring();
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        const opened = { kind: 'opened', plaintext: Buffer.from(bytes) };
        expect(keyring.open(keyring.seal(bytes, place), place)).toEqual(opened);
        expect(keyring.openBytes(keyring.sealBytes(bytes, place), place)).toEqual(opened);
      }),
    );
  });

  it.each<[string, Partial<Place>]>([
    ['stream', { stream: 'svc-accounts' }],
    ['resource', { resourceId: 'node-2' }],
    ['field', { field: 'private_key' }],
  ])('does not open as another %s', (_, other) => {
    const keyring = testKeyring();
    const elsewhere = { ...place, ...other };
    expect(keyring.open(keyring.seal(secret, place), elsewhere)).toEqual(tampered);
    expect(keyring.openBytes(keyring.sealBytes(secret, place), elsewhere)).toEqual(tampered);
  });

  it('does not open in another installation, even with the same key', () => {
    const other = createKeyring({ ...testKeyringContent(), installationId: 'another' });
    expect(other.open(testKeyring().seal(secret, place), place)).toEqual(tampered);
  });

  it('does not open with any byte altered', () => {
    const keyring = testKeyring();
    const sealed = keyring.seal(secret, place);
    for (const part of ['nonce', 'ct'] as const) {
      const bytes = Buffer.from(sealed[part], 'base64url');
      for (let index = 0; index < bytes.length; index += 1) {
        const altered = { ...sealed, [part]: Buffer.from(flipped(bytes, index)).toString('base64url') };
        expect(keyring.open(altered, place)).toEqual(tampered);
      }
    }
    const bulk = keyring.sealBytes(secret, place);
    for (let index = 0; index < bulk.length; index += 1) {
      expect(keyring.openBytes(flipped(bulk, index), place).kind).not.toBe('opened');
      expect(keyring.openBytes(bulk.subarray(0, index), place).kind).not.toBe('opened');
    }
  });

  it('is never the same twice and shows nothing of its content', () => {
    const keyring = testKeyring();
    const [first, second] = [keyring.seal(secret, place), keyring.seal(secret, place)];
    expect(second.ct).not.toBe(first.ct);
    const stored = JSON.stringify([first, second]);
    expect(stored).not.toContain(secret.toString('base64url').slice(0, 8));
    expect(stored).not.toContain('horse');
  });

  it('is recognised by its form alone; anything else is refused without throwing', () => {
    const keyring = testKeyring();
    const sealed = keyring.seal(secret, place);
    expect(isSealedValue(sealed)).toBe(true);
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(isSealedValue(value)).toBe(false);
        expect(keyring.open(value as unknown as SealedValue, place)).toEqual({ kind: 'refused', reason: 'malformed' });
      }),
    );
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 80 }), (bytes) => {
        expect(keyring.openBytes(bytes, place).kind).not.toBe('opened');
      }),
    );
    expect(keyring.open({ ...sealed, nonce: 'AAAA' }, place)).toEqual({ kind: 'refused', reason: 'malformed' });
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
  ])('is not: %s', (_name, value) => {
    expect(isSealedValue(value)).toBe(false);
  });

  it('as bytes names its key, which has 1 to 255 bytes', () => {
    const key = randomBytes(32);
    const context = { installationId: 'i', ...place };
    for (const length of [1, 255]) {
      const sealed = sealBytesWith(key, 'k'.repeat(length), new Uint8Array(0), context);
      expect(keyIdOfBytes(sealed)).toBe('k'.repeat(length));
      // The tag is missing, which shows only when it is opened.
      const shortest = sealed.subarray(0, 2 + length + 24);
      expect(openBytesWith(key, shortest, context)).toEqual(tampered);
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
});

describe('a keyring', () => {
  it('seals with its newest key, and opens what each older one has sealed', () => {
    const first = newKeyring();
    const second = withNewKey(first);
    const [older, newer] = [createKeyring(first), createKeyring(second)];
    const [early, late] = [older.seal(secret, place), newer.seal(secret, place)];
    expect([early.key_id, late.key_id]).toEqual(second.sealing.map(({ id }) => id));
    for (const sealed of [early, late]) expect(newer.open(sealed, place).kind).toBe('opened');
    expect(older.open(late, place)).toEqual({ kind: 'refused', reason: 'unknown_key' });
    expect(second.version).toBe(first.version + 1);
  });

  it('without keys is none', () => {
    expect(() => createKeyring({ ...newKeyring(), sealing: [] })).toThrow(RangeError);
  });

  it('opens nothing any more once it is closed, and its keys are overwritten', () => {
    const content = newKeyring();
    const keyring = createKeyring(content);
    const sealed = keyring.seal(secret, place);
    keyring.close();
    expect(keyring.open(sealed, place)).toEqual({ kind: 'refused', reason: 'unknown_key' });
    expect(content.sealing[0]?.key).toEqual(Buffer.alloc(32));
  });
});

describe('a wrapped keyring', () => {
  const masterKey = createMasterKey(randomBytes(32));
  const content: KeyringContent = withNewKey(newKeyring());

  it('opens with its master key, and shows no key', () => {
    const wrapped = wrapKeyring(masterKey, content);
    expect(unwrapKeyring(masterKey, wrapped)).toEqual(content);
    for (const { key } of content.sealing) {
      expect(JSON.stringify(wrapped)).not.toContain(Buffer.from(key).toString('base64url').slice(0, 8));
    }
  });

  it('does not open with another master key, nor moved to another installation or version, nor altered', () => {
    const wrapped = wrapKeyring(masterKey, content);
    expect(unwrapKeyring(createMasterKey(randomBytes(32)), wrapped)).toBeUndefined();
    expect(unwrapKeyring(masterKey, { ...wrapped, installation_id: 'another' })).toBeUndefined();
    expect(unwrapKeyring(masterKey, { ...wrapped, version: wrapped.version + 1 })).toBeUndefined();
    const bytes = Buffer.from(wrapped.ct, 'base64url');
    for (const index of [0, bytes.length - 1]) {
      const ct = Buffer.from(flipped(bytes, index)).toString('base64url');
      expect(unwrapKeyring(masterKey, { ...wrapped, ct })).toBeUndefined();
    }
    expect(unwrapKeyring(masterKey, { ...wrapped, nonce: '' })).toBeUndefined();
  });

  it('has a digest of its own, also when the same keys are wrapped again', () => {
    const wraps = [
      wrapKeyring(masterKey, content),
      wrapKeyring(masterKey, content),
      wrapKeyring(masterKey, nextVersion(content)),
    ];
    expect(new Set(wraps.map(digestOf)).size).toBe(3);
    const [first] = wraps;
    expect(first && digestOf({ ...first })).toBe(first && digestOf(first));
  });
});
