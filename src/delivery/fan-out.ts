/**
 * Brings changed configuration to the sessions of this instance: a set of changed nodes, served in slices with turns of the
 * event loop in between. A node that changes again while waiting keeps its place and is served once, with its newest state, so
 * that a stream of edits delays nobody. Implements `docs/contract/agent-protocol.md#configuration` and `docs/contract/domain.md#generation`.
 */
import { yieldToEventLoop } from '../kernel/background.js';
import { backoff, storeRetry } from '../kernel/retry.js';

/** Nodes compiled and offered before the event loop gets a turn. @internal exported for tests */
export const sliceNodes = 32;
/** Bytes encoded before the event loop gets a turn. @internal exported for tests */
export const sliceBytes = 1024 * 1024;

export interface FanOutDeps {
  /** While false, changed nodes wait. */
  mayPush(): boolean;
  hasSession(nodeId: string): boolean;
  /** Offers the node's newest snapshot to its sessions. @returns the bytes made for it */
  serve(nodeId: string): number;
  /** A node could not be served; it is retried. */
  onError(nodeId: string, error: unknown): void;
  /** All changed nodes are served, or pushing is no longer allowed. */
  onRest?(): void;
}

export function createFanOut(deps: FanOutDeps) {
  const stop = new AbortController();
  // In the order of the first change: a Set keeps the place of a value that is added again.
  const changed = new Set<string>();
  let running: Promise<void> | undefined;
  let failures = 0;

  /** Nodes that could not be served. They are retried together later, so that they delay no others. */
  const failed = new Set<string>();
  let retry: NodeJS.Timeout | undefined;

  const retryLater = (): void => {
    if (retry !== undefined || stop.signal.aborted) return;
    failures += 1;
    retry = setTimeout(
      () => {
        retry = undefined;
        const again = [...failed];
        failed.clear();
        touch(again);
      },
      backoff(storeRetry, failures),
    );
    retry.unref();
  };

  const serveSlice = (): void => {
    let nodes = 0;
    let bytes = 0;
    for (const nodeId of changed) {
      if (nodes >= sliceNodes || bytes >= sliceBytes) return;
      if (!deps.mayPush() || stop.signal.aborted) return;
      changed.delete(nodeId);
      nodes += 1;
      try {
        bytes += deps.serve(nodeId);
        if (failed.size === 0) failures = 0;
      } catch (error) {
        failed.add(nodeId);
        deps.onError(nodeId, error);
        retryLater();
      }
    }
  };

  const run = async (): Promise<void> => {
    while (changed.size > 0 && deps.mayPush() && !stop.signal.aborted) {
      await yieldToEventLoop();
      serveSlice();
    }
  };

  const wake = (): void => {
    if (running !== undefined || changed.size === 0 || stop.signal.aborted || !deps.mayPush()) return;
    running = run().finally(() => {
      running = undefined;
      // A node may have changed after the loop's last look at the set.
      wake();
      if (running === undefined) deps.onRest?.();
    });
  };

  const touch = (nodeIds: Iterable<string>): void => {
    for (const nodeId of nodeIds) if (deps.hasSession(nodeId)) changed.add(nodeId);
    wake();
  };

  return {
    touch,
    /** Pushing may be allowed again. */
    wake,
    /** Nodes are being served. */
    get running(): boolean {
      return running !== undefined;
    },
    /** Changed nodes that have not been served. */
    get waiting(): number {
      return changed.size + failed.size;
    },
    async close(): Promise<void> {
      stop.abort();
      clearTimeout(retry);
      await running;
      changed.clear();
      failed.clear();
    },
  };
}
