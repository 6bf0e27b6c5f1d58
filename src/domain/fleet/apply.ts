/**
 * Folds whole commands into the fleet: states, indexes, and which nodes they touched. Deciding is elsewhere.
 */
import type { RecordedCommand, RecordedEvent } from '../../kernel/event.js';
import { lastEvent } from '../../kernel/event.js';
import { unreachable } from '../../kernel/errors.js';
import { affectedNodes } from '../compile/affected.js';
import type { ChainEvent, ChainState } from '../chain/chain.js';
import { evolveChain } from '../chain/evolve.js';
import { definitionsOf, nodesOf, upstreamOf } from '../chain/status.js';
import type { Index } from '../aggregate/journal.js';
import type { Claim } from '../listeners/claims.js';
import { chainOwner, claimsOfChain } from '../listeners/claims.js';
import { nameKey } from '../resource/names.js';
import type { NodeEvent } from '../node/node.js';
import { evolveNode } from '../node/evolve.js';
import { evolveSettings, withoutNode } from '../settings/evolve.js';
import { fleetEvent } from '../log/upcast.js';
import type { UpstreamEvent } from '../upstream/upstream.js';
import { evolveUpstream } from '../upstream/evolve.js';
import type { Fleet } from './fleet.js';
import { rememberKey } from '../aggregate/idempotency.js';
import { resourceOf } from './resource.js';

/**
 * Applies one command, already in today's shapes (`readCommand`). Returns the nodes whose configuration it touched;
 * deleted ones are among them, so that whoever serves them notices.
 */
export function applyCommand(fleet: Fleet, command: RecordedCommand): ReadonlySet<string> {
  const touched = new Set<string>();
  for (const event of command.events) {
    for (const nodeId of affectedNodes(fleet, fleetEvent(event), event.metadata.occurred_at)) touched.add(nodeId);
    applyEvent(fleet, event);
    if (event.type === 'NodeDeleted') touched.add(resourceOf(fleetEvent(event)).id);
  }
  const last = lastEvent(command);
  for (const nodeId of touched) if (fleet.nodes.has(nodeId)) fleet.touched.set(nodeId, last.revision);
  rememberKey(fleet.idempotency, command.events[0], resourceOf(fleetEvent(command.events[0])).id);
  fleet.revision.set(last.revision);
  fleet.position.set(last.position);
  return touched;
}

function applyEvent(fleet: Fleet, recorded: RecordedEvent): void {
  const event = fleetEvent(recorded);
  const at = recorded.metadata.occurred_at;
  switch (event.type) {
    case 'NodeCreated':
    case 'NodeUpdated':
    case 'NodeDeleted':
    case 'NodePskIssued':
    case 'NodeConfigRefreshed':
    case 'NodeReportedAddressChanged':
    case 'NodeGenerationRaised':
    case 'NodeCommandQueued':
      return applyNode(fleet, event, at, recorded.metadata.command.id);
    case 'UpstreamCreated':
    case 'UpstreamUpdated':
    case 'UpstreamDeleted':
      return applyUpstream(fleet, event, at);
    case 'ChainCreated':
    case 'ChainUpdated':
    case 'ChainDeleted':
    case 'ChainDeployed':
      return putChain(fleet, event.data.chain_id, evolve(fleet, event, at, recorded.metadata.command.id));
    case 'ConnectivityUpdated':
      return fleet.settings.set(evolveSettings(fleet.settings.value, event, at));
    case 'CompilerVersionRaised':
    case 'CompilerVersionLowered':
      return fleet.compilerVersion.set(event.data.version.to);
    default:
      return unreachable(event);
  }
}

const evolve = (fleet: Fleet, event: ChainEvent, at: string, commandId: string): ChainState | undefined =>
  evolveChain(fleet.chains.get(event.data.chain_id), event, at, commandId);

function rename(fleet: Fleet, type: string, id: string, from: string | undefined, to: string | undefined): void {
  if (from === to) return;
  if (from !== undefined) fleet.names.delete(`${type}/${nameKey(from)}`);
  if (to !== undefined) fleet.names.set(`${type}/${nameKey(to)}`, id);
}

