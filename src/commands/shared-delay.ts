/**
 * A delay that callers share: all who come while it runs go on at the same moment, so that their writes share a commit. It
 * is no queue: what they do then is up to them.
 */
export interface SharedDelay {
  /** Resolves when the running delay ends, or as soon as the signal has aborted. */
  wait(signal?: AbortSignal): Promise<void>;
}

/** @param ms how long each delay lasts, from its first caller on, in milliseconds */
export function createSharedDelay(ms: number): SharedDelay {
  let running: Promise<void> | undefined;
  return {
    async wait(signal) {
      running ??= new Promise((resolve) => {
        setTimeout(() => {
          running = undefined;
          resolve();
        }, ms);
      });
      if (signal === undefined) return running;
      if (signal.aborted) return;
      const delay = running;
      let stop: () => void = () => undefined;
      const aborted = new Promise<void>((resolve) => {
        stop = resolve;
        signal.addEventListener('abort', stop, { once: true });
      });
      await Promise.race([delay, aborted]);
      signal.removeEventListener('abort', stop);
    },
  };
}
