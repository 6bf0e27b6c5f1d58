/**
 * The primitives of agent sessions and sealed secrets, as a port: X25519, the ChaCha20-Poly1305 family and SHA-256.
 * `sodium.ts` and `node.ts` implement it, and `crypto.ts` chooses one of them. All other cryptography (Ed25519, X.509,
 * TLS, AES) always uses node:crypto. Callers use `crypto.ts`, which checks lengths; implementations may rely on them.
 */
export interface Primitives {
  readonly name: 'sodium-native' | 'node:crypto';
  /** The public key of a private key: X25519 with the base point (RFC 7748, section 6.1). */
  x25519Public(privateKey: Uint8Array): Uint8Array;
  /** The shared secret; undefined if it is all zeros, which a public key of small order causes. */
  x25519Agree(privateKey: Uint8Array, publicKey: Uint8Array): Uint8Array | undefined;
  /** RFC 8439, 12-byte nonces. */
  readonly chacha: Aead;
  /** draft-irtf-cfrg-xchacha-03, 24-byte nonces. */
  readonly xchacha: Aead;
  /** The hash of the concatenated parts. */
  sha256(...parts: readonly Uint8Array[]): Uint8Array;
}

export interface Aead {
  /** @returns the ciphertext followed by its 16-byte tag */
  seal(key: Uint8Array, nonce: Uint8Array, plaintext: Uint8Array, associated: Uint8Array): Uint8Array;
  /**
   * @param sealed at least as long as a tag
   * @returns the plaintext in its own memory; undefined when the tag does not verify
   */
  open(key: Uint8Array, nonce: Uint8Array, sealed: Uint8Array, associated: Uint8Array): Uint8Array | undefined;
}

export const tagBytes = 16;
