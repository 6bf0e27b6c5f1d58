/**
 * Recognises an agent that sends too much besides the frames of its session, such as pings: HTTP/2 answers them, and
 * pausing reads does not hold them back.
 */
import type { AgentConnection } from '../listener/connection.js';

/**
 * What a connection may carry besides the ciphertexts of its session. Acknowledging a snapshot of 64 MiB takes some 50
 * KiB, and data waiting in the windows of HTTP/2 counts until it is read.
 */
const besideFrames = {
  burstBytes: 512 * 1024,
  bytesPerSecond: 20 * 1024,
  /** On the wire, a frame has headers of gRPC, HTTP/2 and perhaps TLS, and may be split into pieces. */
  wireFactor: 2,
  wireBytes: 128,
} as const;

/** A class, because each agent has one: see `src/channel/noise/cipher-state.ts`. */
export class BesideFrames {
  readonly #connection: AgentConnection;
  /** Until when the connection is credited, monotonic milliseconds. */
  #creditedAt: number;

  constructor(connection: AgentConnection, now: number) {
    this.#connection = connection;
    this.#creditedAt = now;
  }

  /** Credits the bytes of a frame on the wire. */
  frame(bytes: number): void {
    this.#connection.answered(besideFrames.wireFactor * bytes + besideFrames.wireBytes);
  }

  isFlood(now: number): boolean {
    this.#connection.answered(((now - this.#creditedAt) * besideFrames.bytesPerSecond) / 1_000);
    this.#creditedAt = now;
    return this.#connection.unansweredBytes > besideFrames.burstBytes;
  }
}
