/**
 * Remembers keys until they expire, to recognise replays. For messages that carry their own time: after the expiry, the
 * check of that time refuses a replay.
 */
import { getOrMake } from './maps.js';
export interface SeenOnce {
  /**
   * @param until when the key may be forgotten, within a bounded time from `now`; both milliseconds since the Unix
   *   epoch
   * @returns full: the key was not remembered, so the message must be refused
   */
  note(key: string, until: number, now: number): 'new' | 'replayed' | 'full';
  readonly size: number;
}

export function createSeenOnce(maxEntries: number): SeenOnce {
  const seen = new Set<string>();
  /** Keys by the second in which they expire, so that forgetting costs only as much as there are expired keys. */
  const bySecond = new Map<number, string[]>();
  let forgotAt = 0;

  const forget = (now: number): void => {
    const second = Math.floor(now / 1000);
    if (second === forgotAt) return;
    forgotAt = second;
    for (const [due, keys] of bySecond) {
      if (due >= second) continue;
      for (const key of keys) seen.delete(key);
      bySecond.delete(due);
    }
  };

  return {
    note(key, until, now) {
      forget(now);
      if (seen.has(key)) return 'replayed';
      if (seen.size >= maxEntries) return 'full';
      seen.add(key);
      getOrMake(bySecond, Math.floor(until / 1000), () => []).push(key);
      return 'new';
    },
    get size() {
      return seen.size;
    },
  };
}
