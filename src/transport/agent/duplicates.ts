/**
 * When two agents share one PSK: at the second SUPERSEDED of a node within 5 minutes. Pure.
 * Implements `docs/contract/agent-protocol.md#control` ("the node shows `duplicate_agent: true` for an hour").
 */
import { limits } from '../../kernel/limits.js';

/** Wall-clock milliseconds of the SUPERSEDED closes of one node that still matter. */
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
