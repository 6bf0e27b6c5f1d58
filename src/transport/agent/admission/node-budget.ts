/**
 * The budget of session offers of one node: 1 per second, burst 10. Only offers that authenticated are charged, so
 * nobody without the PSK can use it up; the first valid frame refunds one. Implements
 * `docs/contract/agent-protocol.md#opensession`.
 */
import type { Clock } from '../../../kernel/clock.js';
import { limits } from '../../../kernel/limits.js';
import { createLru } from '../../../kernel/lru.js';
import { createTokenBucket } from '../../../kernel/token-bucket.js';
import type { TokenBucket } from '../../../kernel/token-bucket.js';
import { tuning } from '../tuning.js';

export interface NodeBudget {
  /** Returns false if the node is over its budget. */
  charge(nodeId: string): boolean;
  refund(nodeId: string): void;
}

export function createNodeBudget(clock: Clock): NodeBudget {
  const buckets = createLru<string, TokenBucket>({ maxEntries: tuning.nodeBudgets });
  return {
    charge(nodeId) {
      const now = clock.monotonic();
      const { nodeOffersPerSecond, nodeOffersBurst } = limits.agent;
      const bucket = buckets.getOrCreate(nodeId, () => createTokenBucket(nodeOffersPerSecond, nodeOffersBurst, now));
      if (bucket.wait(now) > 0) return false;
      bucket.take(now);
      return true;
    },
    refund(nodeId) {
      buckets.get(nodeId)?.give(clock.monotonic());
    },
  };
}
