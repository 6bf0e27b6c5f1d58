/**
 * A bounded number of places. Callers that find none wait in a bounded queue for a bounded time. Callers that say whose they are
 * share places and queue fairly: a place goes to another owner first, and a full queue gives up a place of the owner who has
 * most of it.
 */
interface Semaphore {
  /** @returns a function that gives the place back; undefined when the queue is full, the wait too long, or it is closed */
  enter(owner?: string): Promise<(() => void) | undefined>;
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

interface Waiting {
  readonly owner: string | undefined;
  settle(admitted: boolean): void;
}

export function createSemaphore(options: SemaphoreOptions): Semaphore {
  const { places, waiting = Number.POSITIVE_INFINITY, waitMs } = options;
  let taken = 0;
  let closed = false;
  const queue = new Set<Waiting>();

  /** The first, of another owner if there is one. */
  const next = (owner: string | undefined): Waiting | undefined => {
    const [first] = queue;
    if (owner === undefined) return first;
    return [...queue].find((waiting) => waiting.owner !== owner) ?? first;
  };

  const leaveOnce = (owner: string | undefined): (() => void) => {
    let left = false;
    return () => {
      if (left) return;
      left = true;
      const waiting = next(owner);
      // The place is handed over, not freed, so that no other caller can take it in between.
      if (waiting === undefined) taken -= 1;
      else waiting.settle(true);
    };
  };

  /** Turns away the last caller of the owner who has most of the queue, unless that were no fairer. */
  const makeRoom = (owner: string | undefined): boolean => {
    if (owner === undefined) return false;
    const callers = new Map<string | undefined, Waiting[]>();
    for (const waiting of queue) callers.set(waiting.owner, [...(callers.get(waiting.owner) ?? []), waiting]);
    const own = callers.get(owner)?.length ?? 0;
    const most = [...callers.values()].reduce((a, b) => (b.length > a.length ? b : a), []);
    if (most.length <= own + 1) return false;
    most.at(-1)?.settle(false);
    return true;
  };

  return {
    get taken() {
      return taken;
    },
    async enter(owner) {
      if (closed) return undefined;
      if (taken < places) {
        taken += 1;
        return leaveOnce(owner);
      }
      if (queue.size >= waiting && !makeRoom(owner)) return undefined;
      const admitted = await new Promise<boolean>((resolve) => {
        const settle = (value: boolean): void => {
          clearTimeout(timer);
          queue.delete(entry);
          resolve(value);
        };
        const entry = { owner, settle };
        const timer = setTimeout(() => settle(false), waitMs);
        queue.add(entry);
      });
      return admitted ? leaveOnce(owner) : undefined;
    },
    close() {
      closed = true;
      for (const { settle } of queue) settle(false);
    },
  };
}
