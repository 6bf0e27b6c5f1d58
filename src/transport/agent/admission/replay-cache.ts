/**
 * Every message 1 that authenticated, until its own timestamp + 120 s has passed: then the clock skew refuses it anyway.
 * Per instance. Implements `docs/contract/agent-protocol.md#opensession` ("A message 1 already seen is refused").
 */
import { limits } from '../../../kernel/limits.js';
import { tuning } from '../tuning.js';

export type Seen = 'new' | 'replayed' | 'full';

export interface ReplayCache {
  /**
   * Remembers a message by its ephemeral key, which is bound to all of it.
   * @param timestampMs the offer's own time, within the skew of `nowMs`; both milliseconds since the Unix epoch
   */
  note(message: Uint8Array, timestampMs: number, nowMs: number): Seen;
  readonly size: number;
}

const keyBytes = 32;

export function createReplayCache(maxEntries: number = tuning.replayEntries): ReplayCache {
  const seen = new Set<string>();
  /** Keys by the second in which they may go: forgetting costs what is forgotten, not what is held. */
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
