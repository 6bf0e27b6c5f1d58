/**
 * Decides which fact is due for a resource: compares what was told last with what is now, subject to the time that a
 * change must stand and the budget of the resource. Pure: time comes as an argument. Implements
 * `docs/contract/notices.md#status-changes-are-facts`.
 */
import { isOfFuture, timestamp } from '../../kernel/clock.js';
import { limits } from '../../kernel/limits.js';
import type { StatusFact } from './facts.js';
import { openIncident, type LastFact } from './ledger.js';
import { impliedStatus, isBad, isTold, worseOf, type StatusKey } from './status.js';

/** The present status. Times are milliseconds since the epoch. */
export interface Observed {
  readonly resource: StatusKey & { readonly name: string };
  readonly status: string;
  readonly reason: string | null;
  /** When the status began. */
  readonly since: number;
  /** When it will have stood long enough to be told. */
  readonly dueAt: number;
  /** Until then, a silent node may come back, and only a status worse than the told one counts. Then decide again. */
  readonly againAt?: number;
}

export type Due =
  | { readonly kind: 'nothing' }
  /** Decide again then, or when something has changed. */
  | { readonly kind: 'later'; readonly at: number }
  | { readonly kind: 'now'; readonly fact: StatusFact };

/**
 * @param last what was told last; undefined if nothing was
 * @param id of the fact, if there is one
 */
export function dueFact(last: LastFact | undefined, observed: Observed, now: number, id: string): Due {
  const { resource, status, reason, since, againAt } = observed;
  const { type } = resource;
  const was = last?.status ?? impliedStatus(type);
  const isWorse = status !== was && worseOf(type, was, status) === status;
  if (againAt !== undefined && !isWorse) return { kind: 'later', at: againAt };
  if (status === was) return { kind: 'nothing' };
  // Such a state may be over before anybody who tells of changes has seen it: what follows it must not be missed.
  if (!isTold(type, status)) return { kind: 'later', at: now + limits.status.perResource.gapMs };
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
 * A fact that is written without telling anybody: a command has ended an incident, or the last fact would expire.
 * @returns undefined while there is none
 */
export function untoldFact(last: LastFact, now: number): StatusFact | undefined {
  const { resource, was, status, since, reason, incident, at, isUnwritten } = last;
  if (isUnwritten === true) return { resource, was, status, since, reason, incident, again: true };
  if (status === impliedStatus(resource.type) || now - Date.parse(at) < limits.status.repeatAfterMs) return undefined;
  return { resource, was: status, status, since, reason, incident: openIncident(last), again: true };
}

/** When the budget of a resource allows the next fact. */
function budgetedAt(told: readonly number[], now: number): number {
  const { changes, windowMs, gapMs } = limits.status.perResource;
  // Facts from a clock that was ahead do not delay later ones.
  const toldAt = told.filter((at) => !isOfFuture(at, now));
  const newest = toldAt.at(-1);
  const first = toldAt.at(-changes);
  return Math.max(newest === undefined ? 0 : newest + gapMs, first === undefined ? 0 : first + windowMs);
}
