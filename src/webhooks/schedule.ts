/** The consequence of an answer: the next item, another try, or a stop. Pure. Implements `docs/contract/automation.md#webhooks`, failures. */
import { limits } from '../kernel/limits.js';

/** The outcome of one try. */
export interface Answer {
  /** The HTTP status; null when none came. */
  readonly status: number | null;
  /** A sentence; null for a success. */
  readonly error: string | null;
  /** The wait that a 429 or 503 asks for, in milliseconds. */
  readonly retryAfterMs: number | null;
}

export type Next =
  | { readonly kind: 'delivered' }
  | { readonly kind: 'retry'; readonly waitMs: number }
  | { readonly kind: 'stop'; readonly reason: string };

const { retryMs, hourlyTries, retryAfterMaxMs } = limits.webhooks;
const hourMs = 60 * 60_000;

/** @param failures earlier failed tries of the same item */
export function nextAfter(answer: Answer, failures: number): Next {
  const { status, error, retryAfterMs } = answer;
  if (error === null) return { kind: 'delivered' };
  if (status === 410) return { kind: 'stop', reason: 'the receiver answered 410: it wants no more' };
  if (failures >= retryMs.length + hourlyTries)
    return { kind: 'stop', reason: `the last of ${failures + 1} tries failed: ${error}` };
  const asked = status === 429 || status === 503 ? Math.min(retryAfterMs ?? 0, retryAfterMaxMs) : 0;
  return { kind: 'retry', waitMs: Math.max(retryMs[failures] ?? hourMs, asked) };
}

/** The wait that a `Retry-After` header asks for, in milliseconds; null if it is absent or invalid. */
export function retryAfterOf(header: string | undefined, now: number): number | null {
  if (header === undefined) return null;
  if (/^\d{1,10}$/.test(header)) return Number(header) * 1000;
  const at = Date.parse(header);
  return Number.isNaN(at) ? null : Math.max(0, at - now);
}
