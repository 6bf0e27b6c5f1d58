/**
 * Remembers every authenticated message 1 until 120 s after its own timestamp; from then on the clock check refuses it.
 * One cache per instance. Implements `docs/contract/agent-protocol.md#opensession` ("A message 1 already seen is
 * refused").
 */
import { limits } from '../../../kernel/limits.js';
import { createSeenOnce } from '../../../kernel/seen-once.js';

/** Handshakes remembered against replay. */
const replayEntries = 1_000_000;

export interface ReplayCache {
  /**
   * Remembers a message by its ephemeral key, to which the whole message is bound.
   * @param timestampMs the offer's own time, within the allowed skew of `nowMs`; both milliseconds since the Unix epoch
   * @returns full: the message was not remembered, so its session must be refused
   */
  note(message: Uint8Array, timestampMs: number, nowMs: number): 'new' | 'replayed' | 'full';
  readonly size: number;
}

const keyBytes = 32;

export function createReplayCache(maxEntries: number = replayEntries): ReplayCache {
  const seen = createSeenOnce(maxEntries);
  return {
    note: (message, timestampMs, nowMs) =>
      seen.note(
        Buffer.from(message.subarray(0, keyBytes)).toString('latin1'),
        timestampMs + limits.agent.clockSkewMs,
        nowMs,
      ),
    get size() {
      return seen.size;
    },
  };
}
