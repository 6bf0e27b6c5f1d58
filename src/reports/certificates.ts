/**
 * The time that certificates have left, in the steps in which the event feed tells it. It changes without anybody's doing, so
 * it is looked at when the next step of one is due, and when a credential was edited. Implements
 * `docs/contract/automation.md#event-feed`, `status`.
 */
import type { StatusChange } from './counts.js';
import type { Told } from './status.js';

const dayMs = 24 * 3600 * 1000;

/** What is told of the time left, and up to how many milliseconds. */
const steps = [
  ['ended', 0],
  ['1_day', dayMs],
  ['7_days', 7 * dayMs],
  ['30_days', 30 * dayMs],
] as const;
type Left = (typeof steps)[number][0] | 'valid';

const leftOf = (ms: number): Left => steps.find(([, upTo]) => ms <= upTo)?.[0] ?? 'valid';

/** After how many milliseconds something else is told. */
function untilNext(ms: number): number {
  const next = steps.findLast(([, upTo]) => ms > upTo);
  return next === undefined ? Number.POSITIVE_INFINITY : ms - next[1];
}

export interface CertificateTimes {
  /** What time alone has changed since the last call. */
  changes(): readonly StatusChange[];
  /** A credential was changed. */
  edited(): void;
}

export function createCertificateTimes({ fleet, clock }: Pick<Told, 'fleet' | 'clock'>): CertificateTimes {
  const known = new Map<string, { readonly left: Left; readonly version: number }>();
  /** Milliseconds since the epoch. */
  let nextAt = 0;

  function look(now: number): readonly StatusChange[] {
    const changes: StatusChange[] = [];
    nextAt = Number.POSITIVE_INFINITY;
    for (const { id, name, version, certificate } of fleet.credentials()) {
      if (certificate === null) continue;
      const ms = Date.parse(certificate.not_after) - now;
      const [left, before] = [leftOf(ms), known.get(id)];
      nextAt = Math.min(nextAt, now + untilNext(ms));
      known.set(id, { left, version });
      // A new one's own entry tells of it.
      if (before === undefined || before.left === left || before.version !== version) continue;
      changes.push({ resource: { type: 'credential', id, name }, was: before.left, status: left });
    }
    for (const id of known.keys()) if (fleet.resources.credential.get(id) === undefined) known.delete(id);
    return changes;
  }

  return {
    changes: () => (clock.now() < nextAt ? [] : look(clock.now())),
    edited: () => void (nextAt = 0),
  };
}
