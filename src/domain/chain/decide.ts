/** The rules of chains, and the decisions to deploy one. Implements `docs/contract/domain.md#l4-chain`, edit and deploy. */
import { err } from '../../kernel/result.js';
import { collisionOf, collisionSentence } from '../listeners/collisions.js';
import { undialable } from '../node/hops.js';
import { nodeKey } from '../node/node.js';
import type { FleetView } from '../resource/fleet-view.js';
import type { SaveRules } from '../resource/lifecycle-decisions.js';
import { refuse, type Decision, type Refusal } from '../resource/refusal.js';
import { existing, firstProblem, unlessRefused } from '../resource/rules.js';
import {
  chainKey,
  definitionOf,
  nodesOf,
  type ChainDefinition,
  type ChainDeployed,
  type ChainState,
  type DeployChain,
  type RollBackChain,
} from './chain.js';
import { claimsOfChain } from './claims.js';
import { definitionProblems } from './definition.js';
import { referenceRefusal } from './references.js';

/** What a user may set to give a hop an address. */
const addressOfHop = "its address or the hop's dial_addr";

export const chainRules: SaveRules<ChainState> = {
  invalid: (fleet, next) => firstProblem(definitionProblems(next)) ?? referenceRefusal(fleet, next),
  conflict: (fleet, next, before) => collisionRefusal(fleet, next) ?? goingLiveRefusal(fleet, next, before),
};

/** Why the deployed definition of a chain that is enabled or restored cannot run. */
function goingLiveRefusal(fleet: FleetView, next: ChainState, before: ChainState | undefined): Refusal | undefined {
  if (before === undefined) return deployedRefusal(fleet, next);
  const goesLive = next.enabled && !before.enabled && next.deployed !== null;
  return goesLive ? undialable(fleet, next.deployed.hops, addressOfHop) : undefined;
}

export function deployChain(fleet: FleetView, command: DeployChain): Decision<ChainDeployed> {
  const chain = existing(fleet, chainKey, command);
  if (!chain.ok) return err(chain.error);
  if (!chain.value.enabled) {
    return refuse('conflict', `the l4_chain "${chain.value.name}" is disabled; enable it before it is deployed`);
  }
  return unlessRefused(refusalOf(deployObstacles(fleet, chain.value)), deployEvent(fleet, chain.value));
}

/** What is in the way of a deploy of a chain's current definition, one sentence each. */
export function deployObstacles(fleet: FleetView, chain: ChainState): readonly string[] {
  const undialed = undialable(fleet, chain.hops, addressOfHop);
  return [...chainCollisions(fleet, chain), ...(undialed === undefined ? [] : [undialed.message])];
}

export function rollBackChain(fleet: FleetView, { id, definition }: RollBackChain): Decision<ChainDeployed> {
  const chain = existing(fleet, chainKey, { id });
  if (!chain.ok) return err(chain.error);
  // The rules read only the definition of what is deployed.
  const deployed = definition === null ? null : { ...definition, chain_version: 0, at: '', deployment_id: '' };
  const next = { ...chain.value, deployed };
  const refusal = deployedRefusal(fleet, next) ?? collisionRefusal(fleet, next);
  return unlessRefused(refusal, deployEvent(fleet, chain.value, definition));
}

/** The event that deploys a definition of a chain. @param to the current one unless given; null for none */
export function deployEvent(
  fleet: FleetView,
  chain: ChainState,
  to: ChainDefinition | null = definitionOf(chain),
): ChainDeployed {
  const from = chain.deployed === null ? null : definitionOf(chain.deployed);
  const nodes = nodesOf(from, to).map((node_id) => ({
    node_id,
    offset: fleet.get(nodeKey, node_id)?.generation_offset ?? 0,
  }));
  return {
    type: 'ChainDeployed',
    data: { chain_id: chain.id, chain_version: chain.version, definition: { from, to }, nodes },
  };
}

/** Why the deployed definition of a restored chain cannot run. */
function deployedRefusal(fleet: FleetView, { enabled, deployed }: ChainState): Refusal | undefined {
  if (deployed === null) return undefined;
  return referenceRefusal(fleet, deployed) ?? (enabled ? undialable(fleet, deployed.hops, addressOfHop) : undefined);
}

/** Every collision of a chain with others, one sentence each. */
function chainCollisions(fleet: FleetView, chain: ChainState): readonly string[] {
  const sentences = claimsOfChain(chain, fleet).flatMap((claim) => {
    const collision = collisionOf(fleet, claim);
    if (collision === undefined) return [];
    const index = chain.hops.findIndex((hop) => hop.node_id === claim.nodeId && hop.listen_port === claim.port);
    return [collisionSentence(fleet, collision, index === -1 ? 'hops' : `hops[${index}].listen_port`)];
  });
  return [...new Set(sentences)];
}

const collisionRefusal = (fleet: FleetView, chain: ChainState): Refusal | undefined =>
  refusalOf(chainCollisions(fleet, chain));

/** The refusal for the first of several obstacles. */
const refusalOf = ([message]: readonly string[]): Refusal | undefined =>
  message === undefined ? undefined : { code: 'conflict', message };
