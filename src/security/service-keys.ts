/**
 * The service's identity keys in clear: the first one of `svc-service`, and those that rotations have sealed into
 * `svc-fleet`, each opened once. The fleet decides which of them count. Implements
 * `docs/contract/rollouts.md#guided-rotation`.
 */
import type { SealedSecret } from '../domain/secret/sealed.js';
import { isServedKey, newestKey, servedKeyPlace, type ServedKeys } from '../domain/service/served-keys.js';
import { generateX25519, x25519PairOf, type X25519KeyPair } from '../kernel/crypto/crypto.js';
import { streams } from '../kernel/event.js';
import { getOrMake } from '../kernel/maps.js';
import type { Keyring } from './keyring.js';

const place = { stream: streams.fleet, ...servedKeyPlace };

/** The key that a new PSK carries. */
export interface NewestKey {
  /** 32 bytes. */
  readonly publicKey: Uint8Array;
  /** How events name it; empty for the first key. */
  readonly named: { readonly service_public?: string };
}

export interface ServiceKeys {
  newest(): NewestKey;
  /**
   * The key that a PSK carries; undefined once retired. @param name its public half, base64url; undefined for the first
   */
  pairOf(name: string | undefined): X25519KeyPair | undefined;
  /** The public half of the first key, base64url. */
  readonly first: string;
}

export interface ServiceKeysOptions {
  /** 32 bytes. */
  readonly firstPrivate: Uint8Array;
  readonly keyring: Pick<Keyring, 'open'>;
  /** The keys that the committed fleet serves. */
  served(): ServedKeys;
}

export function createServiceKeys({ firstPrivate, keyring, served }: ServiceKeysOptions): ServiceKeys {
  const first = x25519PairOf(firstPrivate);
  const opened = new Map<string, X25519KeyPair>();

  /** @throws Error when the log was altered */
  function open(name: string, sealed: SealedSecret): X25519KeyPair {
    return getOrMake(opened, name, () => {
      const secret = keyring.open(sealed, place);
      if (secret.kind !== 'opened') throw new Error(`the identity key ${name} cannot be opened: ${secret.reason}`);
      return x25519PairOf(secret.plaintext);
    });
  }

  return {
    first: base64url(first.publicKey),
    newest() {
      const key = newestKey(served());
      if (key === undefined) return { publicKey: first.publicKey, named: {} };
      const { static_public: name } = key;
      return { publicKey: Buffer.from(name, 'base64url'), named: { service_public: name } };
    },
    pairOf(name) {
      const keys = served();
      if (!isServedKey(keys, name)) return undefined;
      const { current, next } = keys;
      const key = next?.static_public === name ? next : current;
      return name === undefined || key === null ? first : open(name, key.static_private);
    },
  };
}

/** A second identity key, sealed for the event that makes it. */
export function newServiceKey(keyring: Pick<Keyring, 'seal'>): {
  readonly static_public: string;
  readonly static_private: SealedSecret;
} {
  const { publicKey, privateKey } = generateX25519();
  const static_private = keyring.seal(privateKey, place);
  privateKey.fill(0);
  return { static_public: base64url(publicKey), static_private };
}

const base64url = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64url');
