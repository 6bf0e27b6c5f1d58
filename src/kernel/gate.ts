/**
 * Lets a fixed number of holders through at a time; the rest wait in a bounded line for a bounded time. Knows nothing
 * of what is done inside.
 */
export interface Gate {
  /** A function that gives the place back, or undefined: the line is full, the wait was too long, or it is closed. */
  enter(): Promise<(() => void) | undefined>;
  /** Turns everybody in the line away. */
  close(): void;
}

export interface GateOptions {
  readonly places: number;
  readonly waiting: number;
  readonly waitMs: number;
}

export function createGate(options: GateOptions): Gate {
  let inside = 0;
  let closed = false;
  const line = new Set<(admitted: boolean) => void>();

  const leaveOnce = (): (() => void) => {
    let left = false;
    return () => {
      if (left) return;
      left = true;
      for (const next of line) {
        // The place is handed over, not freed: nobody can slip in between.
        next(true);
        return;
      }
      inside -= 1;
    };
  };

  return {
    async enter() {
      if (closed) return undefined;
      if (inside < options.places) {
        inside += 1;
        return leaveOnce();
      }
      if (line.size >= options.waiting) return undefined;
      const admitted = await new Promise<boolean>((resolve) => {
        const settle = (value: boolean): void => {
          clearTimeout(timer);
          line.delete(settle);
          resolve(value);
        };
        const timer = setTimeout(() => settle(false), options.waitMs);
        line.add(settle);
      });
      return admitted ? leaveOnce() : undefined;
    },
    close() {
      closed = true;
      for (const waiter of line) waiter(false);
    },
  };
}
