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

interface UnfinishedShare {
  /** Replaces what this session holds. */
  hold(bytes: number): void;
  /** All sessions together hold more than the bound. */
  readonly exceeded: boolean;
}

export function createUnfinishedBytes(maxBytes: number): UnfinishedBytes {
  let total = 0;
  return {
    get total() {
      return total;
    },
    share() {
      let held = 0;
      return {
        hold(bytes) {
          total += bytes - held;
          held = bytes;
        },
        get exceeded() {
          return total > maxBytes;
        },
      };
    },
  };
}
