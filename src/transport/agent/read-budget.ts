/**
 * What may be read of one node: payloads, the entries in them, bytes. The cost is known only after a payload was read, so
 * it becomes a debt, and the session reads nothing more until it is paid. By node and not by session: a node that opens
 * sessions in a loop gains nothing. Who pauses reading is `live-session.ts`. Implements
 * `docs/contract/agent-protocol.md#control`, "what one session can cost".
 */
import type { Clock } from '../../kernel/clock.js';
import { limits } from '../../kernel/limits.js';
import { createLru } from '../../kernel/lru.js';
import { createTokenBucket } from '../../kernel/token-bucket.js';
import type { TokenBucket } from '../../kernel/token-bucket.js';
import { tuning } from './tuning.js';

export interface ReadBudget {
  /** A frame was read. */
  frame(bytes: number): void;
  /** A heartbeat, metrics report or config request was read, with its list entries. */
  payload(entries: number): void;
  /** True while a debt is left: nothing more should be read. */
  readonly spent: boolean;
}

interface ReadBudgets {
  of(nodeId: string): ReadBudget;
}

/** Each a rate, and how much of it may be used at once. */
export type ReadLimits = {
  readonly [what in 'payloads' | 'entries' | 'bytes']: { readonly perSecond: number; readonly burst: number };
};

export function createReadBudgets(clock: Clock, allowed: ReadLimits = limits.agent.reading): ReadBudgets {
  const budgets = createLru<string, ReadBudget>({ maxEntries: tuning.readBudgets });
  return {
    of: (nodeId) => budgets.getOrCreate(nodeId, () => createReadBudget(clock, allowed)),
  };
}

function createReadBudget(clock: Clock, { payloads, entries, bytes }: ReadLimits): ReadBudget {
  const full = ({ perSecond, burst }: ReadLimits[keyof ReadLimits]): TokenBucket =>
    createTokenBucket(perSecond, burst, clock.monotonic());
  const buckets = { payloads: full(payloads), entries: full(entries), bytes: full(bytes) };
  return {
    frame: (count) => buckets.bytes.take(clock.monotonic(), count),
    payload(count) {
      const now = clock.monotonic();
      buckets.payloads.take(now);
      if (count > 0) buckets.entries.take(now, count);
    },
    get spent() {
      const now = clock.monotonic();
      return buckets.payloads.wait(now, 0) > 0 || buckets.entries.wait(now, 0) > 0 || buckets.bytes.wait(now, 0) > 0;
    },
  };
}
