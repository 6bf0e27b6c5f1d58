/** How many credentials have a certificate that expires soon, or has. Implements `docs/contract/rest.md#dashboard`. */
import { limits } from '../../kernel/limits.js';
import type { CredentialState } from './credential.js';

export interface CredentialCounts {
  /** Of all types. */
  readonly total: number;
  /** Certificates that are valid and end within 30 days. */
  readonly expiring_30d: number;
  readonly expired: number;
}

/** @param now milliseconds since the epoch */
export function countCredentials(credentials: Iterable<CredentialState>, now: number): CredentialCounts {
  let [total, expiring_30d, expired] = [0, 0, 0];
  for (const { certificate } of credentials) {
    total += 1;
    if (certificate === null) continue;
    const left = Date.parse(certificate.not_after) - now;
    if (left <= 0) expired += 1;
    else if (left <= limits.rest.expiringSoonMs) expiring_30d += 1;
  }
  return { total, expiring_30d, expired };
}
