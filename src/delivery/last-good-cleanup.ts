/**
 * Deletes the last-good snapshots of deleted nodes, one after the other, in the background. Only for nodes that are
 * still deleted once the fold is up to date: during a replay a node may be deleted and restored.
 */
import { sleep } from '../kernel/background.js';
import { storeRetry } from '../kernel/retry.js';

export interface LastGoodCleanupDeps {
  mayRemove(): boolean;
  isDeleted(nodeId: string): boolean;
  /** Idempotent. */
  remove(nodeId: string): Promise<void>;
  onError(nodeId: string, error: unknown): void;
}

export interface LastGoodCleanup {
  add(nodeId: string): void;
  /** Removing may be allowed again. */
  wake(): void;
  close(): Promise<void>;
}

export function createLastGoodCleanup(deps: LastGoodCleanupDeps): LastGoodCleanup {
  const stop = new AbortController();
  const waiting = new Set<string>();
  let running: Promise<void> | undefined;

  const run = async (): Promise<void> => {
    for (const nodeId of waiting) {
      if (stop.signal.aborted || !deps.mayRemove()) return;
      try {
        if (deps.isDeleted(nodeId)) await deps.remove(nodeId);
        waiting.delete(nodeId);
      } catch (error) {
        deps.onError(nodeId, error);
        await sleep(storeRetry.maxMs, stop.signal);
      }
    }
  };

  const wake = (): void => {
    if (running !== undefined || waiting.size === 0 || stop.signal.aborted || !deps.mayRemove()) return;
    running = run().finally(() => {
      running = undefined;
      wake();
    });
  };

  return {
    add(nodeId) {
      waiting.add(nodeId);
      wake();
    },
    wake,
    async close() {
      stop.abort();
      await running;
    },
  };
}
