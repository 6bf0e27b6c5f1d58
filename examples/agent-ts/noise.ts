/**
 * The agent's side of `Noise_KKpsk0_25519_ChaChaPoly_SHA256`, and the keys that a control PSK stands for:
 * docs/agent-protocol.md, "Keys" and "OpenSession". If your language has a Noise library, this file is one call to it.
 */
import { chacha20poly1305 } from '@noble/ciphers/chacha.js';
import { x25519 } from '@noble/curves/ed25519.js';
import { extract, expand } from '@noble/hashes/hkdf.js';
import { sha256 } from '@noble/hashes/sha2.js';

const ascii = (text: string): Buffer => Buffer.from(text, 'latin1');
const derive = (salt: Uint8Array, material: Uint8Array, info: Uint8Array, bytes: number): Uint8Array =>
  expand(sha256, extract(sha256, material, salt), info, bytes);

/** One direction: seals or opens messages in their order. */
export interface Direction {
  readonly sequence: bigint;
  seal(plaintext: Uint8Array): Buffer;
  /** @throws Error if the tag does not verify */
  open(ciphertext: Uint8Array): Buffer;
}

function direction(key: Uint8Array, associated: () => Uint8Array = () => new Uint8Array(0)): Direction {
  let sequence = 0n;
  const next = (): Uint8Array => {
    const nonce = Buffer.alloc(12);
    nonce.writeBigUInt64LE(sequence++, 4);
    return nonce;
  };
  return {
    get sequence() {
      return sequence;
    },
    seal: (plaintext) => Buffer.from(chacha20poly1305(key, next(), associated()).encrypt(plaintext)),
    open: (ciphertext) => Buffer.from(chacha20poly1305(key, next(), associated()).decrypt(ciphertext)),
  };
}

/** @param controlPsk `svcpsk1_…`, as the operator got it */
export function startHandshake(controlPsk: string, nodeId: string, offer: Uint8Array) {
  const halves = Buffer.from(controlPsk.replace(/^svcpsk1_/, ''), 'base64url');
  if (halves.length !== 64) throw new Error('SVC_CONTROL_PSK: expected svcpsk1_ and 86 characters of base64url');
  const [secret, servicePublic] = [halves.subarray(0, 32), halves.subarray(32)];
  const staticPrivate = derive(ascii('svc-control-v1'), secret, ascii('node-static'), 32);
  const psk = derive(ascii('svc-control-v1'), secret, ascii('noise-psk'), 32);
  const ephemeral = x25519.utils.randomSecretKey();

  let hash: Uint8Array = sha256(ascii('Noise_KKpsk0_25519_ChaChaPoly_SHA256'));
  let chaining = hash;
  let cipher = direction(psk, () => hash);
  const mixHash = (data: Uint8Array): void => void (hash = sha256(Buffer.concat([hash, data])));
  const mixKey = (material: Uint8Array, isPsk = false): void => {
    const outputs = derive(chaining, material, new Uint8Array(0), isPsk ? 96 : 64);
    chaining = outputs.subarray(0, 32);
    if (isPsk) mixHash(outputs.subarray(32, 64));
    cipher = direction(outputs.subarray(-32), () => hash);
  };
  mixHash(Buffer.from(`svc-control-v1\0${nodeId}`));
  mixHash(x25519.getPublicKey(staticPrivate));
  mixHash(servicePublic);

  // -> psk, e, es, ss
  mixKey(psk, true);
  const publicKey = x25519.getPublicKey(ephemeral);
  mixHash(publicKey);
  mixKey(publicKey);
  mixKey(x25519.getSharedSecret(ephemeral, servicePublic));
  mixKey(x25519.getSharedSecret(staticPrivate, servicePublic));
  const sealed = cipher.seal(offer);
  mixHash(sealed);

  return {
    messageOne: Buffer.concat([publicKey, sealed]),
    /** <- e, ee, se. @throws Error if it is not the service that answers */
    finish(messageTwo: Uint8Array) {
      const theirs = messageTwo.subarray(0, 32);
      mixHash(theirs);
      mixKey(theirs);
      mixKey(x25519.getSharedSecret(ephemeral, theirs));
      mixKey(x25519.getSharedSecret(staticPrivate, theirs));
      const grant = cipher.open(messageTwo.subarray(32));
      mixHash(messageTwo.subarray(32));
      const keys = derive(chaining, new Uint8Array(0), new Uint8Array(0), 64);
      const [send, receive] = [direction(keys.subarray(0, 32)), direction(keys.subarray(32))];
      return { grant, sessionId: Buffer.from(hash.subarray(0, 16)), send, receive };
    },
  };
}
