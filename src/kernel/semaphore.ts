/**
 * A bounded number of places. Callers that find none wait in a bounded queue for a bounded time.
 */
interface Semaphore {
  /** @returns a function that gives the place back; undefined when the queue is full, the wait too long, or it is closed */
  enter(): Promise<(() => void) | undefined>;
  readonly taken: number;
  /** Turns away all callers that wait, and all later ones. */
  close(): void;
}

interface SemaphoreOptions {
  readonly places: number;
  /** How many may wait; without a bound when absent. */
  readonly waiting?: number;
  readonly waitMs: number;
}

export function createSemaphore(options: SemaphoreOptions): Semaphore {
  const { places, waiting = Number.POSITIVE_INFINITY, waitMs } = options;
  let taken = 0;
  let closed = false;
  const queue = new Set<(admitted: boolean) => void>();

  const leaveOnce = (): (() => void) => {
    let left = false;
    return () => {
      if (left) return;
      left = true;
      for (const next of queue) {
        // The place is handed over, not freed, so that no other caller can take it in between.
        next(true);
        return;
      }
      taken -= 1;
    };
  };

  return {
    get taken() {
      return taken;
    },
    async enter() {
      if (closed) return undefined;
      if (taken < places) {
        taken += 1;
        return leaveOnce();
      }
      if (queue.size >= waiting) return undefined;
      const admitted = await new Promise<boolean>((resolve) => {
        const settle = (value: boolean): void => {
          clearTimeout(timer);
          queue.delete(settle);
          resolve(value);
        };
        const timer = setTimeout(() => settle(false), waitMs);
        queue.add(settle);
      });
      return admitted ? leaveOnce() : undefined;
    },
    close() {
      closed = true;
      for (const settle of queue) settle(false);
    },
  };
}
