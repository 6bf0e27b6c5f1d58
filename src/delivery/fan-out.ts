/**
 * Brings changed configuration to the sessions that are there: a set of changed nodes, worked off in slices that leave
 * the event loop free. A node that changes again while it waits keeps its place and is served once, with its state of
 * that moment; nothing is postponed, so a stream of edits starves nobody, and no queue can grow beyond one entry per
 * node. Implements `docs/contract/agent-protocol.md` ("Large fan-outs are sent in slices") and `docs/contract/domain.md` ("Nothing is pushed while
 * an instance catches up").
 */
import { yieldToEventLoop } from '../kernel/background.js';
import { backoff, storeRetry } from '../kernel/retry.js';
import { tuning } from './tuning.js';

export interface FanOutDeps {
  /** False while nothing may be pushed: what is changed waits. */
  mayPush(): boolean;
  hasSession(nodeId: string): boolean;
  /** Offers the node's newest state to its sessions; answers the bytes that had to be made for it. */
  serve(nodeId: string): Promise<number>;
  /** A node could not be served now; it is tried again. */
  onError(nodeId: string, error: unknown): void;
}

export interface FanOut {
  touch(nodeIds: Iterable<string>): void;
  /** Pushing may be allowed again. */
  wake(): void;
  /** Nodes that wait. */
  readonly waiting: number;
  close(): Promise<void>;
}

export function createFanOut(deps: FanOutDeps): FanOut {
  const stop = new AbortController();
  // In the order of their first change: a Set keeps the place of what is added again.
  const changed = new Set<string>();
  let running: Promise<void> | undefined;
  let failures = 0;

  /** Could not be served: they come back together, later, and hold nobody else up meanwhile. */
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

  const serveSlice = async (): Promise<void> => {
    let nodes = 0;
    let bytes = 0;
    for (const nodeId of changed) {
      if (nodes >= tuning.sliceNodes || bytes >= tuning.sliceBytes) return;
      if (!deps.mayPush() || stop.signal.aborted) return;
      changed.delete(nodeId);
      nodes += 1;
      try {
        bytes += await deps.serve(nodeId);
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
      // First, too: whoever touched a node gets its turn back before the work begins.
      await yieldToEventLoop();
      await serveSlice();
    }
  };

  const wake = (): void => {
    if (running !== undefined || changed.size === 0 || stop.signal.aborted || !deps.mayPush()) return;
    running = run().finally(() => {
      running = undefined;
      // Between the last look at the set and now another node may have changed.
      wake();
    });
  };

  const touch = (nodeIds: Iterable<string>): void => {
    for (const nodeId of nodeIds) if (deps.hasSession(nodeId)) changed.add(nodeId);
    wake();
  };

  return {
    touch,
    wake,
    get waiting() {
      return changed.size + failed.size;
    },
    async close() {
      stop.abort();
      clearTimeout(retry);
      await running;
      changed.clear();
      failed.clear();
    },
  };
}
