/**
 * A bounded number of permits. Callers that get none wait in a bounded queue for a bounded time. Callers that name an
 * owner share fairly: a permit goes to a different owner first, and a full queue drops a caller of the owner with the
 * most waiting.
 */
import { waitIn, type Waiting } from './background.js';

interface Semaphore {
  /**
   * @returns a function that returns the permit; undefined when the queue is full, the wait too long, or after `close`
   */
  enter(owner?: string): Promise<(() => void) | undefined>;
  readonly taken: number;
  /** Turns away all waiting callers, and all later ones. */
  close(): void;
}

interface SemaphoreOptions {
  readonly places: number;
  /** How many callers may wait; unbounded when absent. */
  readonly waiting?: number;
  readonly waitMs: number;
}

type Caller = Waiting<{ readonly owner: string | undefined }>;

export function createSemaphore(options: SemaphoreOptions): Semaphore {
  const { places, waiting = Number.POSITIVE_INFINITY, waitMs } = options;
  let taken = 0;
  let closed = false;
  const queue = new Set<Caller>();

  /** The first caller of a different owner, or else the first caller. */
  const next = (owner: string | undefined): Caller | undefined => {
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
      // The permit is handed over, not freed, so that no other caller can take it in between.
      if (waiting === undefined) taken -= 1;
      else waiting.answer(true);
    };
  };

  /** Turns away the last caller of the owner with the most waiting, unless that would be no fairer. */
  const makeRoom = (owner: string | undefined): boolean => {
    if (owner === undefined) return false;
    const callers = new Map<string | undefined, Caller[]>();
    for (const waiting of queue) callers.set(waiting.owner, [...(callers.get(waiting.owner) ?? []), waiting]);
    const own = callers.get(owner)?.length ?? 0;
    const most = [...callers.values()].reduce((a, b) => (b.length > a.length ? b : a), []);
    if (most.length <= own + 1) return false;
    most.at(-1)?.answer(false);
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
      return (await waitIn(queue, { owner }, waitMs)) ? leaveOnce(owner) : undefined;
    },
    close() {
      closed = true;
      for (const waiting of queue) waiting.answer(false);
    },
  };
}
