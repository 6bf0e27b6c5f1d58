/** Counts the resources for the dashboard, in pieces. Implements `docs/contract/rest.md#dashboard`. */
import { chainStatus } from '../chain/status.js';
import type { Fleet } from './fleet.js';
import { limits } from '../../kernel/limits.js';
import { forEach } from '../../kernel/pieces.js';
import type { CredentialState } from '../credential/credential.js';

interface EnabledCounts {
  readonly total: number;
  readonly enabled: number;
}

export interface ResourceCounts {
  /** `deployed` and `modified` by status. */
  readonly l4_chains: EnabledCounts & { readonly deployed: number; readonly modified: number };
  readonly l4_upstreams: EnabledCounts;
  readonly routes: EnabledCounts;
  readonly l3_networks: EnabledCounts;
  readonly credentials: CredentialCounts;
}

const perPiece = 1000;

/**
 * Yields between two pieces. A resource that changes meanwhile counts in either state. @param now milliseconds since the
 * epoch
 */
export function* countResources(fleet: Fleet, now: number): Generator<void, ResourceCounts> {
  const { tables } = fleet;
  const byStatus = { draft: 0, deployed: 0, modified: 0, disabled: 0 };
  yield* forEach(tables.l4_chain.values(), perPiece, (chain) => {
    byStatus[chainStatus(chain)] += 1;
  });
  const { draft, deployed, modified, disabled } = byStatus;
  const enabled = draft + deployed + modified;
  const credentials = { total: 0, expiring_30d: 0, expired: 0 };
  yield* forEach(tables.credential.values(), perPiece, (credential) => countCredential(credentials, credential, now));
  return {
    l4_chains: { total: enabled + disabled, enabled, deployed, modified },
    l4_upstreams: yield* countEnabled(tables.l4_upstream.values()),
    routes: yield* countEnabled(tables.route.values()),
    l3_networks: yield* countEnabled(tables.l3_network.values()),
    credentials,
  };
}

function* countEnabled(states: Iterable<{ readonly enabled: boolean }>): Generator<void, EnabledCounts> {
  let [total, enabled] = [0, 0];
  yield* forEach(states, perPiece, (state) => {
    total += 1;
    if (state.enabled) enabled += 1;
  });
  return { total, enabled };
}

export interface CredentialCounts {
  /** Credentials of all types. */
  readonly total: number;
  /** Certificates that are valid and end within 30 days. */
  readonly expiring_30d: number;
  readonly expired: number;
}

/** @param now milliseconds since the epoch */
export function countCredentials(credentials: Iterable<CredentialState>, now: number): CredentialCounts {
  const counts = { total: 0, expiring_30d: 0, expired: 0 };
  for (const credential of credentials) countCredential(counts, credential, now);
  return counts;
}

function countCredential(
  counts: { -readonly [F in keyof CredentialCounts]: number },
  { certificate }: CredentialState,
  now: number,
): void {
  counts.total += 1;
  if (certificate === null) return;
  const left = Date.parse(certificate.not_after) - now;
  if (left <= 0) counts.expired += 1;
  else if (left <= limits.rest.expiringSoonMs) counts.expiring_30d += 1;
}
