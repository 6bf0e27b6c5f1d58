/**
 * The server names of a hop: its own, or else its credential's, resolved on each use, so that the hop follows its credential.
 * Implements `docs/contract/domain.md#l4-chain`.
 */
import { namesOfCredential } from '../credential/material.js';
import type { FleetView } from '../resource/fleet-view.js';
import type { Hop } from './chain.js';

/** Empty for a hop that is not matched by name. */
export function effectiveNames(fleet: Pick<FleetView, 'get'>, hop: Hop): readonly string[] {
  const own = hop.server_names ?? [];
  return own.length > 0 ? own : namesOfCredential(fleet, hop.credential_id);
}

export function isWildcard(name: string): boolean {
  return name.startsWith('*.');
}

/** The name by which the previous hop dials; undefined when all are wildcards. */
export function firstExactName(names: readonly string[]): string | undefined {
  return names.find((name) => !isWildcard(name));
}
