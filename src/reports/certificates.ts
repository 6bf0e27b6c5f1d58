/**
 * The remaining validity of certificates, in the steps that the event feed reports. Checked when the next step is due, and
 * after an edit of a credential. Implements
 * `docs/contract/automation.md#event-feed`, `status`.
 */
import type { StatusKey } from '../domain/status/status.js';
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

/**
 * The time that a certificate has left, and since when. Times are milliseconds since the epoch.
 * @param endsAt of the certificate
 */
export function certificateLeft(
  endsAt: number,
  now: number,
): { readonly left: Left; readonly since: number | undefined } {
  const step = steps.find(([, upTo]) => endsAt - now <= upTo);
  return { left: step?.[0] ?? 'valid', since: step && endsAt - step[1] };
}

/** Milliseconds until the next step. */
function untilNext(ms: number): number {
  const next = steps.findLast(([, upTo]) => ms > upTo);
  return next === undefined ? Number.POSITIVE_INFINITY : ms - next[1];
}

export function createCertificateTimes({ fleet, clock }: Pick<StatusDeps, 'fleet' | 'clock'>) {
  const known = new Map<string, Left>();
  /** Milliseconds since the epoch. The clock may be set back behind the last look. */
  let [lookedAt, nextAt] = [0, 0];

  function look(now: number): readonly StatusKey[] {
    const changes: StatusKey[] = [];
    lookedAt = now;
    nextAt = Number.POSITIVE_INFINITY;
    for (const { id, certificate } of fleet.credentials()) {
      if (certificate === null) continue;
      const ms = Date.parse(certificate.not_after) - now;
      const { left } = certificateLeft(now + ms, now);
      nextAt = Math.min(nextAt, now + untilNext(ms));
      if (known.get(id) !== left) changes.push({ type: 'credential', id });
      known.set(id, left);
    }
    for (const id of known.keys()) if (fleet.resources.credential.get(id) === undefined) known.delete(id);
    return changes;
  }

  return {
    /** Credentials whose certificate has reached another step since the last call, or was replaced. */
    changes(): readonly StatusKey[] {
      const now = clock.now();
      return lookedAt <= now && now < nextAt ? [] : look(now);
    },
    /** A credential was changed. */
    edited: (): void => void (nextAt = 0),
  };
}
