/**
 * What a command, a resource or a whole node needs of agents, by the declarations. `agents/features.ts` says what
 * agents lack. Implements `docs/contract/agent-protocol.md#configuration`, "Features".
 */
import { chainKey, definitionOf, type ChainState } from '../chain/chain.js';
import type { Fleet } from '../fleet/fleet.js';
import { resourceOf, resourceOfType, type AnyState, type FleetEvent } from '../fleet/resources.js';
import { nodesInReach } from '../settings/evolve.js';
import { effectiveMultiplex, settingsOf } from '../settings/settings.js';
import type { Feature, Needs } from '../snapshot/features.js';
import { contributorsOf } from './compile-node.js';

type Collected = Map<string, Set<Feature>>;

/**
 * What a resource needs of its nodes; nothing while it is disabled.
 * @param definition of a chain: the deployed one, or the current one as its deploy would need it
 */
export function needsOf(fleet: Fleet, type: string, id: string, definition: 'current' | 'deployed'): Needs {
  const needs: Collected = new Map();
  addResource(needs, fleet, { type, id }, definition);
  return needs;
}

/** Adds what an event of a command asks of nodes. @param fleet after it */
export function addNeeds(needs: Collected, fleet: Fleet, event: FleetEvent): void {
  if (event.type !== 'ConnectivityUpdated') return addResource(needs, fleet, resourceOf(event), 'current');
  const settings = settingsOf(fleet);
  for (const nodeId of nodesInReach(event.data.changes, fleet.ids('node'))) {
    if (effectiveMultiplex(settings, nodeId).multiplex) add(needs, nodeId, ['multiplex']);
  }
}

/** What the newest snapshot of a node needs. */
export function needsOfNode(fleet: Fleet, nodeId: string): ReadonlySet<Feature> {
  const needed = new Set<Feature>();
  for (const { compiled, state } of contributorsOf(fleet, nodeId)) {
    for (const feature of compiled.features(fleet, state, nodeId)) needed.add(feature);
  }
  if (effectiveMultiplex(settingsOf(fleet), nodeId).multiplex) needed.add('multiplex');
  return needed;
}

function addResource(
  needs: Collected,
  fleet: Fleet,
  { type, id }: { readonly type: string; readonly id: string },
  definition: 'current' | 'deployed',
): void {
  const { indexed, compiled } = resourceOfType(type) ?? {};
  const isDraft = type === chainKey.type && definition === 'current';
  const state = isDraft ? asDeployed(fleet.get(chainKey, id)) : fleet.get<AnyState>({ type }, id);
  if (state === undefined || !indexed || !compiled) return;
  for (const nodeId of indexed.nodes(state)) add(needs, nodeId, compiled.features(fleet, state, nodeId));
}

/** A chain with its current definition deployed. */
function asDeployed(chain: ChainState | undefined): ChainState | undefined {
  return chain && { ...chain, deployed: { ...definitionOf(chain), chain_version: 0, at: '', deployment_id: '' } };
}

function add(needs: Collected, nodeId: string, some: readonly Feature[]): void {
  const known = needs.get(nodeId);
  if (known === undefined) needs.set(nodeId, new Set(some));
  else for (const feature of some) known.add(feature);
}
