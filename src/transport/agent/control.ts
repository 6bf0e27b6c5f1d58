/**
 * Control streams before a session is attached: waits for the first frame, finds the pending session it names, and
 * starts the live session. Implements `docs/contract/agent-protocol.md#control`: attaching, and the rows of the table
 * of ends that apply before it.
 */
import type { Clock } from '../../kernel/clock.js';
import { limits } from '../../kernel/limits.js';
import type { PendingTable } from './admission/pending-table.js';
import type { AgentStream, StreamHandlers } from './agent-stream.js';
import { closeReasons, type CloseReason } from './close-reasons.js';
import { decodeFrame } from './frames.js';
import { startLiveSession } from './live-session.js';
import type { LiveSession, LiveSessionDeps } from './live-session-port.js';

interface ControlDeps {
  readonly clock: Clock;
  readonly pending: PendingTable;
  readonly session: LiveSessionDeps;
  draining(): boolean;
  /** A stream was ended before a session was attached to it. */
  onUnattached(reason: CloseReason, stream: AgentStream): void;
}

/** Without a session there is no key to send a SessionClose with. */
const drainingUnattached: CloseReason = { ...closeReasons.draining(0), close: undefined };

/**
 * A Control stream: waits for its first frame, then hands everything to the session. A class, because each agent has
 * one: see `src/channel/noise/cipher-state.ts`.
 */
class WaitingStream implements StreamHandlers {
  readonly #deps: ControlDeps;
  readonly #waiting: Set<WaitingStream>;
  readonly #stream: AgentStream;
  #session: LiveSession | undefined;
  #cancelForcedClose: (() => void) | undefined;
  readonly openedAt: number;

  constructor(deps: ControlDeps, waiting: Set<WaitingStream>, stream: AgentStream) {
    this.#deps = deps;
    this.#waiting = waiting;
    this.#stream = stream;
    this.openedAt = deps.clock.monotonic();
  }

  end(reason: CloseReason): void {
    this.#waiting.delete(this);
    if (this.#cancelForcedClose !== undefined) return;
    // An agent that had no chance to attach has done nothing wrong.
    this.#stream.judge(reason === drainingUnattached ? 'sound' : 'faulty');
    this.#deps.onUnattached(reason, this.#stream);
    this.#cancelForcedClose = endUnattached(this.#stream, reason);
  }
  message(bytes: Uint8Array): void {
    if (this.#session !== undefined) this.#session.message(bytes);
    else if (this.#cancelForcedClose === undefined) this.#attach(bytes);
  }
  halfClosed(): void {
    if (this.#session === undefined) this.end(closeReasons.unauthenticated);
    else this.#session.halfClosed();
  }
  gone(): void {
    this.#waiting.delete(this);
    this.#cancelForcedClose?.();
    this.#session?.gone();
  }
  #attach(bytes: Uint8Array): void {
    const { clock, pending } = this.#deps;
    const stream = this.#stream;
    const frame = decodeFrame(bytes);
    if (frame === undefined || frame.ciphertext.length > limits.agent.ciphertextBytes) {
      return this.end(closeReasons.malformed);
    }
    const opened = pending.take(frame.sessionId, stream.connection, clock.monotonic());
    if (opened === undefined) return this.end(closeReasons.unauthenticated);
    this.#waiting.delete(this);
    stream.judge('sound');
    this.#session = startLiveSession(this.#deps.session, opened, stream, this.openedAt);
    this.#session.frame(frame);
  }
}

export function createControlStreams(deps: ControlDeps) {
  /** In order of opening. Bounded by the connections and their streams. */
  const waiting = new Set<WaitingStream>();
  return {
    open(stream: AgentStream): void {
      const entry = new WaitingStream(deps, waiting, stream);
      waiting.add(entry);
      stream.start(entry);
      if (deps.draining()) entry.end(drainingUnattached);
    },
    /** Ends streams that have sent no frame within 10 s. */
    sweep(now: number): void {
      for (const entry of waiting) {
        if (now - entry.openedAt <= limits.agent.helloWithinMs) return;
        entry.end(closeReasons.unauthenticated);
      }
    },
    /** Ends all streams that have sent no frame. */
    drain(): void {
      for (const entry of waiting) entry.end(drainingUnattached);
    },
  };
}

/**
 * Sends the bare status, and closes the connection after a while, unless it carries a session by then.
 * @returns a function that cancels the forced close
 */
function endUnattached(stream: AgentStream, reason: CloseReason): () => void {
  stream.close(reason.status);
  const forcedClose = setTimeout(() => {
    if (!stream.connection.hasSession) stream.kill();
  }, limits.agent.closeGraceMs);
  return () => clearTimeout(forcedClose);
}
