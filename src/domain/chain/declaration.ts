/** The declaration of L4 chains. */
import type { Json } from '../../kernel/json.js';
import { credentialKey } from '../credential/credential.js';
import { nodeKey } from '../node/node.js';
import { dialEndpoint, hopAfter } from '../node/hops.js';
import { ownerOf } from '../references/references.js';
import type { AuditChange } from '../resource/audit-change.js';
import { entryByEntry, eventAudit, fieldChanges } from '../resource/audit-change.js';
import type { Changes } from '../resource/change.js';
import type { Compiled, Indexed, NodeLink, Resource } from '../resource/declaration.js';
import type { FleetView } from '../resource/fleet-view.js';
import { lifecycleAudit } from '../resource/lifecycle-audit.js';
import { upstreamKey } from '../upstream/upstream.js';
import type { ChainCommand, ChainDefinition, ChainEvent, ChainState } from './chain.js';
import { chainFields, chainKey, credentialsOf, definitionsOf, nodesOf, upstreamOf } from './chain.js';
import { claimsOfChain } from './claims.js';
import { decideChain } from './decide.js';
import { evolveChain } from './evolve.js';
import { intendedByChain } from './intent.js';
import { objectionOfChain } from './references.js';
import { chainRulesOn } from './rules.js';
import { rulesBound } from './size.js';

const audit = lifecycleAudit(chainFields);

const indexed: Indexed<ChainState> = {
  dependsOn: ['enabled', 'payload', 'hops', 'target', 'deployed'],
  references(chain) {
    const definitions = definitionsOf(chain);
    const upstreams = definitions.map(upstreamOf).filter((id) => id !== undefined);
    const credentials = definitions.flatMap(credentialsOf);
    return [
      ...nodesOf(...definitions).map((id) => ownerOf(nodeKey.type, id)),
      ...upstreams.map((id) => ownerOf(upstreamKey.type, id)),
      ...credentials.map((id) => ownerOf(credentialKey.type, id)),
    ];
  },
  claims: claimsOfChain,
  nodes: (chain) => nodesOf(chain.deployed),
};

/** The definition that nodes run: the deployed one of an enabled chain. */
function liveDefinition(chain: ChainState): ChainDefinition | null {
  return chain.enabled ? chain.deployed : null;
}

const compiled: Compiled<ChainState> = {
  rulesOn: chainRulesOn,
  bound: rulesBound,
  intendedOn: intendedByChain,
  nodesUsing(chain, type, id) {
    const hops = liveDefinition(chain)?.hops ?? [];
    const target = chain.deployed === null ? undefined : upstreamOf(chain.deployed);
    // The last hop has the upstream; the hop with the credential has its keys, and the one before it dials by them.
    const using = hops.filter((hop, index) =>
      type === upstreamKey.type
        ? index === hops.length - 1 && target === id
        : type === credentialKey.type && [hop, hops[index + 1]].some((one) => one?.credential_id === id),
    );
    return using.map((hop) => hop.node_id);
  },
  diallersOf(chain, nodeId) {
    const hops = liveDefinition(chain)?.hops ?? [];
    const index = hops.findIndex((hop) => hop.node_id === nodeId);
    const previous = hops[index - 1];
    return previous === undefined || hops[index]?.dial_addr !== undefined ? [] : [previous.node_id];
  },
  linksFrom: linksOfChain,
};

/** Of the current definition, which is wanted, and of the deployed one, which is measured. */
function linksOfChain(fleet: FleetView, chain: ChainState, nodeId: string): readonly NodeLink[] {
  if (!chain.enabled) return [];
  return definitionsOf(chain).flatMap(({ hops }) => {
    const next = hopAfter(hops, nodeId);
    return next === undefined ? [] : [{ toNodeId: next.node_id, endpoint: dialEndpoint(fleet, next) }];
  });
}

/** Only `enabled` and the name, which a rule's origin holds, take effect without a deploy. */
function touchedByUpdate(fleet: FleetView, chainId: string, changes: Changes): readonly string[] {
  const chain = fleet.get(chainKey, chainId);
  if (chain === undefined) return [];
  if (changes['enabled'] !== undefined) return nodesOf(chain.deployed);
  return changes['name'] === undefined ? [] : nodesOf(liveDefinition(chain));
}

export const l4Chain: Resource<'l4_chain', 'Chain', 'chain', ChainState, ChainEvent, ChainCommand> = {
  type: 'l4_chain',
  noun: 'Chain',
  singular: 'chain',
  plural: 'chains',
  fields: chainFields,
  decide: decideChain,
  evolve: evolveChain,
  indexed,
  compiled,
  objectionTo: objectionOfChain,
  events: {
    ChainCreated: { schemaVersion: 1, audit: audit.created, touches: () => [] },
    ChainUpdated: {
      schemaVersion: 1,
      audit: ({ data }) => eventAudit('update', fieldChanges(data.changes).flatMap(entryByEntry('hops'))),
      touches: (fleet, { data }) => touchedByUpdate(fleet, data.chain_id, data.changes),
    },
    ChainDeleted: {
      schemaVersion: 1,
      audit: audit.deleted,
      touches(fleet, { data }) {
        const chain = fleet.get(chainKey, data.chain_id);
        return chain === undefined ? [] : nodesOf(liveDefinition(chain));
      },
    },
    ChainDeployed: {
      schemaVersion: 1,
      audit: ({ data }) => eventAudit('deploy', definitionChanges(data.definition.from, data.definition.to)),
      touches: (_fleet, { data }) => nodesOf(data.definition.from, data.definition.to),
    },
  },
};

function definitionChanges(from: ChainDefinition | null, to: ChainDefinition | null): readonly AuditChange[] {
  return (['payload', 'hops', 'target'] as const)
    .map((field) => ({ path: field, before: (from?.[field] ?? null) as Json, after: (to?.[field] ?? null) as Json }))
    .filter(({ before, after }) => JSON.stringify(before) !== JSON.stringify(after));
}
