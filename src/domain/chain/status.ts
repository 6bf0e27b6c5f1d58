/** The status of a chain, as answers show it. Implements `docs/contract/domain.md#l4-chain`, edit and deploy. */
import { jsonEqual } from '../../kernel/json.js';
import type { ChainState, ChainStatus } from './chain.js';
import { definitionOf } from './chain.js';

/** `disabled` when not enabled, else `draft`, `deployed` or `modified`. */
export function chainStatus(chain: ChainState): ChainStatus {
  if (!chain.enabled) return 'disabled';
  if (chain.deployed === null) return 'draft';
  return jsonEqual(definitionOf(chain), definitionOf(chain.deployed)) ? 'deployed' : 'modified';
}
