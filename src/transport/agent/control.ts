/**
 * Control streams before a session is attached: waits for the first frame, finds the pending session that it names, and
 * starts the live session. Implements `docs/contract/agent-protocol.md#control`: attaching, and the rows of the table of
 * ends that apply before it.
 */
import type { Clock } from '../../kernel/clock.js';
import { limits } from '../../kernel/limits.js';
import type { PendingTable } from './admission/pending-table.js';
import type { AgentStream } from './agent-stream.js';
import { closeReasons } from './close-reasons.js';
import type { CloseReason } from './close-reasons.js';
import { decodeFrame } from './frame.js';
import { startLiveSession } from './live-session.js';
import type { LiveSession, LiveSessionDeps } from './live-session.js';

interface ControlDeps {
  readonly clock: Clock;
  readonly pending: PendingTable;
  readonly session: LiveSessionDeps;
  draining(): boolean;
  /** A stream was ended before a session was attached to it. */
  onUnattached(reason: CloseReason, stream: AgentStream): void;
}

interface ControlStreams {
  open(stream: AgentStream): void;
  /** Ends streams that have sent no frame within 10 s. */
  sweep(now: number): void;
  /** Ends all streams that have sent no frame. */
  drain(): void;
}

interface WaitingStream {
  readonly openedAt: number;
  end(reason: CloseReason): void;
}

/** Without a session there is no key to send a SessionClose with. */
const drainingUnattached: CloseReason = { ...closeReasons.draining(0), close: undefined };

export function createControlStreams(deps: ControlDeps): ControlStreams {
  /** In the order of opening. Bounded by the connections and their streams. */
  const waiting = new Set<WaitingStream>();

  const open = (stream: AgentStream): void => {
    const openedAt = deps.clock.monotonic();
    let session: LiveSession | undefined;
    let cancelForcedClose: (() => void) | undefined;
    const entry: WaitingStream = {
      openedAt,
      end(reason) {
        waiting.delete(entry);
        if (cancelForcedClose !== undefined) return;
        // Whoever had no chance to attach has done nothing wrong.
        stream.judge(reason === drainingUnattached ? 'sound' : 'faulty');
        deps.onUnattached(reason, stream);
        cancelForcedClose = endUnattached(stream, reason);
      },
    };

    const attach = (bytes: Uint8Array): void => {
      const frame = decodeFrame(bytes);
      if (frame === undefined || frame.ciphertext.length > limits.agent.ciphertextBytes)
        return entry.end(closeReasons.malformed);
      const pending = deps.pending.take(frame.sessionId, stream.connection, deps.clock.monotonic());
      if (pending === undefined) return entry.end(closeReasons.unauthenticated);
      waiting.delete(entry);
      stream.judge('sound');
      session = startLiveSession(deps.session, pending, stream, openedAt);
      session.frame(frame);
    };

    waiting.add(entry);
    stream.start({
      message(bytes) {
        if (session !== undefined) session.message(bytes);
        else if (cancelForcedClose === undefined) attach(bytes);
      },
      halfClosed() {
        if (session === undefined) entry.end(closeReasons.unauthenticated);
        else session.halfClosed();
      },
      gone() {
        waiting.delete(entry);
        cancelForcedClose?.();
        session?.gone();
      },
    });
    if (deps.draining()) entry.end(drainingUnattached);
  };

  return {
    open,
    sweep(now) {
      for (const entry of waiting) {
        if (now - entry.openedAt <= limits.agent.helloWithinMs) return;
        entry.end(closeReasons.unauthenticated);
      }
    },
    drain() {
      for (const entry of waiting) entry.end(drainingUnattached);
    },
  };
}

/**
 * Sends the bare status, and closes the connection if the peer does not take it.
 * @returns a function that cancels the forced close
 */
function endUnattached(stream: AgentStream, reason: CloseReason): () => void {
  stream.close(reason.status);
  const forcedClose = setTimeout(() => stream.kill(), limits.agent.closeGraceMs);
  return () => clearTimeout(forcedClose);
}
