/** How far the guided rotation of a node's PSK is, by what its node says. Pure. */
import type { Node } from './nodes.js';

export type PskRotation =
  /** No candidate: one can be made. */
  | { readonly state: 'none' }
  /** There is a candidate, which no agent has proven yet. */
  | { readonly state: 'waiting'; readonly candidate: NonNullable<Node['psk_candidate']> }
  /** The candidate that was seen is the PSK now, and the one before has ended. */
  | { readonly state: 'over' }
  /** The candidate that was seen has expired, or was taken back or replaced by a plain PSK. */
  | { readonly state: 'gone' };

/** @param seen the fingerprint of the candidate that the page has shown, if any */
export function rotationOf(
  { psk_candidate: candidate, psk_fingerprint: current }: Pick<Node, 'psk_candidate' | 'psk_fingerprint'>,
  seen: string | undefined,
): PskRotation {
  if (candidate !== null) return { state: 'waiting', candidate };
  if (seen === undefined) return { state: 'none' };
  return { state: current === seen ? 'over' : 'gone' };
}
