/**
 * How much may be read. One node: payloads, the entries in them, and bytes. The cost of a payload is known only after it was
 * read, so it becomes a debt, and the session reads nothing more until the debt is paid. Budgets belong to nodes, so a node
 * that opens sessions in a loop gains nothing. All sessions together: the bytes of messages whose last fragment has not come.
 * Reading is paused in `reading.ts`. Implements `docs/contract/agent-protocol.md#control`, "what one session can cost" and
 * "256 MiB of unfinished messages in all".
 */
import type { Clock } from '../../kernel/clock.js';
import { limits } from '../../kernel/limits.js';
import { createLru } from '../../kernel/lru.js';
import { createTokenBucket } from '../../kernel/token-bucket.js';
import type { TokenBucket } from '../../kernel/token-bucket.js';

/** Nodes whose budget of reading is remembered; more than can be connected. */
const readBudgets = 50_000;

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
  const budgets = createLru<string, ReadBudget>({ maxEntries: readBudgets });
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

export interface UnfinishedBytes {
  /** Held by all sessions together. */
  readonly total: number;
  /** The part of one session, at first 0 bytes. */
  share(): UnfinishedShare;
}

export interface UnfinishedShare {
  /** Replaces what this session holds. */
  hold(bytes: number): void;
  /** All sessions together hold more than the bound. */
  readonly exceeded: boolean;
}

/** A class, because there is one for each agent: see `src/channel/noise/cipher-state.ts`. */
class Share implements UnfinishedShare {
  readonly #all: { total: number; readonly maxBytes: number };
  #held = 0;

  constructor(all: { total: number; readonly maxBytes: number }) {
    this.#all = all;
  }
  get exceeded(): boolean {
    return this.#all.total > this.#all.maxBytes;
  }
  hold(bytes: number): void {
    this.#all.total += bytes - this.#held;
    this.#held = bytes;
  }
}

export function createUnfinishedBytes(maxBytes: number): UnfinishedBytes {
  const all = { total: 0, maxBytes };
  return {
    get total() {
      return all.total;
    },
    share: () => new Share(all),
  };
}
