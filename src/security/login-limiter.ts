/**
 * How often sign-ins may fail: per (address, name), per address, and, only by slowing, per name. Asked before the
 * password is hashed. Not the hashing queue (`passwords.ts`), and not what a refusal looks like on the wire.
 * Implements `docs/contract/rest.md#authentication-and-roles`: at most 5 failures in 5 minutes per (address, user name) and 20
 * per address; a name failing from many addresses is slowed, never locked; bounded tables.
 *
 * An attempt in flight might fail, so it holds a place in the budget. Where only places held stand in the way the
 * attempt waits for them, so that many good sign-ins at once are not refused, and many bad ones gain nothing.
 */
import { createHash } from 'node:crypto';
import type { Clock } from '../kernel/clock.js';
import { limits } from '../kernel/limits.js';
import { addressKey } from '../kernel/address-key.js';
import { createLru } from '../kernel/lru.js';
import type { Lru } from '../kernel/lru.js';
import { createWaiters } from '../kernel/waiters.js';

/** Addresses, and pairs of address and name, whose failures are remembered. */
const entriesMax = 100_000;
/** Sign-ins that wait because those in flight could use the budget up, and how long; more are refused. */
const waitingMax = 256;
const waitMsDefault = 5_000;
/** Failures of one name, from all addresses, after which its sign-ins are slowed, and by how much. */
const slowNameAfter = 5;
const slowNameStepMs = 100;
const slowNameMaxMs = 2_000;

export type LoginOutcome = 'failed' | 'succeeded' | 'abandoned';

export type LoginAdmission =
  | {
      readonly kind: 'admitted';
      /** Milliseconds the caller waits before it goes on: the name is failing from many addresses. */
      readonly delayMs: number;
      /** Must be called once the outcome is known, whatever happens; later calls do nothing. */
      settle(outcome: LoginOutcome): void;
    }
  | { readonly kind: 'refused'; readonly retryAfterSeconds: number };

export interface LoginLimiter {
  /** Asks for one attempt. `address` is the caller's IP; the name is lower-cased here. */
  admit(address: string, name: string): Promise<LoginAdmission>;
  /** Refuses all that wait. */
  close(): void;
}

export interface LoginLimiterOptions {
  readonly clock: Clock;
  /** Entries per table. */
  readonly maxEntries?: number;
  readonly waitMs?: number;
}

interface Budget {
  /** Monotonic milliseconds of recent failures, oldest first, never more than the limit. */
  failures: number[];
  inFlight: number;
}

const { windowMs } = limits.logins;
/** More failures of a name than this slow it no further. */
const nameFailuresKept = 32;
const longestPlainName = 64;

export function createLoginLimiter(options: LoginLimiterOptions): LoginLimiter {
  const { clock } = options;
  const maxEntries = options.maxEntries ?? entriesMax;
  const pairs = createLru<string, Budget>({ maxEntries });
  const addresses = createLru<string, Budget>({ maxEntries });
  const names = createLru<string, number[]>({ maxEntries });
  const waiters = createWaiters(waitingMax);
  let closed = false;

  /** Undefined: only attempts in flight are in the way. */
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

function budgetOf(table: Lru<string, Budget>, key: string, now: number): Budget {
  const budget = table.get(key) ?? { failures: [], inFlight: 0 };
  budget.failures = recent(budget.failures, now);
  table.set(key, budget);
  return budget;
}

function recent(failures: readonly number[], now: number): number[] {
  return failures.filter((at) => at + windowMs > now);
}

/** Milliseconds until the oldest failure leaves the window, when the limit is reached. */
function untilAllowed(budget: Budget, limit: number, now: number): number {
  const oldest = budget.failures[budget.failures.length - limit];
  return oldest === undefined ? 0 : oldest + windowMs - now;
}

/** Doubles with each failure past what one address alone can cause. */
function delayOf(failures: readonly number[] | undefined, now: number): number {
  const extra = recent(failures ?? [], now).length - slowNameAfter;
  if (extra <= 0) return 0;
  return Math.min(slowNameMaxMs, slowNameStepMs * 2 ** (extra - 1));
}

function refusal(waitMs: number): LoginAdmission {
  return { kind: 'refused', retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1000)) };
}

/** A name as typed may be of any length: what is kept of it is not. */
function nameKey(name: string): string {
  const lowered = name.toLowerCase();
  return lowered.length <= longestPlainName ? lowered : createHash('sha256').update(lowered).digest('base64');
}
