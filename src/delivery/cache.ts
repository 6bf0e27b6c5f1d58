/**
 * Encoded snapshots in memory: the newest of each node, least recently used out first, counted in bytes. Those that
 * hold a secret lie there sealed under a key that lives and dies with the process. Checksums outlive the bytes, for
 * most requests only ask for them. Not the kept snapshots: those are in the read store (`kept.ts`).
 */
import { randomBytes } from 'node:crypto';
import { createLru } from '../kernel/lru.js';
import { openXChaCha, sealXChaCha, xchachaKeyBytes, xchachaNonceBytes } from '../security/xchacha.js';
import type { SnapshotPush } from './port.js';
import type { Stamp } from './target.js';

export interface SnapshotCache {
  /** The stamp of the snapshot put last for the node, if it is of that generation. */
  stamp(nodeId: string, generation: number): Stamp | undefined;
  /** The snapshot itself, if its bytes are still here. */
  get(nodeId: string, generation: number): SnapshotPush | undefined;
  put(nodeId: string, push: SnapshotPush, holdsSecrets: boolean): void;
  delete(nodeId: string): void;
  /** Bytes of payloads held. */
  readonly bytes: number;
}

interface Remembered {
  readonly stamp: Stamp;
  readonly checksum: Uint8Array;
}

interface Held {
  readonly bytes: Uint8Array;
  /** Absent for one that is not sealed. */
  readonly nonce: Uint8Array | undefined;
}

export function stampOf(push: Pick<SnapshotPush, 'generation' | 'checksum'>): Stamp {
  return { generation: push.generation, checksum: Buffer.from(push.checksum).toString('hex') };
}

/**
 * @param maxBytes of payloads
 * @param maxNodes whose checksums are remembered
 */
export function createSnapshotCache(maxBytes: number, maxNodes: number): SnapshotCache {
  const key = randomBytes(xchachaKeyBytes);
  const remembered = createLru<string, Remembered>({ maxEntries: maxNodes });
  const payloads = createLru<string, Held>({
    maxEntries: maxNodes,
    maxWeight: maxBytes,
    weigh: (held) => held.bytes.length,
  });

  const associated = (nodeId: string, generation: number): Uint8Array => Buffer.from(`${nodeId}@${generation}`);

  return {
    stamp(nodeId, generation) {
      const stamp = remembered.get(nodeId)?.stamp;
      return stamp?.generation === generation ? stamp : undefined;
    },
    get(nodeId, generation) {
      const known = remembered.get(nodeId);
      const held = payloads.get(nodeId);
      if (known?.stamp.generation !== generation || held === undefined) return undefined;
      const payload =
        held.nonce === undefined
          ? held.bytes
          : openXChaCha(key, held.nonce, held.bytes, associated(nodeId, generation));
      return payload === undefined ? undefined : { generation, checksum: known.checksum, payload };
    },
    put(nodeId, push, holdsSecrets) {
      const nonce = holdsSecrets ? randomBytes(xchachaNonceBytes) : undefined;
      const held =
        nonce === undefined
          ? { bytes: push.payload, nonce }
          : { bytes: sealXChaCha(key, nonce, push.payload, associated(nodeId, push.generation)), nonce };
      remembered.set(nodeId, { stamp: stampOf(push), checksum: push.checksum });
      payloads.set(nodeId, held);
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
