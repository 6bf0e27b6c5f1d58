/**
 * The server names of a hop: its own, or else its credential's. Resolved whenever they are needed, so that a hop
 * without names of its own follows its credential. Implements `docs/contract/domain.md#l4-chain`.
 */
import { namesOfCredential } from '../credential/material.js';
import type { FleetView } from '../resource/fleet-view.js';
import type { Hop } from './chain.js';

/** Empty for a hop that something else distinguishes, or nothing. */
export function effectiveNames(fleet: Pick<FleetView, 'get'>, hop: Hop): readonly string[] {
  const own = hop.server_names ?? [];
  return own.length > 0 ? own : namesOfCredential(fleet, hop.credential_id);
}

export function isWildcard(name: string): boolean {
  return name.startsWith('*.');
}

/** The name by which the hop before dials a hop; undefined when there are only wildcards. */
export function firstExactName(names: readonly string[]): string | undefined {
  return names.find((name) => !isWildcard(name));
}
