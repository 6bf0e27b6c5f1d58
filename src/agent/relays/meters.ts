/**
 * Measures traffic: counts bytes and sessions, also the bytes of a socket that other code reads and writes, and keeps
 * the latest measurements with their percentiles.
 */
import type { Socket } from 'node:net';

/** Counters of a listener or a link. */
export interface Counters {
  bytesIn: number;
  bytesOut: number;
  activeSessions: number;
  totalSessions: number;
  errorSessions: number;
  /** TLS handshakes, on either side. */
  handshakeFailures: number;
}

/** Counts for itself and for its parent: the node's totals, which outlive the listener. */
export interface Meter {
  readonly values: Readonly<Counters>;
  /** Counts bytes from the client. */
  received(bytes: number): void;
  /** Counts bytes to the client. */
  sent(bytes: number): void;
  /** Counts a session that starts. @returns a function to call once, when it ends */
  begin(): (failed: boolean) => void;
  /** Counts a session refused before it started. */
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
      return (failed) => {
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

/** The last `capacity` measurements and their percentiles. */
export interface Samples {
  add(value: number): void;
  /** The percentile by nearest rank; 0 without measurements. `share` is 0..1. */
  percentile(share: number): number;
  clear(): void;
}

export function createSamples(capacity: number): Samples {
  let values: number[] = [];
  let next = 0;
  return {
    add(value) {
      values[next] = value;
      next = (next + 1) % capacity;
    },
    percentile(share) {
      if (values.length === 0) return 0;
      const sorted = values.toSorted((a, b) => a - b);
      return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(share * sorted.length) - 1))] ?? 0;
    },
    clear() {
      values = [];
      next = 0;
    },
  };
}

/**
 * Counts the bytes of a socket that other code reads and writes.
 * @param received called with the bytes read since the last call
 * @param sent called with the bytes written since the last call
 * @returns a function that counts: call it after bytes were moved, and once when the socket is closed
 */
export function followBytes(
  socket: Socket,
  received: (bytes: number) => void,
  sent: (bytes: number) => void,
): () => void {
  let read = 0;
  let written = 0;
  return () => {
    const now = { read: socket.bytesRead, written: socket.bytesWritten };
    if (now.read > read) received(now.read - read);
    if (now.written > written) sent(now.written - written);
    read = Math.max(read, now.read);
    written = Math.max(written, now.written);
  };
}
