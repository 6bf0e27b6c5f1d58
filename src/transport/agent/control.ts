/**
 * Control streams before they are sessions: waits for the first frame, finds the pending session that it names, and
 * hands over. Implements `docs/contract/agent-protocol.md#control` ("A session attaches once, on the HTTP/2 connection that opened
 * it") and the rows of the table of ends that come before a session.
 */
import type { Clock } from '../../kernel/clock.js';
import { limits } from '../../kernel/limits.js';
import type { PendingTable } from './admission/pending-table.js';
import type { AgentStream } from './agent-stream.js';
import { ends } from './close-reasons.js';
import type { End } from './close-reasons.js';
import { decodeFrame } from './frame.js';
import { startLiveSession } from './live-session.js';
import type { LiveSession, LiveSessionDeps } from './live-session.js';

export interface ControlDeps {
  readonly clock: Clock;
  readonly pending: PendingTable;
  readonly session: LiveSessionDeps;
  draining(): boolean;
  /** A stream ended before it was a session. */
  onUnattached(end: End): void;
}

export interface ControlStreams {
  open(stream: AgentStream): void;
  /** Ends streams that have sent no frame for 10 s. */
  sweep(now: number): void;
  /** Ends all that have sent no frame. */
  drain(): void;
}

interface Waiting {
  readonly openedAt: number;
  end(ending: End): void;
}

export function createControlStreams(deps: ControlDeps): ControlStreams {
  /** In the order of opening. Bounded by connections and their streams. */
  const waiting = new Set<Waiting>();

  const open = (stream: AgentStream): void => {
    const openedAt = deps.clock.monotonic();
    let session: LiveSession | undefined;
    let clearCut: (() => void) | undefined;
    const entry: Waiting = {
      openedAt,
      end(ending) {
        waiting.delete(entry);
        if (clearCut !== undefined) return;
        deps.onUnattached(ending);
        clearCut = endUnattached(stream, ending);
      },
    };

    const attach = (bytes: Uint8Array): void => {
      const frame = decodeFrame(bytes);
      if (frame === undefined || frame.ciphertext.length > limits.agent.ciphertextBytes)
        return entry.end(ends.malformed);
      const pending = deps.pending.take(frame.sessionId, stream.connection, deps.clock.monotonic());
      if (pending === undefined) return entry.end(ends.unauthenticated);
      waiting.delete(entry);
      session = startLiveSession(deps.session, pending, stream, openedAt);
      session.frame(frame);
    };

    waiting.add(entry);
    stream.start({
      message(bytes) {
        if (session !== undefined) session.message(bytes);
        else if (clearCut === undefined) attach(bytes);
      },
      halfClosed() {
        if (session === undefined) entry.end(ends.unauthenticated);
        else session.halfClosed();
      },
      gone() {
        waiting.delete(entry);
        clearCut?.();
        session?.gone();
      },
    });
    if (deps.draining()) entry.end({ ...ends.draining(0), close: undefined });
  };

  return {
    open,
    sweep(now) {
      for (const entry of waiting) {
        if (now - entry.openedAt <= limits.agent.helloWithinMs) return;
        entry.end(ends.unauthenticated);
      }
    },
    drain() {
      for (const entry of waiting) entry.end({ ...ends.draining(0), close: undefined });
    },
  };
}

/** The bare status, and the cut for a peer that does not even take that. Answers how to call the cut off. */
function endUnattached(stream: AgentStream, ending: End): () => void {
  stream.close(ending.status);
  const cut = setTimeout(() => stream.kill(), limits.agent.closeGraceMs);
  return () => clearTimeout(cut);
}
