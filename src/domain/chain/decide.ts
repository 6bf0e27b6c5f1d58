/** Decides commands about chains. Implements `docs/contract/domain.md#l4-chain`, edit and deploy. */
import { err, ok } from '../../kernel/result.js';
import { collisionOf, collisionSentence } from '../listeners/collisions.js';
import { undialable } from '../node/hops.js';
import { nodeKey } from '../node/node.js';
import { changesOf, withChanges } from '../resource/change.js';
import type { Decisions } from '../resource/declaration.js';
import type { FleetView } from '../resource/fleet-view.js';
import { pick } from '../resource/lifecycle.js';
import type { Refusal } from '../resource/refusal.js';
import { refuse } from '../resource/refusal.js';
import { existing, exists, nameTaken, unlessRefused } from '../resource/rules.js';
import type { ChainCommand, ChainDefinition, ChainEvent, ChainState } from './chain.js';
import { chainFields, chainKey, definitionOf, nodesOf } from './chain.js';
import { claimsOfChain } from './claims.js';
import { definitionProblems } from './definition.js';
import { referenceRefusal } from './references.js';

/** The sources of a hop's address. */
const addressOfHop = "its address or the hop's dial_addr";

export const decideChain: Decisions<ChainCommand, ChainEvent> = {
  CreateChain(fleet, { type: _, id, ...fields }) {
    const chain = { ...fields, id, version: 0, created_at: '', updated_at: '', deployed: null };
    return unlessRefused(refusalOf(fleet, chain), { type: 'ChainCreated', data: { chain_id: id, ...fields } });
  },
  UpdateChain(fleet, command) {
    const chain = existing(fleet, chainKey, command);
    if (!chain.ok) return err(chain.error);
    const { id, enabled, deployed } = chain.value;
    const changes = changesOf(chain.value, command, chainFields);
    if (Object.keys(changes).length === 0) return ok([]);
    const next = withChanges(chain.value, changes);
    const goesLive = next.enabled && !enabled && deployed !== null;
    const refusal = refusalOf(fleet, next) ?? (goesLive ? undialable(fleet, deployed.hops, addressOfHop) : undefined);
    return unlessRefused(refusal, { type: 'ChainUpdated', data: { chain_id: id, changes } });
  },
  DeleteChain(fleet, command) {
    const chain = existing(fleet, chainKey, command);
    if (!chain.ok) return err(chain.error);
    const { id, deployed } = chain.value;
    return ok([{ type: 'ChainDeleted', data: { chain_id: id, ...pick(chain.value, chainFields), deployed } }]);
  },
  DeployChain(fleet, command) {
    const chain = existing(fleet, chainKey, command);
    if (!chain.ok) return err(chain.error);
    if (!chain.value.enabled) {
      return refuse('conflict', `the l4_chain "${chain.value.name}" is disabled; enable it before it is deployed`);
    }
    const refusal = collisionRefusal(fleet, chain.value) ?? undialable(fleet, chain.value.hops, addressOfHop);
    return unlessRefused(refusal, deployEvent(fleet, chain.value));
  },
  RollBackChain(fleet, { id, definition }) {
    const chain = existing(fleet, chainKey, { id });
    if (!chain.ok) return err(chain.error);
    const next = { ...chain.value, deployed: definition === null ? null : asDeployed(definition) };
    const refusal = deployedRefusal(fleet, next) ?? collisionRefusal(fleet, next);
    return unlessRefused(refusal, deployEvent(fleet, chain.value, definition));
  },
  RestoreChain(fleet, { type: _, id, former, ...fields }) {
    const chain: ChainState = { ...fields, id, version: 0, created_at: '', updated_at: '' };
    const refusal = exists(fleet, chainKey.type, id) ?? refusalOf(fleet, chain) ?? deployedRefusal(fleet, chain);
    return unlessRefused(refusal, { type: 'ChainRestored', data: { chain_id: id, ...fields, former } });
  },
};

/**
 * The event of deploying a definition of a chain, its current one unless another is given; null ends what is deployed.
 * `compile/plan.ts` tries it out.
 */
export function deployEvent(
  fleet: FleetView,
  chain: ChainState,
  to: ChainDefinition | null = definitionOf(chain),
): ChainEvent {
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

/** Why a chain cannot be saved as it is. Checked in the order of `docs/contract/rest.md#envelope`. */
function refusalOf(fleet: FleetView, chain: ChainState): Refusal | undefined {
  return (
    definitionRefusal(chain) ??
    referenceRefusal(fleet, chain) ??
    nameTaken(fleet, chainKey.type, chain.name, chain.version === 0 ? undefined : chain.id) ??
    collisionRefusal(fleet, chain)
  );
}

function definitionRefusal(definition: ChainDefinition): Refusal | undefined {
  for (const { path, message } of definitionProblems(definition)) {
    const place = path.map((step) => (typeof step === 'number' ? `[${step}]` : `.${step}`)).join('');
    return { code: 'invalid_request', message: `${place.slice(1)}: ${message}` };
  }
  return undefined;
}

/** Before the event that deploys it, nothing but the definition counts. */
function asDeployed(definition: ChainDefinition): ChainState['deployed'] {
  return { ...definition, chain_version: 0, at: '', deployment_id: '' };
}

/** Why the deployed definition of a chain that comes back cannot run. */
function deployedRefusal(fleet: FleetView, { enabled, deployed }: ChainState): Refusal | undefined {
  if (deployed === null) return undefined;
  return referenceRefusal(fleet, deployed) ?? (enabled ? undialable(fleet, deployed.hops, addressOfHop) : undefined);
}

/** Every collision of a chain with others, one sentence each. */
export function chainCollisions(fleet: FleetView, chain: ChainState): readonly string[] {
  const sentences = claimsOfChain(chain, fleet).flatMap((claim) => {
    const collision = collisionOf(fleet, claim);
    if (collision === undefined) return [];
    const index = chain.hops.findIndex((hop) => hop.node_id === claim.nodeId && hop.listen_port === claim.port);
    return [collisionSentence(fleet, collision, index === -1 ? 'hops' : `hops[${index}].listen_port`)];
  });
  return [...new Set(sentences)];
}

function collisionRefusal(fleet: FleetView, chain: ChainState): Refusal | undefined {
  const [first] = chainCollisions(fleet, chain);
  return first === undefined ? undefined : { code: 'conflict', message: first };
}
