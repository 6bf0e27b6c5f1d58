/**
 * The remaining validity of certificates, in the steps that the event feed reports. Checked when the next step is due, and
 * after an edit of a credential. Implements
 * `docs/contract/automation.md#event-feed`, `status`.
 */
import type { StatusChange } from './counts.js';
import type { StatusDeps } from './status.js';

const dayMs = 24 * 3600 * 1000;

/** The reported steps, each with its upper bound in milliseconds. */
const steps = [
  ['ended', 0],
  ['1_day', dayMs],
  ['7_days', 7 * dayMs],
  ['30_days', 30 * dayMs],
] as const;
type Left = (typeof steps)[number][0] | 'valid';

const leftOf = (ms: number): Left => steps.find(([, upTo]) => ms <= upTo)?.[0] ?? 'valid';

/** Milliseconds until the next step. */
function untilNext(ms: number): number {
  const next = steps.findLast(([, upTo]) => ms > upTo);
  return next === undefined ? Number.POSITIVE_INFINITY : ms - next[1];
}

export interface CertificateTimes {
  /** Changes since the last call that time alone caused. */
  changes(): readonly StatusChange[];
  /** A credential was changed. */
  edited(): void;
}

export function createCertificateTimes({ fleet, clock }: Pick<StatusDeps, 'fleet' | 'clock'>): CertificateTimes {
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
      // An edit has an entry of its own.
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
