/** The status of a chain, as answers show it. Implements `docs/contract/domain.md#l4-chain`, edit and deploy. */
import { jsonEqual } from '../../kernel/json.js';
import type { ChainState, ChainStatus } from './chain.js';
import { definitionOf } from './chain.js';

/**
 * Remembers the answer for each state. Counts and filters ask about every chain again and again, comparing two
 * definitions takes most of the time, and a state never changes.
 */
const known = new WeakMap<ChainState, ChainStatus>();

/** `disabled` when not enabled, else `draft`, `deployed` or `modified`. */
export function chainStatus(chain: ChainState): ChainStatus {
  const before = known.get(chain);
  if (before !== undefined) return before;
  const status = compare(chain);
  known.set(chain, status);
  return status;
}

function compare(chain: ChainState): ChainStatus {
  if (!chain.enabled) return 'disabled';
  if (chain.deployed === null) return 'draft';
  return jsonEqual(definitionOf(chain), definitionOf(chain.deployed)) ? 'deployed' : 'modified';
}
