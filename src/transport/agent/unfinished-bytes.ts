/**
 * Counts the bytes that all sessions hold of messages whose last fragment has not come, against one bound.
 * Implements `docs/contract/agent-protocol.md#control` ("256 MiB of unfinished messages in all").
 */
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
