/**
 * The declaration of L4 chains, and the listeners that the current definition of an enabled chain intends.
 * Implements `docs/contract/domain.md#l4-chain`.
 */
import { asJson, type Json } from '../../kernel/json.js';
import { credentialKey } from '../credential/credential.js';
import { nodeKey } from '../node/node.js';
import { dialEndpoint, hopAfter, hopAfterRule } from '../node/hops.js';
import { ownerOf } from '../references/references.js';
import { eventAudit, type AuditChange } from '../resource/audit-change.js';
import type { FieldChange } from '../resource/change.js';
import type { Compiled, EventContext, FleetEventDeclaration, Indexed, NodeLink } from '../resource/declaration.js';
import { defineResource } from '../resource/define-resource.js';
import type { FleetView } from '../resource/fleet-view.js';
import { nextVersion } from '../resource/meta.js';
import type { Undo } from '../resource/undo.js';
import { upstreamKey } from '../upstream/upstream.js';
import {
  chainKey,
  credentialsOf,
  definitionOf,
  definitionsOf,
  liveDefinition,
  nodesOf,
  upstreamOf,
  type ChainDefinition,
  type ChainDeployed,
  type ChainFields,
  type ChainState,
  type RollBackChain,
  type Hop,
  type Payload,
} from './chain.js';
import { claimsOfChain } from './claims.js';
import { chainRules, deployChain, rollBackChain } from './decide.js';
import { featuresOn } from './features.js';
import { objectionOfChain } from './references.js';
import { chainRulesOn, rulesBound } from './rules.js';
import { listenerOf, transportOf } from './transports.js';
import { x25519Material } from '../credential/material.js';
import type { IntendedListener, IntendedRoute } from '../listeners/intent.js';
import { effectiveNames } from './names.js';

/** The part of a chain's state besides its definition. A delete carries it, and an undo brings it back. */
type Deployed = Pick<ChainState, 'deployed'>;

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
  features(fleet, chain, nodeId) {
    const live = liveDefinition(chain);
    return live === null ? [] : featuresOn(fleet, live, nodeId);
  },
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
    // The hop uses the credential's keys, and the hop before it dials with them.
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
  dialledBy: ({ deployed }, ruleId) => hopAfterRule(deployed?.hops, ruleId)?.node_id,
  linksFrom: linksOfChain,
};

/** The links of the current and of the deployed definition. */
function linksOfChain(fleet: FleetView, chain: ChainState, nodeId: string): readonly NodeLink[] {
  if (!chain.enabled) return [];
  return definitionsOf(chain).flatMap(({ hops }) => {
    const next = hopAfter(hops, nodeId);
    return next === undefined ? [] : [{ toNodeId: next.node_id, endpoint: dialEndpoint(fleet, next) }];
  });
}

/** Only `enabled` and the name, which a rule's origin holds, take effect without a deploy. */
function touched(before: ChainState | undefined, after: ChainState | undefined): readonly string[] {
  const live = nodesOf(...[before, after].map((chain) => (chain === undefined ? null : liveDefinition(chain))));
  if (before === undefined || after === undefined) return live;
  return before.enabled === after.enabled && before.name === after.name ? [] : live;
}

const chain = defineResource<ChainFields, Deployed, never, Deployed>()('l4_chain', {
  noun: 'Chain',
  singular: 'chain',
  fields: ['name', 'description', 'enabled', 'payload', 'hops', 'target'],
  initial: { deployed: null },
  alsoDeleted: ['deployed'],
  ...chainRules,
  indexed,
  compiled,
  objectionTo: objectionOfChain,
  touches: (_fleet, before, after) => touched(before, after),
});

type ChainEvent = Parameters<typeof chain.evolve>[1] | ChainDeployed;

export const l4Chain = {
  ...chain,
  decide: { ...chain.decide, DeployChain: deployChain, RollBackChain: rollBackChain },
  /** @param context its `commandId`, or its `eventId`, becomes the id of a deployment */
  evolve(state: ChainState | undefined, event: ChainEvent, context: EventContext): ChainState | undefined {
    if (event.type !== 'ChainDeployed') return chain.evolve(state, event, context);
    if (state === undefined) return undefined;
    const { definition, chain_version } = event.data;
    const { at, commandId, eventId: deployment_id = commandId } = context;
    const deployed = definition.to === null ? null : { ...definition.to, chain_version, at, deployment_id };
    return nextVersion({ ...state, deployed }, at);
  },
  events: {
    ...chain.events,
    ChainDeployed: {
      audit: ({ data }) => eventAudit('deploy', definitionChanges(data.definition.from, data.definition.to)),
      undo: ({ data }) => undoDeploy(data),
      touches: (_fleet, { data }) => nodesOf(data.definition.from, data.definition.to),
    } satisfies FleetEventDeclaration<ChainDeployed>,
  },
};

