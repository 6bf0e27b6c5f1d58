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
    of: (nodeId) => budgets.getOrCreate(nodeId, () => new NodeReadBudget(clock, allowed)),
  };
}

/** A class, because there is one for each node: see `src/channel/noise/cipher-state.ts`. */
class NodeReadBudget implements ReadBudget {
  readonly #clock: Clock;
  readonly #payloads: TokenBucket;
  readonly #entries: TokenBucket;
  readonly #bytes: TokenBucket;

  constructor(clock: Clock, { payloads, entries, bytes }: ReadLimits) {
    const now = clock.monotonic();
    this.#clock = clock;
    this.#payloads = createTokenBucket(payloads.perSecond, payloads.burst, now);
    this.#entries = createTokenBucket(entries.perSecond, entries.burst, now);
    this.#bytes = createTokenBucket(bytes.perSecond, bytes.burst, now);
  }

  frame(bytes: number): void {
    this.#bytes.take(this.#clock.monotonic(), bytes);
  }
  payload(entries: number): void {
    const now = this.#clock.monotonic();
    this.#payloads.take(now);
    if (entries > 0) this.#entries.take(now, entries);
  }
  get spent(): boolean {
    const now = this.#clock.monotonic();
    return this.#payloads.wait(now, 0) > 0 || this.#entries.wait(now, 0) > 0 || this.#bytes.wait(now, 0) > 0;
  }
}
