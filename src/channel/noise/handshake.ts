/**
 * The two-message Noise handshake in both roles: `initiate` for agents, `respond` for the service. Pure except for the
 * random ephemeral key. `src/transport/agent/` checks clock skew, replay and admission. Implements
 * `docs/contract/agent-protocol.md#opensession`, after Noise revision 34.
 *
 * For an unknown node, the service passes a dummy party. Every failure of `respond`, except a wrong length, costs the
 * same work.
 */
import { agreeX25519, generateX25519, x25519KeyBytes, type X25519KeyPair } from '../../kernel/crypto/crypto.js';
import { err, ok } from '../../kernel/result.js';
import type { CipherState } from './cipher-state.js';
import { maxNoiseMessageBytes, type NoiseFailure, type NoiseResult } from './failure.js';
import { createSymmetricState, type SymmetricState } from './symmetric-state.js';

type Token = 'psk' | 'e' | 'ee' | 'es' | 'se' | 'ss';

/**
 * A handshake as data, in the notation of Noise (section 7): two messages that never send a static key.
 */
export interface HandshakePattern {
  readonly protocolName: string;
  /** Whether each side knows the other's static public key beforehand. */
  readonly initiatorStaticKnown: boolean;
  readonly responderStaticKnown: boolean;
  readonly messages: readonly [readonly Token[], readonly Token[]];
}

/**
 * The pattern of the service (`docs/contract/agent-protocol.md#opensession`); tests pass others.
 * @internal exported for tests
 */
export const kkPsk0: HandshakePattern = {
  protocolName: 'Noise_KKpsk0_25519_ChaChaPoly_SHA256',
  initiatorStaticKnown: true,
  responderStaticKnown: true,
  messages: [
    ['psk', 'e', 'es', 'ss'],
    ['e', 'ee', 'se'],
  ],
};

/** The pattern of UDP ENC (`docs/data-plane.md#enc`): the initiator knows the responder's key and has none itself. */
export const nk: HandshakePattern = {
  protocolName: 'Noise_NK_25519_ChaChaPoly_SHA256',
  initiatorStaticKnown: false,
  responderStaticKnown: true,
  messages: [
    ['e', 'es'],
    ['e', 'ee'],
  ],
};

/** What one side knows before the first message. The pattern says what is needed. */
export interface HandshakeParty {
  readonly prologue: Uint8Array;
  /** 32 bytes. */
  readonly psk?: Uint8Array;
  readonly localStatic?: X25519KeyPair;
  /** 32 bytes. */
  readonly remoteStatic?: Uint8Array;
  /** KKpsk0 when absent. */
  readonly pattern?: HandshakePattern;
  /** For test vectors only; a random one is generated when absent. Its private half is wiped at the end. */
  readonly ephemeral?: X25519KeyPair;
}

/** An established session as one side holds it. */
export interface NoiseSession {
  /** 32 bytes; the first 16 are the session's id. */
  readonly handshakeHash: Uint8Array;
  readonly send: CipherState;
  readonly receive: CipherState;
}

interface Initiated {
  readonly message: Uint8Array;
  /** Reads message 2, once. The payload is the responder's, authenticated. */
  finish(message: Uint8Array): NoiseResult<NoiseSession & { readonly payload: Uint8Array }>;
  /** Wipes the secrets of a handshake that will not be finished. */
  discard(): void;
}

export interface Responded {
  /** The initiator's payload. It is authentic but may be a replay: nothing proves yet that the initiator is live. */
  readonly payload: Uint8Array;
  /** Writes message 2, once. */
  finish(payload: Uint8Array): NoiseResult<NoiseSession & { readonly message: Uint8Array }>;
  discard(): void;
}

/** `session_id` on the wire: the first 16 bytes of the handshake hash. */
export function sessionIdOf(handshakeHash: Uint8Array): Uint8Array {
  return Uint8Array.from(handshakeHash.subarray(0, 16));
}

/** Binds a handshake to the protocol and the node: `"svc-control-v1" || 0x00 || node_id`. */
export function controlPrologue(nodeId: string): Uint8Array {
  return Buffer.from(`svc-control-v1\0${nodeId}`, 'utf8');
}

/** Writes message 1. Fails when the payload is too long or the responder's key is weak. */
export function initiate(party: HandshakeParty, payload: Uint8Array): NoiseResult<Initiated> {
  const run = startRun(party, true);
  const written = run.write(0, payload);
  if (!written.ok) return written;
  return ok({
    message: written.value,
    finish(message) {
      const read = run.read(1, message);
      return read.ok ? ok({ ...run.split(), payload: read.value }) : read;
    },
    discard: run.discard,
  });
}

/** Reads message 1. Fails on a wrong length, a weak key or a tag that does not verify. */
export function respond(party: HandshakeParty, message: Uint8Array): NoiseResult<Responded> {
  const run = startRun(party, false);
  const read = run.read(0, message);
  if (!read.ok) return read;
  return ok({
    payload: read.value,
    finish(payload) {
      const written = run.write(1, payload);
      return written.ok ? ok({ ...run.split(), message: written.value }) : written;
    },
    discard: run.discard,
  });
}

