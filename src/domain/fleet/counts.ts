/**
 * How many there are of each resource that the dashboard counts, in pieces, because a large fleet takes a while.
 * Implements `docs/contract/rest.md#dashboard`.
 */
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

/** Resources looked at before the caller gets a turn. */
const piece = 1000;

/**
 * Counts; yields between two pieces. A resource that changes meanwhile may be counted as it was or as it is.
 * @param now milliseconds since the epoch
 */
export function* countResources(fleet: Fleet, now: number): Generator<void, ResourceCounts> {
  const { tables } = fleet;
  const byStatus = { draft: 0, deployed: 0, modified: 0, disabled: 0 };
  yield* forEach(tables.l4_chain.values(), piece, (chain) => {
    byStatus[chainStatus(chain)] += 1;
  });
  const { draft, deployed, modified, disabled } = byStatus;
  const enabled = draft + deployed + modified;
  const credentials = { total: 0, expiring_30d: 0, expired: 0 };
  yield* forEach(tables.credential.values(), piece, (credential) => {
    const counted = countCredentials([credential], now);
    credentials.total += counted.total;
    credentials.expiring_30d += counted.expiring_30d;
    credentials.expired += counted.expired;
  });
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
  yield* forEach(states, piece, (state) => {
    total += 1;
    if (state.enabled) enabled += 1;
  });
  return { total, enabled };
}

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