function applyNode(fleet: Fleet, event: NodeEvent, at: string, commandId: string): void {
  const id = event.data.node_id;
  const before = fleet.nodes.get(id);
  const after = evolveNode(before, event, at, commandId);
  rename(fleet, 'node', id, before?.name, after?.name);
  if (after !== undefined) return fleet.nodes.set(id, after);
  fleet.nodes.delete(id);
  fleet.touched.delete(id);
  fleet.settings.set(withoutNode(fleet.settings.value, id));
}

function applyUpstream(fleet: Fleet, event: UpstreamEvent, at: string): void {
  const id = event.data.upstream_id;
  const before = fleet.upstreams.get(id);
  const after = evolveUpstream(before, event, at);
  rename(fleet, 'l4_upstream', id, before?.name, after?.name);
  if (after === undefined) fleet.upstreams.delete(id);
  else fleet.upstreams.set(id, after);
}

/** Puts a chain's new state and moves the indexes from the old one to it, touching only entries that differ. */
export function putChain(fleet: Fleet, id: string, after: ChainState | undefined): void {
  const before = fleet.chains.get(id);
  rename(fleet, 'l4_chain', id, before?.name, after?.name);
  if (!sameToIndexes(before, after)) moveIndexes(fleet, id, before, after);
  if (after === undefined) fleet.chains.delete(id);
  else fleet.chains.set(id, after);
}

/** Adds a chain to the indexes. */
export function indexChain(fleet: Fleet, chain: ChainState): void {
  moveIndexes(fleet, chain.id, undefined, chain);
}

/** An update keeps the values that it does not change, so identity tells. */
function sameToIndexes(before: ChainState | undefined, after: ChainState | undefined): boolean {
  return (
    before !== undefined &&
    after !== undefined &&
    before.enabled === after.enabled &&
    before.payload === after.payload &&
    before.hops === after.hops &&
    before.target === after.target &&
    before.deployed === after.deployed
  );
}

function moveIndexes(fleet: Fleet, id: string, before: ChainState | undefined, after: ChainState | undefined): void {
  const owner = chainOwner(id);
  moveEach(fleet.references, (target) => [target, owner], referencesOf(before), referencesOf(after));
  const deployedOn = (chain: ChainState | undefined): ReadonlySet<string> => new Set(nodesOf(chain?.deployed ?? null));
  moveEach(fleet.deployedOn, (nodeId) => [nodeId, id], deployedOn(before), deployedOn(after));
  const [old, now] = [claimsByKey(before), claimsByKey(after)];
  for (const [key, claim] of old) if (!now.has(key)) fleet.claims.remove(claim);
  // After the removals: a claim that stays may share a part of its entries with one that goes.
  const lost = [...old.keys()].some((key) => !now.has(key));
  for (const [key, claim] of now) if (lost || !old.has(key)) fleet.claims.add(claim);
}

function moveEach(
  index: Index,
  entry: (key: string) => readonly [string, string],
  before: ReadonlySet<string>,
  after: ReadonlySet<string>,
): void {
  for (const key of before) if (!after.has(key)) index.remove(...entry(key));
  for (const key of after) if (!before.has(key)) index.add(...entry(key));
}

function claimsByKey(chain: ChainState | undefined): ReadonlyMap<string, Claim> {
  const claims = chain === undefined ? [] : claimsOfChain(chain);
  return new Map(
    claims.map((c) => [`${c.nodeId}/${c.transport}/${c.port}/${c.addr}/${c.family}/${c.values.join(' ')}`, c]),
  );
}

/** What a chain refers to, by `<type>/<id>`: both definitions count, enabled or not. */
function referencesOf(chain: ChainState | undefined): ReadonlySet<string> {
  if (chain === undefined) return new Set();
  const definitions = definitionsOf(chain);
  const upstreams = definitions.map(upstreamOf).filter((id) => id !== undefined);
  return new Set([...nodesOf(...definitions).map((id) => `node/${id}`), ...upstreams.map((id) => `l4_upstream/${id}`)]);
}
