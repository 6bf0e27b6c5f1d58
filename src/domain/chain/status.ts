/** The status of a chain, as answers show it. Implements `docs/contract/domain.md#l4-chain`, edit and deploy. */
import { jsonEqual } from '../../kernel/json.js';
import { definitionOf, type ChainState, type ChainStatus } from './chain.js';

/** Cached by state, because counts and filters ask again and again, and comparing two definitions is expensive. */
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
