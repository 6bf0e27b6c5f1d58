/** Derived facts of a chain: its status, its definition, the nodes it names. Implements `docs/contract/domain.md#l4-chain`, Edit and deploy. */
import { jsonEqual } from '../../kernel/json.js';
import type { ChainDefinition, ChainState, ChainStatus } from './chain.js';

export function definitionOf(chain: ChainDefinition): ChainDefinition {
  return { payload: chain.payload, hops: chain.hops, target: chain.target };
}

/** `disabled` when not enabled, else `draft`, `deployed` or `modified`. */
export function chainStatus(chain: ChainState): ChainStatus {
  if (!chain.enabled) return 'disabled';
  if (chain.deployed === null) return 'draft';
  return jsonEqual(definitionOf(chain), definitionOf(chain.deployed)) ? 'deployed' : 'modified';
}

/** The current definition and the deployed one, each once. */
export function definitionsOf(chain: ChainState): readonly ChainDefinition[] {
  return chain.deployed === null ? [chain] : [chain, chain.deployed];
}

/** Ids of the nodes of one or more definitions, each once, in order of appearance. */
export function nodesOf(...definitions: readonly (ChainDefinition | null)[]): readonly string[] {
  return [...new Set(definitions.flatMap((definition) => definition?.hops.map((hop) => hop.node_id) ?? []))];
}

/** The registered upstream that a definition ends in, if it does. */
export function upstreamOf(definition: ChainDefinition): string | undefined {
  return 'upstream_id' in definition.target ? definition.target.upstream_id : undefined;
}
