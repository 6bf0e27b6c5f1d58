import { createHash, randomBytes } from 'node:crypto';
import { x25519 } from '@noble/curves/ed25519.js';
import { hkdf as nobleHkdf } from '@noble/hashes/hkdf.js';
import { sha256 } from '@noble/hashes/sha2.js';
import { utf8ToBytes } from '@noble/hashes/utils.js';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { agentKeysFrom, decodeControlPsk, encodeControlPsk } from '../../src/channel/noise/control-psk.js';
import { generateX25519 } from '../../src/kernel/crypto/crypto.js';
import { valueOf } from '../support/noise-parties.js';

/** HKDF-SHA256 of one block (RFC 5869), independent of the library that the implementation uses. */
function hkdf(secret: Uint8Array, salt: string, info: string): Uint8Array {
  return nobleHkdf(sha256, secret, utf8ToBytes(salt), utf8ToBytes(info), 32);
}

describe('a control PSK', () => {
  it('gives the agent the keys that the protocol derives', () => {
    const secret = randomBytes(32);
    const service = generateX25519();
    const text = encodeControlPsk({ secret, servicePublic: service.publicKey });
    expect(text).toBe(`svcpsk1_${Buffer.concat([secret, service.publicKey]).toString('base64url')}`);
    const keys = valueOf(agentKeysFrom(text));
    const expectedPublic = x25519.getPublicKey(hkdf(secret, 'svc-control-v1', 'node-static'));
    expect([...keys.nodeStatic.publicKey]).toEqual([...expectedPublic]);
    expect([...keys.psk]).toEqual([...hkdf(secret, 'svc-control-v1', 'noise-psk')]);
    expect([...keys.servicePublic]).toEqual([...service.publicKey]);
    const fingerprint = createHash('sha256').update(expectedPublic).digest('base64url');
    expect(keys.fingerprint).toBe(`SHA256:${fingerprint}`);
  });

  it('has only one spelling, which a refusal does not repeat', () => {
    const text = encodeControlPsk({ secret: randomBytes(32), servicePublic: randomBytes(32) });
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
    const last = alphabet.indexOf(text.slice(-1));
    const bad = [
      text.slice(0, -1),
      `${text}A`,
      `${text}==`,
      ` ${text}`,
      `${text}\n`,
      text.replace('svcpsk1_', 'svcpsk2_'),
      '',
      text.slice(0, -1) + alphabet[last ^ 1],
    ];
    for (const wrong of bad) {
      const result = decodeControlPsk(wrong);
      if (result.ok) throw new Error('accepted');
      expect(result.error).not.toContain(text.slice(8, 40));
    }
    expect(decodeControlPsk(text).ok).toBe(true);
  });

  it('is refused without an exception when it is arbitrary text', () => {
    fc.assert(fc.property(fc.string({ maxLength: 120 }), (text) => agentKeysFrom(text).ok === false));
  });
});
