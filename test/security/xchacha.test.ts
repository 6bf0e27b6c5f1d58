import { randomBytes } from 'node:crypto';
import { xchacha20poly1305 } from '@noble/ciphers/chacha.js';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { openXChaCha, sealXChaCha } from '../../src/security/xchacha.js';

const hex = (text: string): Uint8Array => Uint8Array.from(Buffer.from(text.replaceAll(/\s/g, ''), 'hex'));

describe('XChaCha20-Poly1305', () => {
  it('matches the published vector (draft-irtf-cfrg-xchacha-03, appendix A.3.1)', () => {
    const plaintext = Buffer.from(
      "Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, " +
        'sunscreen would be it.',
    );
    const sealed = sealXChaCha(
      hex('808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f'),
      hex('404142434445464748494a4b4c4d4e4f5051525354555657'),
      plaintext,
      hex('50515253c0c1c2c3c4c5c6c7'),
    );
    expect(Buffer.from(sealed.subarray(0, 16)).toString('hex')).toBe('bd6d179d3e83d43b9576579493c0e939');
    expect(Buffer.from(sealed.subarray(-16)).toString('hex')).toBe('c0875924c1c7987947deafd8780acf49');
  });

  it('agrees with another implementation on any input, both ways', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 3000 }), fc.uint8Array({ maxLength: 100 }), (plaintext, associated) => {
        const key = randomBytes(32);
        const nonce = randomBytes(24);
        const sealedByOther = xchacha20poly1305(key, nonce, associated).encrypt(plaintext);
        const sealed = sealXChaCha(key, nonce, plaintext, associated);
        expect([...sealed]).toEqual([...sealedByOther]);
        expect([...(openXChaCha(key, nonce, sealedByOther, associated) ?? [])]).toEqual([...plaintext]);
      }),
    );
  });

  it('refuses a key or a nonce of another length, when sealing and when opening', () => {
    const none = new Uint8Array(0);
    for (const [key, nonce, error] of [
      [31, 24, 'key: expected 32 bytes, got 31'],
      [33, 24, 'key: expected 32 bytes, got 33'],
      [32, 12, 'nonce: expected 24 bytes, got 12'],
      [32, 25, 'nonce: expected 24 bytes, got 25'],
    ] as const) {
      expect(() => sealXChaCha(randomBytes(key), randomBytes(nonce), none, none)).toThrow(error);
      expect(() => openXChaCha(randomBytes(key), randomBytes(nonce), randomBytes(16), none)).toThrow(error);
    }
  });

  it('opens nothing that is too short to have a tag', () => {
    for (let length = 0; length < 16; length += 1) {
      expect(openXChaCha(randomBytes(32), randomBytes(24), randomBytes(length), new Uint8Array(0))).toBeUndefined();
    }
  });
});
