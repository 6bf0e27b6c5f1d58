/**
 * Encoded snapshots in memory: the newest of each node, bounded in bytes, the least recently used dropped first. One
 * that holds a secret is sealed under a key that exists only in this process. Checksums are kept longer than the bytes,
 * because most requests need nothing else. Not the last-good snapshots: those are in the read store (`last-good.ts`).
 */
import { randomBytes } from 'node:crypto';
import { createLru } from '../kernel/lru.js';
import { aeadKeyBytes, xchacha, xchachaNonceBytes } from '../kernel/crypto/crypto.js';
import type { SnapshotPush } from './port.js';
import type { Stamp } from './target.js';

export interface SnapshotCache {
  /** The stamp of the snapshot that was put last for the node, if it has that generation. */
  stamp(nodeId: string, generation: number): Stamp | undefined;
  /** The snapshot itself, if its bytes are still in memory. */
  get(nodeId: string, generation: number): SnapshotPush | undefined;
  put(nodeId: string, push: SnapshotPush, holdsSecrets: boolean): void;
  delete(nodeId: string): void;
  /** Bytes of all payloads in memory. */
  readonly bytes: number;
}

interface Remembered {
  readonly stamp: Stamp;
  readonly checksum: Uint8Array;
}

interface CachedPayload {
  readonly bytes: Uint8Array;
  /** Undefined for one that is not sealed. */
  readonly nonce: Uint8Array | undefined;
}

export function stampOf(push: Pick<SnapshotPush, 'generation' | 'checksum'>): Stamp {
  const { buffer, byteOffset, byteLength } = push.checksum;
  return { generation: push.generation, checksum: Buffer.from(buffer, byteOffset, byteLength).toString('hex') };
}

/**
 * @param maxBytes of payloads
 * @param maxNodes whose checksums are remembered
 */
export function createSnapshotCache(maxBytes: number, maxNodes: number): SnapshotCache {
  const key = randomBytes(aeadKeyBytes);
  const remembered = createLru<string, Remembered>({ maxEntries: maxNodes });
  const payloads = createLru<string, CachedPayload>({
    maxEntries: maxNodes,
    maxWeight: maxBytes,
    weigh: (cached) => cached.bytes.length,
  });

  const associated = (nodeId: string, generation: number): Uint8Array => Buffer.from(`${nodeId}@${generation}`);

  return {
    stamp(nodeId, generation) {
      const stamp = remembered.get(nodeId)?.stamp;
      return stamp?.generation === generation ? stamp : undefined;
    },
    get(nodeId, generation) {
      const latest = remembered.get(nodeId);
      const cached = payloads.get(nodeId);
      if (latest?.stamp.generation !== generation || cached === undefined) return undefined;
      const payload =
        cached.nonce === undefined
          ? cached.bytes
          : xchacha.open(key, cached.nonce, cached.bytes, associated(nodeId, generation));
      return payload === undefined ? undefined : { generation, checksum: latest.checksum, payload };
    },
    put(nodeId, push, holdsSecrets) {
      const nonce = holdsSecrets ? randomBytes(xchachaNonceBytes) : undefined;
      const cached =
        nonce === undefined
          ? { bytes: push.payload, nonce }
          : { bytes: xchacha.seal(key, nonce, push.payload, associated(nodeId, push.generation)), nonce };
      remembered.set(nodeId, { stamp: stampOf(push), checksum: push.checksum });
      payloads.set(nodeId, cached);
    },
    delete(nodeId) {
      payloads.delete(nodeId);
      remembered.delete(nodeId);
    },
    get bytes() {
      return payloads.weight;
    },
  };
}
