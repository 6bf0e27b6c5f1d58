/** The symmetric state alone: before and after its first key, which the pattern in use does not show. */
import { createHash, randomBytes } from 'node:crypto';
import { expect, it } from 'vitest';
import { decryptAead } from '../../src/channel/noise/aead.js';
import { createSymmetricState } from '../../src/channel/noise/symmetric-state.js';
import { flipped } from '../support/noise-parties.js';

const shortName = 'Noise_NN_25519_ChaChaPoly_SHA256';
const sha256 = (...parts: readonly Uint8Array[]): Buffer => {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest();
};

it('starts with a short protocol name padded by zeros, and with the hash of a long one', () => {
  const name = Buffer.from(shortName);
  expect(name.length).toBe(32);
  expect(createSymmetricState(shortName).handshakeHash()).toEqual(new Uint8Array(name));
  const shorter = shortName.slice(0, 30);
  expect(createSymmetricState(shorter).handshakeHash()).toEqual(
    new Uint8Array(Buffer.concat([Buffer.from(shorter), Buffer.alloc(2)])),
  );
  const long = `${shortName}_more`;
  expect(createSymmetricState(long).handshakeHash()).toEqual(new Uint8Array(sha256(Buffer.from(long))));
});

it('passes payloads on in clear before the first key, and mixes them into the hash', () => {
  const [sender, receiver] = [createSymmetricState(shortName), createSymmetricState(shortName)];
  const payload = randomBytes(20);
  expect(sender.overhead).toBe(0);
  const sent = sender.encryptAndHash(payload);
  expect(sent).toEqual(new Uint8Array(payload));
  expect(receiver.decryptAndHash(sent)).toEqual(new Uint8Array(payload));
  const mixed = new Uint8Array(sha256(Buffer.from(shortName), payload));
  expect([sender.handshakeHash(), receiver.handshakeHash()]).toEqual([mixed, mixed]);
});

it('counts the payloads of one key, and starts again with each key', () => {
  const [sender, receiver] = [createSymmetricState(shortName), createSymmetricState(shortName)];
  for (let round = 0; round < 2; round += 1) {
    const material = randomBytes(32);
    sender.mixKey(material);
    receiver.mixKey(material);
    expect(sender.overhead).toBe(16);
    const payloads = [randomBytes(8), randomBytes(8), randomBytes(8)];
    for (const payload of payloads) expect(receiver.decryptAndHash(sender.encryptAndHash(payload))).toEqual(payload);
  }
});

it('encrypts the first payload of a key with counter 0 and the next one with counter 1, under the current hash', () => {
  // One HKDF step by hand (section 4.3): chaining key = protocol name, two outputs, the second is the key.
  const material = randomBytes(32);
  const state = createSymmetricState(shortName);
  state.mixKey(material);
  const hmac = (key: Uint8Array, ...parts: readonly Uint8Array[]): Buffer => {
    const pad = (value: number): Buffer =>
      Buffer.from(Buffer.concat([key, Buffer.alloc(64 - key.length)]).map((byte) => byte ^ value));
    return sha256(pad(0x5c), sha256(pad(0x36), ...parts));
  };
  const temporary = hmac(Buffer.from(shortName), material);
  const chaining = hmac(temporary, Buffer.from([1]));
  const key = hmac(temporary, chaining, Buffer.from([2]));
  for (const counter of [0, 1]) {
    const hash = state.handshakeHash();
    const payload = randomBytes(12);
    expect(decryptAead(key, counter, state.encryptAndHash(payload), hash)).toEqual(payload);
  }
});

it('leaves the hash as it was when a tag does not verify', () => {
  const [sender, receiver] = [createSymmetricState(shortName), createSymmetricState(shortName)];
  sender.mixKey(Buffer.alloc(32, 1));
  receiver.mixKey(Buffer.alloc(32, 1));
  const before = receiver.handshakeHash();
  expect(receiver.decryptAndHash(flipped(sender.encryptAndHash(randomBytes(9)), 3))).toBeUndefined();
  expect(receiver.handshakeHash()).toEqual(before);
});

it('encrypts nothing with its keys any more once it is wiped', () => {
  const state = createSymmetricState(shortName);
  state.mixKey(randomBytes(32));
  state.wipe();
  const hash = state.handshakeHash();
  expect(decryptAead(new Uint8Array(32), 0, state.encryptAndHash(Buffer.from('x')), hash)).toEqual(Buffer.from('x'));
});
