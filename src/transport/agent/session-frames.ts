/**
 * What the frames of one session cost, and what else its connection carries: each frame is charged, counted and turned into what
 * the session's machine is told. `reading.ts` decides when a frame is read, `frames.ts` what it holds.
 */
import type { AgentConnection } from '../listener/connection.js';
import type { PendingSession } from './admission/pending-table.js';
import { jittered } from './close-reasons.js';
import { InboundFrames, type Frame, type Inbound } from './frames.js';
import type { LiveSessionDeps } from './live-session-port.js';
import type { ReadBudget } from './read-budget.js';
import type { SessionInput } from './session.js';

/** Base of the jittered `retry_after_ms` of OVERLOADED. */
const overloadRetryMs = 5_000;

/**
 * What a connection may carry besides the ciphertexts of its session, such as pings: HTTP/2 answers them, and pausing reads does
 * not hold them back. Acknowledging a snapshot of 64 MiB takes some 50 KiB, and data waiting in the windows of HTTP/2 counts
 * until it is read.
 */
const besideFrames = {
  burstBytes: 512 * 1024,
  bytesPerSecond: 20 * 1024,
  /** On the wire, a frame has headers of gRPC, HTTP/2 and perhaps TLS, and may be split into pieces. */
  wireFactor: 2,
  wireBytes: 128,
} as const;

/** A class, because each agent has one: see `src/channel/noise/cipher-state.ts`. */
export class SessionFrames {
  readonly #deps: Pick<LiveSessionDeps, 'counters' | 'unfinished' | 'random'>;
  readonly #budget: ReadBudget;
  readonly #connection: AgentConnection;
  readonly #inbound: InboundFrames;
  /** Its share of the unfinished bytes of all sessions. */
  #unfinishedBytes = 0;
  /** Until when the connection is credited what it may carry besides, monotonic milliseconds. */
  #creditedAt: number;

  constructor(
    deps: Pick<LiveSessionDeps, 'counters' | 'unfinished' | 'random'>,
    { noise, sessionId, connection }: PendingSession,
    budget: ReadBudget,
    now: number,
  ) {
    this.#deps = deps;
    this.#budget = budget;
    this.#connection = connection;
    this.#inbound = new InboundFrames(noise.receive, sessionId);
    this.#creditedAt = now;
  }

  /** A frame has been decrypted, so the sender is the agent. */
  get proven(): boolean {
    return this.#inbound.proven;
  }
  /** One gRPC message. */
  take(bytes: Uint8Array): SessionInput {
    return this.#charge(this.#inbound.take(bytes), bytes.length);
  }
  /** The same for a frame that is already decoded. */
  takeFrame(frame: Frame): SessionInput {
    return this.#charge(this.#inbound.takeFrame(frame), frame.ciphertext.length);
  }
  /** Whether the connection carries too much besides frames. */
  isFlood(now: number): boolean {
    this.#connection.answered(((now - this.#creditedAt) * besideFrames.bytesPerSecond) / 1_000);
    this.#creditedAt = now;
    return this.#connection.unansweredBytes > besideFrames.burstBytes;
  }
  /** Wipes the key and frees the unfinished message. */
  discard(): void {
    this.#holdUnfinished(0);
    this.#inbound.discard();
  }

  #charge(incoming: Inbound, bytes: number): SessionInput {
    const { counters, unfinished, random } = this.#deps;
    counters.framesIn += 1;
    this.#budget.frame(bytes);
    this.#connection.answered(besideFrames.wireFactor * bytes + besideFrames.wireBytes);
    this.#holdUnfinished(this.#inbound.heldBytes);
    if (unfinished.total <= unfinished.max || incoming.kind !== 'fragment') return incoming;
    return { kind: 'overloaded', retryAfterMs: jittered(overloadRetryMs, random) };
  }
  #holdUnfinished(bytes: number): void {
    this.#deps.unfinished.total += bytes - this.#unfinishedBytes;
    this.#unfinishedBytes = bytes;
  }
}