function undoDeploy({ chain_id: id, definition }: ChainDeployed['data']): Undo {
  return {
    kind: 'change',
    changes: { deployed: definition as FieldChange },
    now(fleet) {
      const chain = fleet.get(chainKey, id);
      return chain && (() => (chain.deployed === null ? null : asJson(definitionOf(chain.deployed))));
    },
    command: () => ({ type: 'RollBackChain', id, definition: definition.from }) satisfies RollBackChain,
  };
}

/** The changes of a deploy as the audit shows them. */
export function definitionChanges(from: ChainDefinition | null, to: ChainDefinition | null): readonly AuditChange[] {
  return (['payload', 'hops', 'target'] as const)
    .map((field) => ({ path: field, before: (from?.[field] ?? null) as Json, after: (to?.[field] ?? null) as Json }))
    .filter(({ before, after }) => JSON.stringify(before) !== JSON.stringify(after));
}

/** The listeners that a chain intends on a node; none while it is disabled. */
function intendedByChain(fleet: FleetView, chain: ChainState, nodeId: string): readonly IntendedListener[] {
  const index = chain.hops.findIndex((hop) => hop.node_id === nodeId);
  const hop = chain.hops[index];
  if (!chain.enabled || hop === undefined) return [];
  return [{ nodeId, ...listenerOf(hop), routes: routesOf(fleet, chain, index, hop) }];
}

/** One route per server name. A Noise hop is matched by its public key; a RAW hop without names is the default route. */
function routesOf(fleet: FleetView, chain: ChainState, index: number, hop: Hop): readonly IntendedRoute[] {
  const upstreamId = upstreamBehind(chain, index);
  const upstream = fleet.get(upstreamKey, upstreamId);
  const source = upstream === undefined ? 'l4_chain' : 'l4_upstream';
  const sourceLabel = upstream?.name ?? chain.name;
  const nextHop = nextHopOf(fleet, chain, index);
  return matchesOf(fleet, chain.payload, hop).map(([matchKind, matchValue]) => ({
    source,
    sourceLabel,
    matchKind,
    matchValue,
    nextHop,
    deployed: isDeployed(fleet, chain, { hop, matchKind, matchValue, nextHop, upstreamId }),
  }));
}

type Match = readonly [kind: IntendedRoute['matchKind'], value: string];

function matchesOf(fleet: FleetView, payload: Payload, hop: Hop): readonly Match[] {
  const kind = transportOf(payload, hop)?.matchKind ?? 'default';
  if (kind === 'local_key') return [[kind, x25519Material(fleet, hop.credential_id)?.public_key ?? '']];
  const names = effectiveNames(fleet, hop);
  return names.length === 0 ? [['default', '']] : names.map((name) => [kind, name] as const);
}

function nextHopOf(fleet: FleetView, definition: ChainDefinition, index: number): string {
  const next = definition.hops[index + 1];
  if (next !== undefined) return dialEndpoint(fleet, next);
  const { target } = definition;
  return 'endpoint' in target ? target.endpoint : (fleet.get(upstreamKey, target.upstream_id)?.endpoint ?? '');
}

/** The id of the upstream that a hop leads to; undefined for all but the last hop. */
function upstreamBehind(definition: ChainDefinition, index: number): string | undefined {
  return index === definition.hops.length - 1 ? upstreamOf(definition) : undefined;
}

interface CurrentRoute {
  readonly hop: Hop;
  readonly matchKind: IntendedRoute['matchKind'];
  readonly matchValue: string;
  readonly nextHop: string;
  readonly upstreamId: string | undefined;
}

/** Whether the deployed definition has the same route. */
function isDeployed(
  fleet: FleetView,
  chain: ChainState,
  { hop, matchKind, matchValue, nextHop, upstreamId }: CurrentRoute,
): boolean {
  const { deployed } = chain;
  if (deployed === null || deployed.payload !== chain.payload) return false;
  const index = deployed.hops.findIndex((other) => other.node_id === hop.node_id);
  const other = deployed.hops[index];
  return (
    other !== undefined &&
    other.listen_addr === hop.listen_addr &&
    other.listen_port === hop.listen_port &&
    other.outer === hop.outer &&
    other.security === hop.security &&
    matchesOf(fleet, deployed.payload, other).some(([kind, value]) => kind === matchKind && value === matchValue) &&
    nextHopOf(fleet, deployed, index) === nextHop &&
    // Two upstreams may have the same endpoint.
    upstreamBehind(deployed, index) === upstreamId
  );
}
