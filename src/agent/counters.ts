/**
 * Byte and session counters of a listener or a link. A meter also counts into its parent: the node's totals, which
 * outlive the listener.
 */
export interface Counters {
  bytesIn: number;
  bytesOut: number;
  activeSessions: number;
  totalSessions: number;
  errorSessions: number;
  /** TLS handshakes, of either side. */
  handshakeFailures: number;
}

export interface Meter {
  readonly values: Readonly<Counters>;
  /** Counts bytes from the client. */
  received(bytes: number): void;
  /** Counts bytes to the client. */
  sent(bytes: number): void;
  /**
   * Counts a session that begins.
   * @returns a function that ends the session; only its first call counts
   */
  begin(): (failed: boolean) => void;
  /** Counts a session that was refused before it began. */
  refused(): void;
  handshakeFailed(): void;
}

export function createMeter(parent?: Meter): Meter {
  const values: Counters = {
    bytesIn: 0,
    bytesOut: 0,
    activeSessions: 0,
    totalSessions: 0,
    errorSessions: 0,
    handshakeFailures: 0,
  };
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
    handshakeFailed() {
      values.handshakeFailures += 1;
      parent?.handshakeFailed();
    },
  };
}
