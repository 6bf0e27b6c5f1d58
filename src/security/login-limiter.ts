/**
 * Limits failed sign-ins per address and per pair of address and name, and slows down a name that fails from many
 * addresses. Runs before the password is hashed. Implements `docs/contract/rest.md#authentication-and-roles`.
 *
 * An attempt in flight counts against the budget until it settles. When only such attempts use up the budget, a new one
 * waits for them: many correct sign-ins at once are not refused, and wrong ones gain nothing.
 */
import { createHash } from 'node:crypto';
import type { Clock } from '../kernel/clock.js';
import { limits } from '../kernel/limits.js';
import { addressKey } from '../kernel/addresses.js';
import { createLru, type Lru } from '../kernel/lru.js';
import { createWaiters } from '../kernel/waiters.js';

/** Entries of each table: addresses, pairs of address and name, names. */
const entriesMax = 100_000;
/** How many sign-ins may wait for attempts in flight, and for how long. */
const waitingMax = 256;
const waitMsDefault = 5_000;
/** After this many failures from all addresses together, sign-ins with a name are delayed, longer each time. */
const slowNameAfter = 5;
const slowNameStepMs = 100;
const slowNameMaxMs = 2_000;

export type LoginOutcome = 'failed' | 'succeeded' | 'abandoned';

export type LoginAdmission =
  | {
      readonly kind: 'admitted';
      /** Milliseconds to wait before the password is checked; above 0 when the name fails from many addresses. */
      readonly delayMs: number;
      /** Must be called once the outcome is known, even after an error. Later calls do nothing. */
      settle(outcome: LoginOutcome): void;
    }
  | { readonly kind: 'refused'; readonly retryAfterSeconds: number };

export interface LoginLimiter {
  /** Asks for one attempt. `address` is the caller's IP address; the name is lower-cased here. */
  admit(address: string, name: string): Promise<LoginAdmission>;
  /** Refuses every attempt that waits. */
  close(): void;
}

export interface LoginLimiterOptions {
  readonly clock: Clock;
  /** Entries per table. */
  readonly maxEntries?: number;
  readonly waitMs?: number;
}

interface Budget {
  /** Times of recent failures on the monotonic clock, oldest first; never more than the limit. */
  failures: number[];
  inFlight: number;
}

const { windowMs } = limits.logins;
/** Failures remembered per name; more would not slow it further. */
const nameFailuresKept = 32;
const longestPlainName = 64;

export function createLoginLimiter(options: LoginLimiterOptions): LoginLimiter {
  const { clock } = options;
  const maxEntries = options.maxEntries ?? entriesMax;
  const pairs = createLru<Budget>(maxEntries);
  const addresses = createLru<Budget>(maxEntries);
  const names = createLru<number[]>(maxEntries);
  const waiters = createWaiters(waitingMax);
  let closed = false;

  /** @returns undefined when only attempts in flight are in the way */
  const attempt = (source: string, name: string): LoginAdmission | undefined => {
    const now = clock.monotonic();
    const pair = budgetOf(pairs, `${source} ${name}`, now);
    const address = budgetOf(addresses, source, now);
    const waitMs = Math.max(
      untilAllowed(pair, limits.logins.failuresPerAddressAndName, now),
      untilAllowed(address, limits.logins.failuresPerAddress, now),
    );
    if (waitMs > 0) return refusal(waitMs);
    const full =
      pair.failures.length + pair.inFlight >= limits.logins.failuresPerAddressAndName ||
      address.failures.length + address.inFlight >= limits.logins.failuresPerAddress;
    if (full) return undefined;
    pair.inFlight += 1;
    address.inFlight += 1;
    return { kind: 'admitted', delayMs: delayOf(names.get(name), now), settle: settleOnce(pair, address, name) };
  };

  const settleOnce = (pair: Budget, address: Budget, name: string): ((outcome: LoginOutcome) => void) => {
    let settled = false;
    return (outcome) => {
      if (settled) return;
      settled = true;
      pair.inFlight -= 1;
      address.inFlight -= 1;
      if (outcome === 'failed') {
        const now = clock.monotonic();
        pair.failures.push(now);
        address.failures.push(now);
        names.set(name, [...recent(names.get(name) ?? [], now), now].slice(-nameFailuresKept));
      }
      waiters.look();
    };
  };

  return {
    async admit(rawAddress, rawName) {
      if (closed) return refusal(1000);
      const source = addressKey(rawAddress);
      const name = nameKey(rawName);
      let admission: LoginAdmission | undefined;
      await waiters.until(() => {
        admission = attempt(source, name);
        return admission !== undefined;
      }, options.waitMs ?? waitMsDefault);
      return admission ?? refusal(1000);
    },
    close() {
      closed = true;
      waiters.close();
    },
  };
}

function budgetOf(table: Lru<Budget>, key: string, now: number): Budget {
  const budget = table.get(key) ?? { failures: [], inFlight: 0 };
  budget.failures = recent(budget.failures, now);
  table.set(key, budget);
  return budget;
}

function recent(failures: readonly number[], now: number): number[] {
  return failures.filter((at) => at + windowMs > now);
}

/** Milliseconds until a failure leaves the window; 0 or less when the budget is below its limit. */
function untilAllowed(budget: Budget, limit: number, now: number): number {
  const oldest = budget.failures[budget.failures.length - limit];
  return oldest === undefined ? 0 : oldest + windowMs - now;
}

/** The delay doubles with each failure beyond those that one address can cause. */
function delayOf(failures: readonly number[] | undefined, now: number): number {
  const extra = recent(failures ?? [], now).length - slowNameAfter;
  if (extra <= 0) return 0;
  return Math.min(slowNameMaxMs, slowNameStepMs * 2 ** (extra - 1));
}

function refusal(waitMs: number): LoginAdmission {
  return { kind: 'refused', retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1000)) };
}

/** Long names are hashed, so that the tables stay bounded. */
function nameKey(name: string): string {
  const lowered = name.toLowerCase();
  return lowered.length <= longestPlainName ? lowered : createHash('sha256').update(lowered).digest('base64');
}
