/**
 * How much may be read. Per node: payloads, the entries in them, and bytes. A payload's cost is known only after
 * reading it, so it becomes a debt, and the session reads nothing more until the debt is paid. Budgets belong to nodes,
 * so a node that opens sessions in a loop gains nothing. Over all sessions: the bytes of messages whose last fragment
 * has not arrived. `reading.ts` pauses reading. Implements `docs/contract/agent-protocol.md#control`, "what one session
 * can cost" and "256 MiB of unfinished messages in all".
 */
import type { Clock } from '../../kernel/clock.js';
import { limits } from '../../kernel/limits.js';
import { createLru } from '../../kernel/lru.js';
import { getOrMake } from '../../kernel/maps.js';
import { createTokenBucket, type TokenBucket } from '../../kernel/token-bucket.js';

/** Nodes whose read budget is remembered; more than can be connected. */
const readBudgets = 50_000;

/** Each budget is a rate and a burst. */
export type ReadLimits = {
  readonly [what in 'payloads' | 'entries' | 'bytes']: { readonly perSecond: number; readonly burst: number };
};

/** @returns the budget of a node */
export function createReadBudgets(
  clock: Clock,
  allowed: ReadLimits = limits.agent.reading,
): (nodeId: string) => ReadBudget {
  const budgets = createLru<ReadBudget>(readBudgets);
  return (nodeId) => getOrMake(budgets, nodeId, () => new ReadBudget(clock, allowed));
}

/** A class, because each node has one: see `src/channel/noise/cipher-state.ts`. */
export class ReadBudget {
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

  /** A frame was read. */
  frame(bytes: number): void {
    this.#bytes.take(this.#clock.monotonic(), bytes);
  }
  /** A heartbeat, metrics report or config request was read, with its list entries. */
  payload(entries: number): void {
    const now = this.#clock.monotonic();
    this.#payloads.take(now);
    if (entries > 0) this.#entries.take(now, entries);
  }
  /** True while in debt: nothing more should be read. */
  get spent(): boolean {
    const now = this.#clock.monotonic();
    return this.#payloads.wait(now, 0) > 0 || this.#entries.wait(now, 0) > 0 || this.#bytes.wait(now, 0) > 0;
  }
}

/** The bytes of unfinished messages that all sessions hold together. */
export interface UnfinishedBytes {
  total: number;
  readonly max: number;
}
