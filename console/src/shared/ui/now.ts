/** One clock for all relative times on the page. */
import { useSyncExternalStore } from 'react';

const tickMs = 5_000;
const changed = new Set<() => void>();
let now = Date.now();
let timer: ReturnType<typeof setInterval> | undefined;

function tick(): void {
  now = Date.now();
  for (const tell of changed) tell();
}

/** The time in milliseconds, which moves every few seconds. */
export function useNow(): number {
  return useSyncExternalStore(
    (tell) => {
      changed.add(tell);
      timer ??= setInterval(tick, tickMs);
      return () => {
        changed.delete(tell);
        if (changed.size > 0) return;
        clearInterval(timer);
        timer = undefined;
      };
    },
    () => now,
  );
}
