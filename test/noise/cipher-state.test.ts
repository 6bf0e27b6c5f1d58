import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { CipherState } from '../../src/channel/noise/cipher-state.js';
import { decryptAead, encryptAead } from '../../src/channel/noise/aead.js';
import { flipped, valueOf } from '../support/noise-parties.js';
import { oracleEncrypt } from '../support/noise-oracle.js';

const directions = () => {
  const key = randomBytes(32);
  return { sender: new CipherState(Uint8Array.from(key)), receiver: new CipherState(Uint8Array.from(key)) };
};

describe('a cipher state', () => {
  it('accepts only the next sequence, when encrypting and when decrypting', () => {
    const { sender, receiver } = directions();
    expect(sender.encrypt(1, randomBytes(4))).toEqual({ ok: false, error: 'wrong_sequence' });
    const first = valueOf(sender.encrypt(0, randomBytes(4)));
    expect(sender.encrypt(0, randomBytes(4))).toEqual({ ok: false, error: 'wrong_sequence' });
    expect(receiver.decrypt(1, first)).toEqual({ ok: false, error: 'wrong_sequence' });
    expect(receiver.decrypt(2n ** 64n - 1n, first)).toEqual({ ok: false, error: 'wrong_sequence' });
    expect(receiver.decrypt(-1, first)).toEqual({ ok: false, error: 'wrong_sequence' });
    expect(receiver.decrypt(0, first).ok).toBe(true);
    expect(receiver.decrypt(0, first)).toEqual({ ok: false, error: 'wrong_sequence' });
    expect(receiver.nextSequence).toBe(1);
  });

  it('does not decrypt a message under another sequence', () => {
    const { sender, receiver } = directions();
    valueOf(sender.encrypt(0, randomBytes(4)));
    const second = valueOf(sender.encrypt(1, randomBytes(4)));
    expect(receiver.decrypt(0, second)).toEqual({ ok: false, error: 'bad_tag' });
  });

  it('refuses altered and truncated messages', () => {
    const { sender, receiver } = directions();
    const message = valueOf(sender.encrypt(0, randomBytes(30)));
    for (let index = 0; index < message.length; index += 1) {
      expect(receiver.decrypt(0, flipped(message, index)).ok).toBe(false);
    }
    for (let length = 0; length < message.length; length += 1) {
      const error = length < 16 ? 'wrong_length' : 'bad_tag';
      expect(receiver.decrypt(0, message.subarray(0, length))).toEqual({ ok: false, error });
    }
    expect(receiver.decrypt(0, message).ok).toBe(true);
  });

  it('carries at most 65,519 bytes', () => {
    const { sender, receiver } = directions();
    expect(sender.encrypt(0, new Uint8Array(65_520))).toEqual({ ok: false, error: 'wrong_length' });
    const message = valueOf(sender.encrypt(0, new Uint8Array(65_519)));
    expect(message.length).toBe(65_535);
    expect(receiver.decrypt(0, new Uint8Array(65_536))).toEqual({ ok: false, error: 'wrong_length' });
    expect(valueOf(receiver.decrypt(0, message)).length).toBe(65_519);
  });

  it('decrypts nothing that is too short for a tag', () => {
    for (let length = 0; length < 16; length += 1) {
      expect(decryptAead(randomBytes(32), 0, randomBytes(length))).toBeUndefined();
    }
  });

  it('uses all 64 bits of the nonce counter', () => {
    const key = randomBytes(32);
    for (const counter of [0, 1, 255, 2 ** 32 - 1, 2 ** 32, 2 ** 40 + 7, Number.MAX_SAFE_INTEGER]) {
      expect([...encryptAead(key, counter, key)]).toEqual([...oracleEncrypt(key, BigInt(counter), key)]);
    }
  });

  it('fails after a wipe, which overwrites the key', () => {
    const key = Uint8Array.from(randomBytes(32));
    const state = new CipherState(key);
    state.wipe();
    expect(state.encrypt(0, new Uint8Array(1))).toEqual({ ok: false, error: 'finished' });
    expect(state.decrypt(0, new Uint8Array(17))).toEqual({ ok: false, error: 'finished' });
    expect(key.every((byte) => byte === 0)).toBe(true);
  });
});
