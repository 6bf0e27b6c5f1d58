/**
 * Stores one resource's state, and keeps the indexes of the fleet that are made from states: names, references, contributors,
 * claims, the nodes of rollouts, what waits for a confirmation, candidates of PSKs. `apply.ts` says which states events give.
 */
import type { Index, Table } from '../aggregate/containers.js';
import { claimKey, type Claim } from '../listeners/claims.js';
import type { NodeState } from '../node/node.js';
import { ownerOf, type Owner } from '../references/references.js';
import { nameIndexKey } from '../resource/meta.js';
import { moveConfirming } from './confirmations.js';
import type { Fleet } from './fleet.js';
import { declarationOf, type AnyResource, type AnyState, type ResourceType } from './resources.js';
import { moveMembers } from './rollouts.js';

export function tableOf(fleet: Fleet, type: ResourceType): Table<AnyState> {
  return fleet.tables[type] as Table<AnyState>;
}

/** Stores a resource's new state, undefined to delete it, and updates the index entries that differ. */
export function putResource(fleet: Fleet, type: ResourceType, id: string, after: AnyState | undefined): void {
  const table = tableOf(fleet, type);
  const before = table.get(id);
  const declaration = declarationOf(type);
  if (after === undefined) table.delete(id);
  else table.set(id, after);
  if (declaration.reusesNames !== true) rename(fleet, type, id, before?.name, after?.name);
  moveIndexes(fleet, declaration, id, before, after);
  if (type === 'rollout') moveMembers(fleet, before, after);
  if (type === 'confirmation') moveConfirming(fleet, before, after);
  if (type === 'node') moveCandidate(fleet, id, before, after);
  if (changed(before, after, declaration.indexed?.shapesClaims ?? [])) moveClaimsOfReferrers(fleet, type, id);
}

function moveCandidate(
  { candidates }: Fleet,
  nodeId: string,
  before: AnyState | undefined,
  after: AnyState | undefined,
): void {
  const [from, to] = [before, after].map((state) => (state as NodeState | undefined)?.psk_candidate);
  if (from === to) return;
  if (to === undefined) candidates.delete(nodeId);
  else candidates.set(nodeId, to.expires_at);
}

/** Whether a field differs. An update keeps unchanged values as the same objects. */
function changed(
  before: AnyState | undefined,
  after: AnyState | undefined,
  fields: readonly (keyof AnyState)[],
): boolean {
  return before !== undefined && after !== undefined && fields.some((field) => before[field] !== after[field]);
}

function moveClaimsOfReferrers(fleet: Fleet, type: ResourceType, id: string): void {
  for (const owner of fleet.references.get(ownerOf(type, id))) {
    const referrer = fleet.resolve(owner);
    if (referrer !== undefined)
      moveClaims(fleet, owner, referrer.declaration.indexed?.claims(referrer.state, fleet) ?? []);
  }
}

function rename(fleet: Fleet, type: string, id: string, from: string | undefined, to: string | undefined): void {
  if (from === to) return;
  if (from !== undefined) fleet.names.delete(nameIndexKey(type, from));
  if (to !== undefined) fleet.names.set(nameIndexKey(type, to), id);
}

function moveIndexes(
  fleet: Fleet,
  { type, indexed }: AnyResource,
  id: string,
  before: AnyState | undefined,
  after: AnyState | undefined,
): void {
  if (indexed === null) return;
  if (before !== undefined && after !== undefined && !changed(before, after, indexed.dependsOn)) return;
  const owner = ownerOf(type, id);
  // A new resource has nothing to compare, and a start stores every resource anew.
  if (before === undefined && after !== undefined && fleet.claimsOf.get(owner) === undefined) {
    for (const key of indexed.references(after)) fleet.references.add(key, owner);
    for (const key of indexed.nodes(after)) fleet.contributors.add(key, owner);
    const claims = indexed.claims(after, fleet);
    for (const claim of claims) fleet.claims.add(claim);
    if (claims.length > 0) fleet.claimsOf.set(owner, claims);
    return;
  }
  const each = <V>(state: AnyState | undefined, of: (state: AnyState) => Iterable<V>): ReadonlySet<V> =>
    new Set(state === undefined ? [] : of(state));
  moveEach(fleet.references, owner, each(before, indexed.references), each(after, indexed.references));
  moveEach(fleet.contributors, owner, each(before, indexed.nodes), each(after, indexed.nodes));
  moveClaims(fleet, owner, after === undefined ? [] : indexed.claims(after, fleet));
}

function moveEach(index: Index, owner: string, before: ReadonlySet<string>, after: ReadonlySet<string>): void {
  for (const key of before) if (!after.has(key)) index.remove(key, owner);
  for (const key of after) if (!before.has(key)) index.add(key, owner);
}

function moveClaims(fleet: Fleet, owner: Owner, claims: readonly Claim[]): void {
  const byKey = (list: readonly Claim[]): ReadonlyMap<string, Claim> =>
    new Map(list.map((claim) => [claimKey(claim), claim]));
  const [previous, next] = [byKey(fleet.claimsOf.get(owner) ?? []), byKey(claims)];
  const removed = [...previous].filter(([key]) => !next.has(key));
  for (const [, claim] of removed) fleet.claims.remove(claim);
  // Remaining claims are added again, because one may share index entries with a removed claim.
  for (const [key, claim] of next) if (removed.length > 0 || !previous.has(key)) fleet.claims.add(claim);
  if (claims.length === 0) fleet.claimsOf.delete(owner);
  else fleet.claimsOf.set(owner, claims);
}
