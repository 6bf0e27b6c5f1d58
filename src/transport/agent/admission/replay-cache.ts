/**
 * Remembers every message 1 that authenticated until 120 s after its own timestamp; from then on the check of the clock
 * refuses it. One cache per instance.
 * Implements `docs/contract/agent-protocol.md#opensession` ("A message 1 already seen is refused").
 */
import { limits } from '../../../kernel/limits.js';
import { tuning } from '../tuning.js';

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

export function createReplayCache(maxEntries: number = tuning.replayEntries): ReplayCache {
  const seen = new Set<string>();
  /** Keys by the second in which they expire, so that the cost of forgetting depends on the expired keys only. */
  const bySecond = new Map<number, string[]>();
  let forgottenUpTo = 0;

  const forget = (nowMs: number): void => {
    const second = Math.floor(nowMs / 1000);
    if (second <= forgottenUpTo) return;
    forgottenUpTo = second;
    for (const [due, keys] of bySecond) {
      if (due >= second) continue;
      for (const key of keys) seen.delete(key);
      bySecond.delete(due);
    }
  };

  return {
    note(message, timestampMs, nowMs) {
      forget(nowMs);
      const key = Buffer.from(message.subarray(0, keyBytes)).toString('latin1');
      if (seen.has(key)) return 'replayed';
      if (seen.size >= maxEntries) return 'full';
      seen.add(key);
      const due = Math.floor((timestampMs + limits.agent.clockSkewMs) / 1000);
      const keys = bySecond.get(due);
      if (keys === undefined) bySecond.set(due, [key]);
      else keys.push(key);
      return 'new';
    },
    get size() {
      return seen.size;
    },
  };
}
