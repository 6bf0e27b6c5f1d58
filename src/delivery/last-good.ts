/**
 * Last-good snapshots: the exact bytes of the newest snapshot that each node applied, sealed, in the read store. A node
 * that rejects a newer snapshot is served these bytes, because an earlier compiler's output cannot be compiled again.
 * Implements `docs/contract/agent-protocol.md#configuration`.
 */
import { streams } from '../kernel/event.js';
import { createKeyedBatch } from '../kernel/keyed-batch.js';
import { logsWarning, type Logger } from '../kernel/logger.js';
import type { Keyring, Place } from '../security/keyring.js';
import type { Collection, CollectionSpec, ReadStore } from '../storage/read-store.js';
import { shutdownMs } from '../kernel/closers.js';
import { stampOf, type Stamp } from './target.js';
import type { SnapshotPush } from './port.js';
import { tuning } from './tuning.js';
import { storeRetry } from '../kernel/retry.js';
import { startLoop } from '../kernel/background.js';

/** Bounds of a batch of writes, and of everything that waits. */
const lastGoodBatchMs = 250;
const lastGoodBatchEntries = 256;
const MiB = 1024 * 1024;
const lastGoodBatchBytes = 4 * MiB;
const lastGoodWaitingBytes = 64 * MiB;

/** @internal exported for tests */
export const lastGoodSnapshots: CollectionSpec = { name: 'kept_snapshots', version: 1 };

type LastGoodFields = {
  readonly generation: number;
  /** Lower-case hex. */
  readonly checksum: string;
  readonly sealed: Uint8Array;
};

export interface LastGoodSnapshotsDeps {
  readonly readStore: ReadStore;
  readonly keyring: Pick<Keyring, 'sealBytes' | 'openBytes'>;
  readonly logger: Logger;
}

export type LastGoodSnapshots = Awaited<ReturnType<typeof openLastGoodSnapshots>>;

export async function openLastGoodSnapshots(deps: LastGoodSnapshotsDeps) {
  const { keyring, logger } = deps;
  const collection: Collection<LastGoodFields> = await deps.readStore.collection<LastGoodFields>(lastGoodSnapshots);

  /** The generation is part of the associated data, so that an older snapshot cannot replace a newer one. */
  const place = (nodeId: string, generation: number): Place => ({
    stream: streams.fleet,
    resourceId: nodeId,
    field: `kept_snapshot/${generation}`,
  });

  const sealed = (nodeId: string, push: SnapshotPush): { id: string; fields: LastGoodFields } => {
    const bytes = keyring.sealBytes(push.payload, place(nodeId, push.generation));
    return { id: nodeId, fields: { ...stampOf(push), sealed: bytes } };
  };

  const batch = createKeyedBatch<SnapshotPush>({
    everyMs: lastGoodBatchMs,
    batchEntries: lastGoodBatchEntries,
    batchWeight: lastGoodBatchBytes,
    maxEntries: tuning.rememberedNodes,
    maxWeight: lastGoodWaitingBytes,
    weigh: (push) => push.payload.length,
    write: async (entries) => {
      await collection.set(entries.map(([nodeId, push]) => sealed(nodeId, push)));
    },
    onError: logsWarning(logger, 'last-good snapshots could not be written yet'),
    onDropped: (nodeId) =>
      logger.warn({ node_id: nodeId }, 'the last-good snapshot of the node was dropped: too many wait to be written'),
    retry: storeRetry,
    closeWithinMs: shutdownMs,
  });

  return {
    /** The stamp of the stored snapshot. @throws ServiceError `unavailable` */
    async stamp(nodeId: string): Promise<Stamp | undefined> {
      const waiting = batch.get(nodeId);
      if (waiting !== undefined) return stampOf(waiting);
      const fields = (await collection.get(nodeId))?.fields;
      return fields === undefined ? undefined : { generation: fields.generation, checksum: fields.checksum };
    },
    /** The snapshot; undefined if another one is stored by now, or it cannot be opened. */
    async load(nodeId: string, stamp: Stamp): Promise<SnapshotPush | undefined> {
      const waiting = batch.get(nodeId);
      if (waiting !== undefined) return stampOf(waiting).checksum === stamp.checksum ? waiting : undefined;
      const fields = (await collection.get(nodeId))?.fields;
      if (fields?.generation !== stamp.generation || fields.checksum !== stamp.checksum) return undefined;
      const opened = keyring.openBytes(fields.sealed, place(nodeId, stamp.generation));
      if (opened.kind === 'opened') {
        return {
          generation: stamp.generation,
          checksum: Buffer.from(stamp.checksum, 'hex'),
          payload: opened.plaintext,
        };
      }
      const { reason } = opened;
      logger.error({ node_id: nodeId, generation: stamp.generation, reason }, 'a last-good snapshot cannot be opened');
      return undefined;
    },
    /** Replaces the stored snapshot soon; does not wait. */
    save: (nodeId: string, push: SnapshotPush): void => batch.put(nodeId, push),
    /** Deletes the snapshot of a deleted node. */
    async remove(nodeId: string): Promise<void> {
      batch.delete(nodeId);
      await collection.remove([nodeId]);
    },
    flush: batch.flush,
    close: batch.close,
  };
}

export interface NodeCleanupDeps {
  mayRemove(): boolean;
  isDeleted(nodeId: string): boolean;
  /** Idempotent. */
  remove(nodeId: string): Promise<void>;
  /** Called for the first of several failures in a row. */
  onError(nodeId: string, error: unknown): void;
}

export type NodeCleanup = ReturnType<typeof startNodeCleanup>;

/** Removes what is kept of deleted nodes, one node after the other, and retries after failures. */
export function startNodeCleanup(deps: NodeCleanupDeps, everyMs = 1_000) {
  const waiting = new Set<string>();
  let tried = '';
  const turn = async (signal: AbortSignal): Promise<void> => {
    for (const nodeId of waiting) {
      if (signal.aborted || !deps.mayRemove()) return;
      tried = nodeId;
      if (deps.isDeleted(nodeId)) await deps.remove(nodeId);
      waiting.delete(nodeId);
    }
  };
  const loop = startLoop(everyMs, turn, (error) => deps.onError(tried, error));
  return { add: (nodeId: string): void => void waiting.add(nodeId), close: loop.close };
}
