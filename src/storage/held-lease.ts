/**
 * A lease that one of several instances holds for as long as it lives. It is requested and renewed at intervals, and
 * expires by this process's monotonic clock, so an instance that slept past its end knows that it has lost it.
 */
import type { Clock } from '../kernel/clock.js';
import type { Leases } from './read-store.js';

export interface HeldLeaseOptions {
  readonly leases: Pick<Leases, 'acquire' | 'release'>;
  readonly kind: string;
  readonly name: string;
  readonly holder: string;
  readonly ttlMs: number;
  /** How often it is renewed or requested. */
  readonly everyMs: number;
  readonly clock: Pick<Clock, 'monotonic'>;
  /** Called whenever the store has granted it. @param isTaken it was not held before, and is not if this call fails */
  onGiven(isTaken: boolean): void | Promise<void>;
}

export interface HeldLease {
  /** Asks the store if it is time to. @returns whether this instance holds it now @throws ServiceError `unavailable` */
  hold(): Promise<boolean>;
  /** Whether this instance holds it, without asking. */
  isHeld(): boolean;
  /** Gives it up, if this instance holds it. @throws ServiceError `unavailable` */
  release(): Promise<void>;
}

export function createHeldLease(options: HeldLeaseOptions): HeldLease {
  const { leases, kind, name, holder, ttlMs, clock } = options;
  /** By the monotonic clock, counted from before the store was asked. */
  let heldUntil = Number.NEGATIVE_INFINITY;
  let askAt = Number.NEGATIVE_INFINITY;
  const isHeld = (): boolean => heldUntil > clock.monotonic();
  const lost = (): void => void (heldUntil = Number.NEGATIVE_INFINITY);
  return {
    isHeld,
    async hold() {
      const now = clock.monotonic();
      if (now < askAt) return isHeld();
      askAt = now + options.everyMs;
      if (!(await leases.acquire(kind, { name, holder, ttlMs, data: null }))) {
        lost();
        return false;
      }
      // It may have ended while the store was asked.
      const isTaken = !isHeld();
      heldUntil = now + ttlMs;
      try {
        await options.onGiven(isTaken);
      } catch (error) {
        if (isTaken) lost();
        throw error;
      }
      return isHeld();
    },
    async release() {
      if (!isHeld()) return;
      lost();
      await leases.release(kind, name, holder);
    },
  };
}
