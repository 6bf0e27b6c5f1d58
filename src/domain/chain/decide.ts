/** Decides commands about chains against the fleet; pure. Implements `docs/contract/domain.md`, Edit and deploy. */
import { ok } from '../../kernel/result.js';
import { unreachable } from '../../kernel/errors.js';
import { changesOf, withChanges } from '../resource/change.js';
import type { Fleet } from '../fleet/fleet.js';
import { versionMismatch } from '../resource/if-match.js';
import { claimsOfChain } from '../listeners/claims.js';
import { collisionOf, collisionSentence } from '../listeners/collisions.js';
import { nameKey } from '../resource/names.js';
import { dialAddress } from '../node/evolve.js';
import type { Decision, Refusal } from '../resource/refusal.js';
import { refuse } from '../resource/refusal.js';
import type { ChainCommand, ChainDefinition, ChainEvent, ChainState } from './chain.js';
import { definitionProblem } from './definition.js';
import { definitionOf, nodesOf, upstreamOf } from './status.js';

type Of<T extends ChainCommand['type']> = Extract<ChainCommand, { type: T }>;

export function decideChain(fleet: Fleet, command: ChainCommand): Decision<ChainEvent> {
  if (command.type === 'CreateChain') return create(fleet, command);
  const chain = fleet.chains.get(command.id);
  if (chain === undefined) return refuse('not_found', `there is no l4_chain ${command.id}`);
  const mismatch = versionMismatch(chain.version, command.ifMatch);
  if (mismatch !== undefined) return { ok: false, error: mismatch };
  switch (command.type) {
    case 'UpdateChain':
      return update(fleet, chain, command);
    case 'DeleteChain': {
      const { name, description, enabled, deployed } = chain;
      const data = { chain_id: chain.id, name, description, enabled, ...definitionOf(chain), deployed };
      return ok([{ type: 'ChainDeleted', data }]);
    }
    case 'DeployChain':
      return deploy(fleet, chain);
    default:
      return unreachable(command);
  }
}

function create(fleet: Fleet, command: Of<'CreateChain'>): Decision<ChainEvent> {
  const { type: _, id, ...fields } = command;
  const meta = { id, version: 0, created_at: '', updated_at: '', deployed: null };
  const refusal =
    definitionRefusal(fields) ??
    referenceRefusal(fleet, fields) ??
    nameTaken(fleet, fields.name, undefined) ??
    collisionRefusal(fleet, { ...fields, ...meta });
  return refusal === undefined
    ? ok([{ type: 'ChainCreated', data: { chain_id: id, ...fields } }])
    : { ok: false, error: refusal };
}

function update(fleet: Fleet, chain: ChainState, command: Of<'UpdateChain'>): Decision<ChainEvent> {
  const { name, description, enabled, payload, hops, target } = command;
  const changes = changesOf(chain, { name, description, enabled, payload, hops, target });
  if (Object.keys(changes).length === 0) return ok([]);
  const next = withChanges(chain, changes);
  const goesLive = next.enabled && !chain.enabled && chain.deployed !== null;
  const refusal =
    definitionRefusal(next) ??
    referenceRefusal(fleet, next) ??
    nameTaken(fleet, next.name, chain.id) ??
    collisionRefusal(fleet, next) ??
    (goesLive && chain.deployed !== null ? undialable(fleet, chain.deployed) : undefined);
  return refusal === undefined
    ? ok([{ type: 'ChainUpdated', data: { chain_id: chain.id, changes } }])
    : { ok: false, error: refusal };
}

function deploy(fleet: Fleet, chain: ChainState): Decision<ChainEvent> {
  if (!chain.enabled)
    return refuse('conflict', `the l4_chain "${chain.name}" is disabled; enable it before it is deployed`);
  const refusal = collisionRefusal(fleet, chain) ?? undialable(fleet, chain);
  if (refusal !== undefined) return { ok: false, error: refusal };
  return ok([deployEvent(fleet, chain)]);
}

/** The event that a deploy of the chain's current definition is. Also what `plan` tries out. */
export function deployEvent(fleet: Fleet, chain: ChainState): ChainEvent {
  const from = chain.deployed === null ? null : definitionOf(chain.deployed);
  const to = definitionOf(chain);
  const nodes = nodesOf(from, to).map((node_id) => ({
    node_id,
    offset: fleet.nodes.get(node_id)?.generation_offset ?? 0,
  }));
  return {
    type: 'ChainDeployed',
    data: { chain_id: chain.id, chain_version: chain.version, definition: { from, to }, nodes },
  };
}

function definitionRefusal(definition: ChainDefinition): Refusal | undefined {
  const problem = definitionProblem(definition);
  return problem === undefined
    ? undefined
    : { code: 'invalid_request', message: `${problem.path}: ${problem.message}` };
}

/** What a body refers to must exist and fit (`docs/contract/rest.md`, the last 400 before 409). */
function referenceRefusal(fleet: Fleet, definition: ChainDefinition): Refusal | undefined {
  for (const [index, hop] of definition.hops.entries()) {
    if (!fleet.nodes.has(hop.node_id)) {
      return {
        code: 'invalid_request',
        message: `hops[${index}].node_id: expected the id of a node, there is no node ${hop.node_id}`,
      };
    }
  }
  const upstreamId = upstreamOf(definition);
  if (upstreamId === undefined) return undefined;
  const upstream = fleet.upstreams.get(upstreamId);
  if (upstream === undefined) {
    return {
      code: 'invalid_request',
      message: `target.upstream_id: expected the id of an l4_upstream, there is no ${upstreamId}`,
    };
  }
  if (definition.payload === 'udp' && upstream.tls !== null) {
    return {
      code: 'invalid_request',
      message: `target.upstream_id: expected an l4_upstream without tls for payload udp, "${upstream.name}" has tls`,
    };
  }
  return undefined;
}

function nameTaken(fleet: Fleet, name: string, ownId: string | undefined): Refusal | undefined {
  const holder = fleet.names.get(`l4_chain/${nameKey(name)}`);
  if (holder === undefined || holder === ownId) return undefined;
  return {
    code: 'conflict',
    message: `name: "${name}" is the name of l4_chain ${holder} already; expected a unique name`,
  };
}

/** Every collision of a chain with others, one sentence each. */
export function chainCollisions(fleet: Fleet, chain: ChainState): readonly string[] {
  const sentences = claimsOfChain(chain).flatMap((claim) => {
    const collision = collisionOf(fleet, claim);
    if (collision === undefined) return [];
    const index = chain.hops.findIndex((hop) => hop.node_id === claim.nodeId && hop.listen_port === claim.port);
    return [collisionSentence(fleet, collision, index === -1 ? 'hops' : `hops[${index}].listen_port`)];
  });
  return [...new Set(sentences)];
}

function collisionRefusal(fleet: Fleet, chain: ChainState): Refusal | undefined {
  const [first] = chainCollisions(fleet, chain);
  return first === undefined ? undefined : { code: 'conflict', message: first };
}

/** A hop that is dialled needs an address that the hop before it can dial. */
function undialable(fleet: Fleet, definition: ChainDefinition): Refusal | undefined {
  for (const [index, hop] of definition.hops.entries()) {
    const node = fleet.nodes.get(hop.node_id);
    if (index === 0 || hop.dial_addr !== undefined || node === undefined || dialAddress(node) !== null) continue;
    return {
      code: 'conflict',
      message:
        `hops[${index}].node_id: the node "${node.name}" has no known address for the hop before it to dial; ` +
        "set its address or the hop's dial_addr, or let its agent report one",
    };
  }
  return undefined;
}
