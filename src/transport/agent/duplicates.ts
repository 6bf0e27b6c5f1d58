/**
 * Decides when two agents seem to share one PSK: at the second SUPERSEDED of a node within 5 minutes. Pure.
 * Implements `duplicate_agent` in `docs/contract/agent-protocol.md#control`.
 */
import { limits } from '../../kernel/limits.js';

/** When a node's sessions were closed with SUPERSEDED, in wall-clock milliseconds; only those that still count. */
export type Supersedings = readonly number[];

export function noteSuperseded(
  earlier: Supersedings,
  now: number,
): { readonly supersedings: Supersedings; readonly duplicate: boolean } {
  const recent = recentSupersedings(earlier, now);
  return { supersedings: [...recent, now].slice(-2), duplicate: recent.length > 0 };
}

export function recentSupersedings(earlier: Supersedings, now: number): Supersedings {
  return earlier.filter((at) => now - at <= limits.agent.duplicateWindowMs);
}
