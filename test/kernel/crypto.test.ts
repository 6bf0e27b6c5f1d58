/** Both libraries against published vectors and against each other; and the choice between them. */
import { execFile } from 'node:child_process';
import { createHash, createHmac, randomBytes } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { nodeCrypto } from '../../src/kernel/crypto/node.js';
import { loadSodium } from '../../src/kernel/crypto/sodium.js';
import { cryptoLibraries, overLibrary } from '../support/crypto-libraries.js';

const bytes = (text: string): Buffer => Buffer.from(text, 'hex');
const hex = (data: Uint8Array | undefined): string | undefined => data && Buffer.from(data).toString('hex');
const range = (from: number, to: number): Buffer => Buffer.from(Array.from({ length: to - from }, (_, i) => from + i));
const none = new Uint8Array(0);
const sunscreen = Buffer.from(
  "Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, sunscreen would be it.",
);

describe.each(cryptoLibraries)('cryptography over %s', async (library) => {
  const c = await overLibrary(library, () => import('../../src/kernel/crypto/crypto.js'));

  it('agrees as RFC 7748 says (sections 5.2 and 6.1)', () => {
    const agree = (scalar: string, u: string) => hex(c.agreeX25519(bytes(scalar), bytes(u)));
    expect(
      agree(
        'a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4',
        'e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c',
      ),
    ).toBe('c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552');
    // The highest bit of this u is set, and must be ignored.
    expect(
      agree(
        '4b66e9d4d1b4673c5ad22691957d6af5c11b6421e0ea01d42ca4169e7918ba0d',
        'e5210f12786811d3f4b7959d0538ae2c31dbe7106fc03c3efc4cd549c715a493',
      ),
    ).toBe('95cbde9476e8907d7aade45cb4b873f88b595a68799fa152e6f8f7647aac7957');
    expect(
      agree(
        '5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb',
        '8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a',
      ),
    ).toBe('4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742');
  });

  it('keeps to RFC 7748 over a thousand iterations (section 5.2)', () => {
    const base = `09${'00'.repeat(31)}`;
    const first = hex(c.agreeX25519(bytes(base), bytes(base)));
    expect(first).toBe('422c8e7a6227d7bca1350b3e2bb7279f7897b87bb6854b783c60e80311ae3079');
    expect(hex(c.x25519PairOf(bytes(base)).publicKey)).toBe(first);
    let [k, u]: [Uint8Array, Uint8Array] = [bytes(base), bytes(base)];
    for (let round = 0; round < 1000; round += 1) [k, u] = [c.agreeX25519(k, u) ?? none, k];
    expect(hex(k)).toBe('684cf59ba83309552800ef566f2f4d3c1c3887c49360e3875f2eb94d99532c51');
  });

  it('refuses public keys of small order, in any of their encodings', () => {
    const points = [
      '00'.repeat(32),
      `01${'00'.repeat(31)}`,
      'e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800',
      '5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157',
      `ec${'ff'.repeat(30)}7f`,
      `ed${'ff'.repeat(30)}7f`,
      `ee${'ff'.repeat(30)}7f`,
      `${'00'.repeat(31)}80`,
    ];
    for (const point of points) expect(c.agreeX25519(randomBytes(32), bytes(point)), point).toBeUndefined();
  });

  it('makes key pairs that agree, and takes only keys of 32 bytes', () => {
    const [a, b] = [c.generateX25519(), c.generateX25519()];
    expect(hex(a.privateKey)).not.toBe(hex(b.privateKey));
    expect(hex(c.agreeX25519(a.privateKey, b.publicKey))).toBe(hex(c.agreeX25519(b.privateKey, a.publicKey)));
    const given = randomBytes(32);
    const pair = c.x25519PairOf(given);
    given.fill(0);
    expect(hex(c.x25519PairOf(pair.privateKey).publicKey)).toBe(hex(pair.publicKey));
    for (const length of [0, 31, 33]) {
      expect(() => c.x25519PairOf(randomBytes(length))).toThrow(`expected 32 bytes, got ${length}`);
      expect(() => c.agreeX25519(randomBytes(length), a.publicKey)).toThrow(RangeError);
      expect(() => c.agreeX25519(a.privateKey, randomBytes(length))).toThrow(RangeError);
    }
  });

  it('seals as RFC 8439 says (section 2.8.2), and draft-irtf-cfrg-xchacha-03 (appendix A.3.1)', () => {
    const associated = bytes('50515253c0c1c2c3c4c5c6c7');
    const key = range(0x80, 0xa0);
    const short = c.chacha.seal(key, bytes('070000004041424344454647'), sunscreen, associated);
    expect(hex(short.subarray(0, 16))).toBe('d31a8d34648e60db7b86afbc53ef7ec2');
    expect(hex(short.subarray(-16))).toBe('1ae10b594f09e26a7e902ecbd0600691');
    const long = c.xchacha.seal(key, range(0x40, 0x58), sunscreen, associated);
    expect(hex(long.subarray(0, 16))).toBe('bd6d179d3e83d43b9576579493c0e939');
    expect(hex(long.subarray(-16))).toBe('c0875924c1c7987947deafd8780acf49');
  });

  it('opens only what was sealed, under the same key, nonce and associated data', () => {
    for (const [aead, nonceBytes] of [
      [c.chacha, 12],
      [c.xchacha, 24],
    ] as const) {
      const [key, nonce, associated] = [randomBytes(32), randomBytes(nonceBytes), randomBytes(9)];
      const sealed = aead.seal(key, nonce, sunscreen, associated);
      expect(hex(aead.open(key, nonce, sealed, associated))).toBe(hex(sunscreen));
      const altered = Uint8Array.from(sealed);
      altered[7] = (altered[7] ?? 0) ^ 1;
      expect(aead.open(key, nonce, altered, associated)).toBeUndefined();
      expect(aead.open(randomBytes(32), nonce, sealed, associated)).toBeUndefined();
      expect(aead.open(key, randomBytes(nonceBytes), sealed, associated)).toBeUndefined();
      expect(aead.open(key, nonce, sealed, none)).toBeUndefined();
      for (let length = 0; length < 17; length += 1) {
        expect(aead.open(key, nonce, sealed.subarray(0, length), associated)).toBeUndefined();
      }
      for (const length of [31, 33]) {
        const error = `key: expected 32 bytes, got ${length}`;
        expect(() => aead.seal(randomBytes(length), nonce, none, none)).toThrow(error);
        expect(() => aead.open(randomBytes(length), nonce, sealed, none)).toThrow(error);
      }
      for (const length of [nonceBytes - 1, nonceBytes + 1]) {
        const error = `nonce: expected ${nonceBytes} bytes, got ${length}`;
        expect(() => aead.seal(key, randomBytes(length), none, none)).toThrow(error);
        expect(() => aead.open(key, randomBytes(length), sealed, none)).toThrow(error);
      }
    }
  });

  it('opens into memory that nothing else uses', () => {
    const [key, nonce] = [randomBytes(32), randomBytes(12)];
    const opened = c.chacha.open(key, nonce, c.chacha.seal(key, nonce, sunscreen, none), none);
    expect(opened?.buffer.byteLength).toBe(sunscreen.length);
  });

  it('hashes parts one after another', () => {
    expect(hex(c.sha256())).toBe(createHash('sha256').digest('hex'));
    const parts = [randomBytes(3), none, randomBytes(200)];
    expect(hex(c.sha256(...parts))).toBe(createHash('sha256').update(Buffer.concat(parts)).digest('hex'));
    for (const keyBytes of [0, 20, 63, 64, 65, 131]) {
      const key = randomBytes(keyBytes);
      const expected = createHmac('sha256', key).update(Buffer.concat(parts)).digest('hex');
      expect(hex(c.hmacSha256(key, ...parts)), `a key of ${keyBytes} bytes`).toBe(expected);
    }
  });

  it('derives as RFC 5869 says (appendix A)', () => {
    const material = Buffer.alloc(22, 0x0b);
    expect(hex(c.hkdfSha256(range(0, 13), material, range(0xf0, 0xfa), 42))).toBe(
      '3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865',
    );
    expect(hex(c.hkdfSha256(range(0x60, 0xb0), range(0, 0x50), range(0xb0, 0x100), 82))).toBe(
      'b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c59045a99cac7827271cb41c65e590e09' +
        'da3275600c2f09b8367793a9aca3db71cc30c58179ec3e87c14c01d5c1f3434f1d87',
    );
    expect(hex(c.hkdfSha256(none, material, none, 42))).toBe(
      '8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8',
    );
  });
});

