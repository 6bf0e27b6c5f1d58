/**
 * Byte and session counters of a listener; each counts into the node's totals as well, which outlive the listener.
 */
export interface Counters {
  bytesIn: number;
  bytesOut: number;
  activeSessions: number;
  totalSessions: number;
  errorSessions: number;
}

export interface Meter {
  readonly values: Readonly<Counters>;
  /** From the client. */
  received(bytes: number): void;
  /** To the client. */
  sent(bytes: number): void;
  /** A session begins; the answer ends it, once, as failed or not. */
  begin(): (failed: boolean) => void;
  /** A session that was refused before it began. */
  refused(): void;
}

export function createMeter(parent?: Meter): Meter {
  const values: Counters = { bytesIn: 0, bytesOut: 0, activeSessions: 0, totalSessions: 0, errorSessions: 0 };
  return {
    values,
    received(bytes) {
      values.bytesIn += bytes;
      parent?.received(bytes);
    },
    sent(bytes) {
      values.bytesOut += bytes;
      parent?.sent(bytes);
    },
    begin() {
      values.totalSessions += 1;
      values.activeSessions += 1;
      const endParent = parent?.begin();
      let open = true;
      return (failed) => {
        if (!open) return;
        open = false;
        values.activeSessions -= 1;
        if (failed) values.errorSessions += 1;
        endParent?.(failed);
      };
    },
    refused() {
      values.totalSessions += 1;
      values.errorSessions += 1;
      parent?.refused();
    },
  };
}
