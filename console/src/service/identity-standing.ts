/** How far a fleet is between two identity keys of the service. Pure. */
import type { Schemas } from '../shared/api/client.js';

/** @param total of all nodes; those without a PSK, and those that have not connected with theirs, are on neither key */
export function standingOf({ nodes: { current, next } }: Pick<Schemas['ServiceIdentity'], 'nodes'>, total: number) {
  return { over: next, old: current, unproven: Math.max(0, total - current - next) };
}

/**
 * Whether the PSK of a node is older than the second key, which every later PSK carries. An older candidate that was
 * proven since then cannot be told apart; the service names its node when the old key is retired.
 */
export const isBehind = ({ psk_issued_at: issued }: Pick<Schemas['Node'], 'psk_issued_at'>, since: string): boolean =>
  issued !== null && issued < since;
