/**
 * Decides which fact a resource is due: what is told last against what is now, with the time that a change must stand and
 * the budget of a resource. Pure: time comes as an argument. Implements
 * `docs/contract/notices.md#status-changes-are-facts`.
 */
import { isOfFuture, timestamp } from '../../kernel/clock.js';
import { limits } from '../../kernel/limits.js';
import type { StatusFact } from './facts.js';
import { openIncident, type LastFact } from './ledger.js';
import { impliedStatus, isBad, isTold, worseOf, type StatusKey } from './status.js';

/** What is now. Times are milliseconds since the epoch. */
export interface Observed {
  readonly resource: StatusKey & { readonly name: string };
  readonly status: string;
  readonly reason: string | null;
  /** When the status began. */
  readonly since: number;
  /** When it will have stood long enough to be told. */
  readonly dueAt: number;
  /** Until then a silent node may come back. Only what is worse than what was told counts before, and all is looked at again. */
  readonly againAt?: number;
}

export type Due =
  | { readonly kind: 'nothing' }
  /** Decide again then, or when something has changed. */
  | { readonly kind: 'later'; readonly at: number }
  | { readonly kind: 'now'; readonly fact: StatusFact };

/**
 * @param last what was told last, undefined for nothing
 * @param id of the fact, if there is one
 */
export function dueFact(last: LastFact | undefined, observed: Observed, now: number, id: string): Due {
  const { resource, status, reason, since, againAt } = observed;
  const { type } = resource;
  const was = last?.status ?? impliedStatus(type);
  const isWorse = status !== was && worseOf(type, was, status) === status;
  if (againAt !== undefined && !isWorse) return { kind: 'later', at: againAt };
  if (status === was || !isTold(type, status)) return { kind: 'nothing' };
  const at = Math.max(observed.dueAt, budgetedAt(last?.toldAt ?? [], now));
  if (at > now) return { kind: 'later', at };
  const began_at = timestamp(since);
  const open = last === undefined ? null : openIncident(last);
  const incident = !isBad(type, status)
    ? open
    : open === null
      ? { id, began_at, status }
      : { ...open, status: worseOf(type, open.status, status) };
  return { kind: 'now', fact: { resource, was, status, since: began_at, reason, incident } };
}

/**
 * The fact that is written although nobody is told: that a command has ended an incident, or once more what would expire.
 * @returns undefined while there is none
 */
export function untoldFact(last: LastFact, now: number): StatusFact | undefined {
  const { resource, was, status, since, reason, incident, at, isUnwritten } = last;
  if (isUnwritten === true) return { resource, was, status, since, reason, incident, again: true };
  if (status === impliedStatus(resource.type) || now - Date.parse(at) < limits.status.repeatAfterMs) return undefined;
  return { resource, was: status, status, since, reason, incident: openIncident(last), again: true };
}

/** When the budget of a resource lets it be told again. */
function budgetedAt(told: readonly number[], now: number): number {
  const { changes, windowMs, gapMs } = limits.status.perResource;
  // What a clock told that was ahead holds nothing up.
  const toldAt = told.filter((at) => !isOfFuture(at, now));
  const newest = toldAt.at(-1);
  const first = toldAt.at(-changes);
  return Math.max(newest === undefined ? 0 : newest + gapMs, first === undefined ? 0 : first + windowMs);
}
