/** The declaration of L4 chains. */
import type { Json } from '../../kernel/json.js';
import { credentialKey } from '../credential/credential.js';
import { nodeKey } from '../node/node.js';
import { dialEndpoint, hopAfter } from '../node/hops.js';
import { ownerOf } from '../references/references.js';
import type { AuditChange } from '../resource/audit-change.js';
import { entryByEntry, eventAudit, fieldChanges } from '../resource/audit-change.js';
import type { Changes, FieldChange } from '../resource/change.js';
import type { Compiled, Indexed, NodeLink, Resource } from '../resource/declaration.js';
import type { FleetView } from '../resource/fleet-view.js';
import { lifecycleAudit } from '../resource/lifecycle-audit.js';
import { lifecycleUndo } from '../resource/undo.js';
import type { Undo } from '../resource/undo.js';
import { upstreamKey } from '../upstream/upstream.js';
import type { ChainCommand, ChainDefinition, ChainEvent, ChainState } from './chain.js';
import {
  chainFields,
  chainKey,
  credentialsOf,
  definitionOf,
  definitionsOf,
  liveDefinition,
  nodesOf,
  upstreamOf,
} from './chain.js';
import { claimsOfChain } from './claims.js';
import { decideChain } from './decide.js';
import { evolveChain } from './evolve.js';
import { intendedByChain } from './intent.js';
import { listenerOf } from './transports.js';
import { objectionOfChain } from './references.js';
import { chainRulesOn } from './rules.js';
import { rulesBound } from './size.js';

type DataOf<T extends ChainEvent['type']> = Extract<ChainEvent, { readonly type: T }>['data'];

const audit = lifecycleAudit(chainFields);
const undo = lifecycleUndo('l4_chain', 'Chain', 'chain');

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

const compiled: Compiled<ChainState> = {
  rulesOn: chainRulesOn,
  bound: rulesBound,
  intendedOn: intendedByChain,
  liveOn: (chain, nodeId) =>
    (liveDefinition(chain)?.hops ?? []).filter((hop) => hop.node_id === nodeId).map(listenerOf),
  nodesUsing(chain, type, id) {
    const live = liveDefinition(chain);
    if (live === null) return [];
    const { hops } = live;
    if (type === upstreamKey.type) {
      const last = hops.at(-1);
      return last !== undefined && upstreamOf(live) === id ? [last.node_id] : [];
    }
    if (type !== credentialKey.type) return [];
    // The hop with the credential has its keys, and the one before it dials by them.
    return hops
      .filter((hop, index) => hop.credential_id === id || hops[index + 1]?.credential_id === id)
      .map((hop) => hop.node_id);
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
  fields: chainFields,
  decide: decideChain,
  evolve: evolveChain,
  indexed,
  compiled,
  objectionTo: objectionOfChain,
  events: {
    ChainCreated: { schemaVersion: 1, audit: audit.created, undo: undo.created, touches: () => [] },
    ChainUpdated: {
      schemaVersion: 1,
      audit: ({ data }) => eventAudit('update', fieldChanges(data.changes).flatMap(entryByEntry('hops'))),
      undo: undo.updated,
      touches: (fleet, { data }) => touchedByUpdate(fleet, data.chain_id, data.changes),
    },
    ChainDeleted: {
      schemaVersion: 1,
      audit: audit.deleted,
      undo: undo.deleted,
      touches(fleet, { data }) {
        const chain = fleet.get(chainKey, data.chain_id);
        return chain === undefined ? [] : nodesOf(liveDefinition(chain));
      },
    },
    ChainRestored: {
      schemaVersion: 1,
      audit: audit.restored,
      undo: undo.restored,
      touches: (_fleet, { data }) => (data.enabled ? nodesOf(data.deployed) : []),
    },
    ChainDeployed: {
      schemaVersion: 1,
      audit: ({ data }) => eventAudit('deploy', definitionChanges(data.definition.from, data.definition.to)),
      undo: ({ data }) => undoDeploy(data),
      touches: (_fleet, { data }) => nodesOf(data.definition.from, data.definition.to),
    },
  },
};

function undoDeploy({ chain_id: id, definition }: DataOf<'ChainDeployed'>): Undo {
  return {
    kind: 'change',
    changes: { deployed: definition as unknown as FieldChange },
    now(fleet) {
      const chain = fleet.get(chainKey, id);
      return chain && (() => (chain.deployed === null ? null : (definitionOf(chain.deployed) as unknown as Json)));
    },
    command: () => ({ type: 'RollBackChain', id, definition: definition.from }) satisfies ChainCommand,
  };
}

function definitionChanges(from: ChainDefinition | null, to: ChainDefinition | null): readonly AuditChange[] {
  return (['payload', 'hops', 'target'] as const)
    .map((field) => ({ path: field, before: (from?.[field] ?? null) as Json, after: (to?.[field] ?? null) as Json }))
    .filter(({ before, after }) => JSON.stringify(before) !== JSON.stringify(after));
}
