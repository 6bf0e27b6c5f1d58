/**
 * A second implementation of KKpsk0, written from the Noise specification on @noble alone, so that a mistake in
 * `src/channel/noise/` is not repeated here. For tests only: it is slow, and it throws on errors.
 */
import { chacha20poly1305 } from '@noble/ciphers/chacha.js';
import { x25519 } from '@noble/curves/ed25519.js';
import { hmac } from '@noble/hashes/hmac.js';
import { sha256 } from '@noble/hashes/sha2.js';
import { concatBytes, utf8ToBytes } from '@noble/hashes/utils.js';

export interface OracleParty {
  readonly prologue: Uint8Array;
  readonly psk: Uint8Array;
  readonly staticPrivate: Uint8Array;
  readonly remoteStatic: Uint8Array;
  readonly ephemeralPrivate: Uint8Array;
}

interface OracleKeys {
  readonly hash: Uint8Array;
  readonly initiatorToResponder: Uint8Array;
  readonly responderToInitiator: Uint8Array;
}

interface State {
  ck: Uint8Array;
  h: Uint8Array;
  k: Uint8Array;
  n: bigint;
}

const empty = new Uint8Array(0);

function nonce(n: bigint): Uint8Array {
  const bytes = new Uint8Array(12);
  new DataView(bytes.buffer).setBigUint64(4, n, true);
  return bytes;
}

export function oracleEncrypt(key: Uint8Array, n: bigint, plaintext: Uint8Array, ad: Uint8Array = empty): Uint8Array {
  return chacha20poly1305(key, nonce(n), ad).encrypt(plaintext);
}

export function oracleDecrypt(key: Uint8Array, n: bigint, ciphertext: Uint8Array, ad: Uint8Array = empty): Uint8Array {
  return chacha20poly1305(key, nonce(n), ad).decrypt(ciphertext);
}

function hkdf3(ck: Uint8Array, material: Uint8Array): [Uint8Array, Uint8Array, Uint8Array] {
  const temp = hmac(sha256, ck, material);
  const one = hmac(sha256, temp, Uint8Array.of(1));
  const two = hmac(sha256, temp, concatBytes(one, Uint8Array.of(2)));
  return [one, two, hmac(sha256, temp, concatBytes(two, Uint8Array.of(3)))];
}

function start(prologue: Uint8Array, initiatorStatic: Uint8Array, responderStatic: Uint8Array): State {
  let h = sha256(utf8ToBytes('Noise_KKpsk0_25519_ChaChaPoly_SHA256'));
  const ck = h;
  for (const data of [prologue, initiatorStatic, responderStatic]) h = sha256(concatBytes(h, data));
  return { ck, h, k: empty, n: 0n };
}

function mixHash(state: State, data: Uint8Array): void {
  state.h = sha256(concatBytes(state.h, data));
}

function mixKey(state: State, material: Uint8Array): void {
  const [ck, k] = hkdf3(state.ck, material);
  Object.assign(state, { ck, k, n: 0n });
}

function mixPsk(state: State, psk: Uint8Array): void {
  const [ck, hashed, k] = hkdf3(state.ck, psk);
  state.ck = ck;
  mixHash(state, hashed);
  Object.assign(state, { k, n: 0n });
}

function mixEphemeral(state: State, publicKey: Uint8Array): void {
  mixHash(state, publicKey);
  mixKey(state, publicKey);
}

function seal(state: State, payload: Uint8Array): Uint8Array {
  const ciphertext = oracleEncrypt(state.k, state.n, payload, state.h);
  state.n += 1n;
  mixHash(state, ciphertext);
  return ciphertext;
}

function open(state: State, ciphertext: Uint8Array): Uint8Array {
  const plaintext = oracleDecrypt(state.k, state.n, ciphertext, state.h);
  state.n += 1n;
  mixHash(state, ciphertext);
  return plaintext;
}

function finish(state: State): OracleKeys {
  const [initiatorToResponder, responderToInitiator] = hkdf3(state.ck, empty);
  return { hash: state.h, initiatorToResponder, responderToInitiator };
}

export function oracleInitiate(
  party: OracleParty,
  payload: Uint8Array,
): { message: Uint8Array; finish: (message: Uint8Array) => OracleKeys & { payload: Uint8Array } } {
  const state = start(party.prologue, x25519.getPublicKey(party.staticPrivate), party.remoteStatic);
  const e = x25519.getPublicKey(party.ephemeralPrivate);
  mixPsk(state, party.psk);
  mixEphemeral(state, e);
  mixKey(state, x25519.getSharedSecret(party.ephemeralPrivate, party.remoteStatic));
  mixKey(state, x25519.getSharedSecret(party.staticPrivate, party.remoteStatic));
  const message = concatBytes(e, seal(state, payload));
  return {
    message,
    finish(reply) {
      const re = reply.subarray(0, 32);
      mixEphemeral(state, re);
      mixKey(state, x25519.getSharedSecret(party.ephemeralPrivate, re));
      mixKey(state, x25519.getSharedSecret(party.staticPrivate, re));
      const answer = open(state, reply.subarray(32));
      return { ...finish(state), payload: answer };
    },
  };
}

export function oracleRespond(
  party: OracleParty,
  message: Uint8Array,
): { payload: Uint8Array; finish: (payload: Uint8Array) => OracleKeys & { message: Uint8Array } } {
  const state = start(party.prologue, party.remoteStatic, x25519.getPublicKey(party.staticPrivate));
  const re = message.subarray(0, 32);
  mixPsk(state, party.psk);
  mixEphemeral(state, re);
  mixKey(state, x25519.getSharedSecret(party.staticPrivate, re));
  mixKey(state, x25519.getSharedSecret(party.staticPrivate, party.remoteStatic));
  const payload = open(state, message.subarray(32));
  return {
    payload,
    finish(answer) {
      const e = x25519.getPublicKey(party.ephemeralPrivate);
      mixEphemeral(state, e);
      mixKey(state, x25519.getSharedSecret(party.ephemeralPrivate, re));
      mixKey(state, x25519.getSharedSecret(party.ephemeralPrivate, party.remoteStatic));
      const reply = concatBytes(e, seal(state, answer));
      return { ...finish(state), message: reply };
    },
  };
}