interface Run {
  write(index: 0 | 1, payload: Uint8Array): NoiseResult<Uint8Array>;
  read(index: 0 | 1, message: Uint8Array): NoiseResult<Uint8Array>;
  split(): NoiseSession;
  discard(): void;
}

/** The HandshakeState of Noise (section 5.3) for one run. Any failure ends it. */
function startRun(party: HandshakeParty, initiator: boolean): Run {
  const pattern = party.pattern ?? kkPsk0;
  // A psk pattern also mixes every ephemeral key into the chaining key (section 9.2).
  const mixesEphemerals = pattern.messages.some((tokens) => tokens.includes('psk'));
  const psk = mixesEphemerals ? required('psk', party.psk) : undefined;
  const local = party.localStatic;
  let localEphemeral = party.ephemeral;
  let remoteEphemeral: Uint8Array | undefined;
  let nextMessage = 0;
  const symmetric = createSymmetricState(pattern.protocolName);
  symmetric.mixHash(party.prologue);
  const [initiatorStatic, responderStatic] = initiator
    ? [local?.publicKey, party.remoteStatic]
    : [party.remoteStatic, local?.publicKey];
  if (pattern.initiatorStaticKnown) symmetric.mixHash(required('static key of the initiator', initiatorStatic));
  if (pattern.responderStaticKnown) symmetric.mixHash(required('static key of the responder', responderStatic));

  const wipeEphemeral = (): void => {
    localEphemeral?.privateKey.fill(0);
    localEphemeral = undefined;
  };
  const discard = (): void => {
    nextMessage = 2;
    wipeEphemeral();
    symmetric.wipe();
  };
  const fail = (failure: NoiseFailure): { readonly ok: false; readonly error: NoiseFailure } => {
    discard();
    return err(failure);
  };
  const mixEphemeral = (bytes: Uint8Array): void => {
    symmetric.mixHash(bytes);
    if (mixesEphemerals) symmetric.mixKey(bytes);
  };
  /** The first letter of a token names the initiator's key, the second the responder's. */
  const agree = (token: 'ee' | 'es' | 'se' | 'ss'): boolean => {
    const localIsEphemeral = token[initiator ? 0 : 1] === 'e';
    const remoteIsEphemeral = token[initiator ? 1 : 0] === 'e';
    const localKey = localIsEphemeral ? localEphemeral : local;
    const remoteKey = remoteIsEphemeral ? remoteEphemeral : party.remoteStatic;
    return localKey !== undefined && remoteKey !== undefined && mixAgreement(symmetric, localKey, remoteKey);
  };

  return {
    discard,
    write(index, payload) {
      if (nextMessage !== index) return err('finished');
      nextMessage += 1;
      const parts: Uint8Array[] = [];
      for (const token of pattern.messages[index]) {
        if (token === 'psk') {
          symmetric.mixKeyAndHash(required('psk', psk));
        } else if (token === 'e') {
          localEphemeral ??= generateX25519();
          parts.push(localEphemeral.publicKey);
          mixEphemeral(localEphemeral.publicKey);
        } else if (!agree(token)) {
          return fail('weak_public_key');
        }
      }
      parts.push(symmetric.encryptAndHash(payload));
      const message = Buffer.concat(parts);
      return message.length > maxNoiseMessageBytes ? fail('wrong_length') : ok(message);
    },
    read(index, message) {
      if (nextMessage !== index) return err('finished');
      nextMessage += 1;
      const ephemeralBytes = pattern.messages[index].includes('e') ? x25519KeyBytes : 0;
      if (message.length < ephemeralBytes || message.length > maxNoiseMessageBytes) return fail('wrong_length');
      for (const token of pattern.messages[index]) {
        if (token === 'psk') {
          symmetric.mixKeyAndHash(required('psk', psk));
        } else if (token === 'e') {
          remoteEphemeral = Uint8Array.from(message.subarray(0, x25519KeyBytes));
          mixEphemeral(remoteEphemeral);
        } else if (!agree(token)) {
          return fail('weak_public_key');
        }
      }
      const body = message.subarray(ephemeralBytes);
      if (body.length < symmetric.overhead) return fail('wrong_length');
      const payload = symmetric.decryptAndHash(body);
      return payload === undefined ? fail('bad_tag') : ok(payload);
    },
    split() {
      const handshakeHash = symmetric.handshakeHash();
      const [fromInitiator, fromResponder] = symmetric.split();
      wipeEphemeral();
      return initiator
        ? { handshakeHash, send: fromInitiator, receive: fromResponder }
        : { handshakeHash, send: fromResponder, receive: fromInitiator };
    },
  };
}

/** @throws RangeError unless there are 32 bytes */
function required(label: string, bytes: Uint8Array | undefined): Uint8Array {
  if (bytes?.length !== 32) throw new RangeError(`${label}: expected 32 bytes, got ${bytes?.length ?? 'none'}`);
  return bytes;
}

/** MixKey(DH(local, remote)); false when the result is all zeros, which a key of small order causes. */
function mixAgreement(symmetric: SymmetricState, local: X25519KeyPair, remote: Uint8Array): boolean {
  const shared = agreeX25519(local.privateKey, remote);
  if (shared === undefined) return false;
  symmetric.mixKey(shared);
  shared.fill(0);
  return true;
}
