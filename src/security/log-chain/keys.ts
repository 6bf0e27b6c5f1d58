/**
 * The keys of the log chain. The current key is derived from the master key. Each rotation of the master key seals the
 * previous key under the new one and records it in the stream `svc-log-chain`.
 * Implements `docs/log-chain.md`.
 */
import { createHash, createHmac, createSecretKey, hkdfSync, randomBytes } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import type { LogChainKeySealed } from '../../domain/log-chain/declaration.js';
import type { MacOf } from '../../domain/log-chain/links.js';
import type { RecordedEvent } from '../../kernel/event.js';
import { streams } from '../../kernel/event.js';
import type { MasterKey } from '../master-key.js';
import { lengthPrefixed } from '../sealing.js';
import { xchacha, xchachaNonceBytes } from '../../kernel/crypto/crypto.js';
import type { EventStore } from '../../storage/event-store.js';
import { wholeStream } from '../../storage/event-store.js';

type Sealed = LogChainKeySealed['data'];

export interface LogChainKeys {
  /** The key of new links, by the id of its master key. */
  readonly current: string;
  readonly macOf: MacOf;
  /** The ids of all known keys. */
  ids(): readonly string[];
  /** The MAC keys, for another thread of this process. */
  macKeys(): MacKeys;
  /** Learns an earlier key. @returns false when it is sealed under an unknown key, or was altered */
  learn(sealed: Sealed): boolean;
}

/** The MAC keys alone. A message to a worker thread can carry them, because it copies only handles. */
export interface MacKeys {
  readonly current: string;
  readonly byId: ReadonlyMap<string, KeyObject>;
}

export function macOfKeys({ byId }: MacKeys): MacOf {
  return (keyId, text) => {
    if (keyId === null) return createHash('sha256').update(text).digest('base64url');
    const key = byId.get(keyId);
    return key && createHmac('sha256', key).update(text).digest('base64url');
  };
}

interface Key {
  readonly mac: KeyObject;
  /** Seals the previous key. */
  readonly seal: Uint8Array;
}

const keyBytes = 32;

const derive = (secret: Uint8Array, info: string): Uint8Array =>
  new Uint8Array(hkdfSync('sha256', secret, 'svc-log-chain-1', info, keyBytes));

/** Derives both keys and overwrites the secret. */
function keyOf(secret: Uint8Array): Key {
  const mac = derive(secret, 'mac');
  const key = { mac: createSecretKey(mac), seal: derive(secret, 'seal') };
  mac.fill(0);
  secret.fill(0);
  return key;
}

const binding = (keyId: string, under: string): Uint8Array => lengthPrefixed(['svc-log-chain-key-1', keyId, under]);

export function createLogChainKeys(masterKey: MasterKey): LogChainKeys {
  const macs = new Map<string, KeyObject>();
  const seals = new Map<string, Uint8Array>();
  const add = (keyId: string, { mac, seal }: Key): void => {
    macs.set(keyId, mac);
    seals.set(keyId, seal);
  };
  add(masterKey.keyId, keyOf(masterKey.logChainKey()));
  return {
    current: masterKey.keyId,
    macOf: macOfKeys({ current: masterKey.keyId, byId: macs }),
    macKeys: () => ({ current: masterKey.keyId, byId: new Map(macs) }),
    ids: () => [...macs.keys()],
    learn({ key_id, under, nonce, ct }) {
      if (macs.has(key_id)) return true;
      const newer = seals.get(under);
      const nonceBytes = Buffer.from(String(nonce), 'base64url');
      if (newer === undefined || nonceBytes.length !== xchachaNonceBytes) return false;
      const ciphertext = Buffer.from(String(ct), 'base64url');
      const secret = xchacha.open(newer, nonceBytes, ciphertext, binding(key_id, under));
      if (secret?.length !== keyBytes) return false;
      add(key_id, keyOf(secret));
      return true;
    },
  };
}

/**
 * Opens the log chain keys of an installation from its log.
 * @throws ServiceError `unavailable`
 */
export async function openLogChainKeys(eventStore: EventStore, masterKey: MasterKey): Promise<LogChainKeys> {
  return keysOf(wholeStream(eventStore, streams.logChain), masterKey);
}

/**
 * Opens the log chain keys from recorded events.
 * @param events the events of `svc-log-chain`, in order
 */
export async function keysOf(
  events: Iterable<RecordedEvent> | AsyncIterable<RecordedEvent>,
  masterKey: MasterKey,
): Promise<LogChainKeys> {
  const keys = createLogChainKeys(masterKey);
  const sealed: LogChainKeySealed['data'][] = [];
  for await (const event of events) {
    if (isSealedKey(event)) sealed.push((event as unknown as LogChainKeySealed).data);
  }
  // The newest is sealed under the current key, and each older one under its successor.
  for (const one of sealed.toReversed()) keys.learn(one);
  return keys;
}

/** True for an event that holds an earlier key. */
function isSealedKey(event: { readonly stream: string; readonly type: string }): boolean {
  const type: LogChainKeySealed['type'] = 'LogChainKeySealed';
  return event.stream === streams.logChain && event.type === type;
}

/** Seals the log chain key of one master key under the log chain key of the next. */
export function sealLogChainKey(from: MasterKey, to: MasterKey): Sealed {
  const secret = from.logChainKey();
  const { seal } = keyOf(to.logChainKey());
  const nonce = randomBytes(xchachaNonceBytes);
  const ct = xchacha.seal(seal, nonce, secret, binding(from.keyId, to.keyId));
  secret.fill(0);
  return {
    key_id: from.keyId,
    under: to.keyId,
    nonce: nonce.toString('base64url'),
    ct: Buffer.from(ct).toString('base64url'),
  };
}