it('computes the same with both libraries, whatever the input', () => {
  const sodium = loadSodium();
  const some = fc.uint8Array({ maxLength: 3000 });
  const exactly = (length: number) => fc.uint8Array({ minLength: length, maxLength: length });
  fc.assert(
    fc.property(exactly(32), exactly(32), exactly(24), some, some, (key, other, nonce, plaintext, associated) => {
      expect(hex(sodium.x25519Agree(key, other))).toBe(hex(nodeCrypto.x25519Agree(key, other)));
      expect(hex(sodium.sha256(plaintext, associated))).toBe(hex(nodeCrypto.sha256(plaintext, associated)));
      for (const [cipher, length] of [
        ['chacha', 12],
        ['xchacha', 24],
      ] as const) {
        const input = [key, nonce.subarray(0, length)] as const;
        const sealed = sodium[cipher].seal(...input, plaintext, associated);
        expect(hex(sealed)).toBe(hex(nodeCrypto[cipher].seal(...input, plaintext, associated)));
        expect(hex(nodeCrypto[cipher].open(...input, sealed, associated))).toBe(hex(plaintext));
      }
    }),
  );
});

it('takes node:crypto where the addon is missing, and says why', { timeout: 60_000 }, async () => {
  const child = await promisify(execFile)(
    process.execPath,
    [
      '--require',
      fileURLToPath(new URL('../support/without-sodium.cjs', import.meta.url)),
      '--import',
      'tsx',
      '--input-type=module',
      '--eval',
      `const { cryptoLibrary, generateX25519, agreeX25519 } = await import('./src/kernel/crypto/crypto.ts');
       const [a, b] = [generateX25519(), generateX25519()];
       const agreed = [agreeX25519(a.privateKey, b.publicKey), agreeX25519(b.privateKey, a.publicKey)];
       console.log(JSON.stringify({ ...cryptoLibrary, same: Buffer.compare(...agreed) === 0 }));`,
    ],
    { cwd: fileURLToPath(new URL('../..', import.meta.url)) },
  );
  const { name, why, same } = JSON.parse(child.stdout) as { name: string; why: string; same: boolean };
  expect({ name, same }).toEqual({ name: 'node:crypto', same: true });
  expect(why).toContain('sodium-native');
});
