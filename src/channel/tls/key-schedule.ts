/**
 * Derives the secrets of a connection from a shared secret and the transcript (RFC 8446, section 7.1), without
 * pre-shared keys. `record-cipher.ts` makes ciphers of them.
 */
import { createHash, createHmac } from 'node:crypto';
import type { Suite } from './suites.js';
import { uint, vector } from './vectors.js';

export interface TrafficSecrets {
  readonly client: Buffer;
  readonly server: Buffer;
}

export interface HandshakeSecrets extends TrafficSecrets {
  /** The secrets of application data are derived from it. */
  readonly master: Buffer;
}

/** The transcript: all handshake messages so far, in order, without record headers. */
export interface Transcript {
  add(message: Uint8Array): void;
  /** The hash of everything added so far. */
  hash(): Buffer;
}

export function createTranscript(suite: Suite): Transcript {
  const running = createHash(suite.hash);
  return {
    add: (message) => void running.update(message),
    hash: () => running.copy().digest(),
  };
}

const extract = (suite: Suite, salt: Uint8Array, secret: Uint8Array): Buffer =>
  createHmac(suite.hash, salt).update(secret).digest();

/** HKDF-Expand-Label; `length` is at most the hash length, so one round is enough. */
export function expandLabel(
  suite: Suite,
  secret: Uint8Array,
  label: string,
  context: Uint8Array,
  length: number,
): Buffer {
  const info = [uint(2, length), vector(1, Buffer.from(`tls13 ${label}`, 'latin1')), vector(1, context)];
  const hmac = createHmac(suite.hash, secret);
  for (const part of info) hmac.update(part);
  return hmac.update(Uint8Array.of(1)).digest().subarray(0, length);
}

const none = Buffer.alloc(0);

const derive = (suite: Suite, secret: Uint8Array, label: string, transcriptHash: Uint8Array): Buffer =>
  expandLabel(suite, secret, label, transcriptHash, suite.hashBytes);

/** @param transcriptHash up to and including ServerHello */
export function handshakeSecrets(suite: Suite, shared: Uint8Array, transcriptHash: Uint8Array): HandshakeSecrets {
  const zeros = Buffer.alloc(suite.hashBytes);
  const nothingSaid = createHash(suite.hash).digest();
  const early = extract(suite, zeros, zeros);
  const handshake = extract(suite, derive(suite, early, 'derived', nothingSaid), shared);
  return {
    client: derive(suite, handshake, 'c hs traffic', transcriptHash),
    server: derive(suite, handshake, 's hs traffic', transcriptHash),
    master: extract(suite, derive(suite, handshake, 'derived', nothingSaid), zeros),
  };
}

/** @param transcriptHash up to and including the server's Finished */
export function applicationSecrets(suite: Suite, master: Uint8Array, transcriptHash: Uint8Array): TrafficSecrets {
  return {
    client: derive(suite, master, 'c ap traffic', transcriptHash),
    server: derive(suite, master, 's ap traffic', transcriptHash),
  };
}

/** The content of the Finished message of the side that owns the secret. */
export function finishedMac(suite: Suite, secret: Uint8Array, transcriptHash: Uint8Array): Buffer {
  const key = derive(suite, secret, 'finished', none);
  return createHmac(suite.hash, key).update(transcriptHash).digest();
}

/** The secret after a KeyUpdate. */
export function nextSecret(suite: Suite, secret: Uint8Array): Buffer {
  return derive(suite, secret, 'traffic upd', none);
}
