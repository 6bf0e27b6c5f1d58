/**
 * Deletes what is kept of deleted nodes, one after the other, in the background, and only of nodes that are still gone
 * once the fold is up to date: while a log is replayed a node may be deleted and come back.
 * Implements `docs/contract/domain.md` ("Deleting a data key shreds the secret") for kept snapshots.
 */
import { sleep } from '../kernel/background.js';
import { storeRetry } from '../kernel/retry.js';

export interface ForgettingDeps {
  mayForget(): boolean;
  isGone(nodeId: string): boolean;
  /** Idempotent. */
  forget(nodeId: string): Promise<void>;
  onError(nodeId: string, error: unknown): void;
}

export interface Forgetting {
  add(nodeId: string): void;
  wake(): void;
  close(): Promise<void>;
}

export function createForgetting(deps: ForgettingDeps): Forgetting {
  const stop = new AbortController();
  const waiting = new Set<string>();
  let running: Promise<void> | undefined;

  const run = async (): Promise<void> => {
    for (const nodeId of waiting) {
      if (stop.signal.aborted || !deps.mayForget()) return;
      try {
        if (deps.isGone(nodeId)) await deps.forget(nodeId);
        waiting.delete(nodeId);
      } catch (error) {
        deps.onError(nodeId, error);
        await sleep(storeRetry.maxMs, stop.signal);
      }
    }
  };

  const wake = (): void => {
    if (running !== undefined || waiting.size === 0 || stop.signal.aborted || !deps.mayForget()) return;
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
