/** One clock for all relative times on the page. */
import { useSyncExternalStore } from 'react';
import { serviceNow } from '../api/client.js';

const tickMs = 5_000;
const changed = new Set<() => void>();
let now = serviceNow();
let timer: ReturnType<typeof setInterval> | undefined;

function tick(): void {
  now = serviceNow();
  for (const tell of changed) tell();
}

/** A store for React. It stands still without subscribers. @internal exported for tests */
export const clock = {
  subscribe(tell: () => void): () => void {
    changed.add(tell);
    if (timer === undefined) {
      timer = setInterval(tick, tickMs);
      now = serviceNow();
    }
    return () => {
      changed.delete(tell);
      if (changed.size > 0) return;
      clearInterval(timer);
      timer = undefined;
    };
  },
  now: (): number => now,
};

/** The time in milliseconds, which moves every few seconds. */
export const useNow = (): number => useSyncExternalStore(clock.subscribe, clock.now);
