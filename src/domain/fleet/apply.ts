/**
 * Folds whole commands into the fleet: states, indexes, and which nodes a command touched. The code is the same for
 * every resource; what differs is in the declarations. Decisions are in `decide.ts`. Implements
 * `docs/contract/domain.md#commands-and-events` and `docs/contract/domain.md#generation`.
 */
import type { RecordedCommand, RecordedEvent } from '../../kernel/event.js';
import { lastEvent } from '../../kernel/event.js';
import type { Json } from '../../kernel/json.js';
import { jsonEqual } from '../../kernel/json.js';
import type { Cell, Index, Table } from '../aggregate/containers.js';
import { rememberRevert } from '../aggregate/reverts.js';
import { rememberKey } from '../aggregate/idempotency.js';
import { deployedField } from '../chain/chain.js';
import type { FleetApplied } from '../fleet-set/declaration.js';
import { baseOf } from '../fleet-set/declaration.js';
import type { ChangedField } from '../fleet-set/hand-changes.js';
import { handOf, withChange, withNewBase } from '../fleet-set/hand-changes.js';
import type { Claim } from '../listeners/claims.js';
import { claimKey } from '../listeners/claims.js';
import { namesHeads } from '../log-chain/heads.js';
import type { Owner } from '../references/references.js';
import { ownerOf, splitOwner } from '../references/references.js';
import type { Changes } from '../resource/change.js';
import type { EventContext } from '../resource/declaration.js';
import type { AnyEvent } from '../resource/lifecycle.js';
import { nameIndexKey } from '../resource/meta.js';
import {
  fleetEvent,
  eventDeclaration,
  declaringResource,
  resourceOf,
  resourceOfType,
  resources,
  resourceTypes,
  singletons,
  singletonTypes,
} from './resources.js';
import type { Fleet } from './fleet.js';
import type { AnyResource, AnySingleton, AnyState, ResourceType } from './resources.js';

/**
 * Applies one command, which `log/upcast.ts` has read.
 * @returns ids of the touched nodes; deleted nodes are among them, so that their sessions can be ended
 */
export function applyCommand(fleet: Fleet, command: RecordedCommand): ReadonlySet<string> {
  const { revision, position } = lastEvent(command);
  const touched = namesHeads(command) ? new Set<string>() : applyEvents(fleet, command, revision);
  fleet.revision.set(revision);
  fleet.position.set(position);
  return touched;
}

function applyEvents(fleet: Fleet, command: RecordedCommand, revision: number): ReadonlySet<string> {
  const touched = new Set<string>();
  const [first] = command.events;
  for (const event of command.events) {
    for (const nodeId of applyEvent(fleet, event, first)) touched.add(nodeId);
  }
  for (const nodeId of touched) if (fleet.tables.node.has(nodeId)) fleet.touched.set(nodeId, revision);
  rememberKey(fleet.idempotency, command.events[0], resourceOf(command.events[0]).id);
  rememberRevert(fleet.reverts, command);
  return touched;
}

/**
 * @param first the first event of its command, which says whose work it is
 * @returns ids of the nodes that the event touches, and of the node that it deletes
 */
function applyEvent(fleet: Fleet, recorded: RecordedEvent, first: RecordedEvent): Iterable<string> {
  const event = fleetEvent(recorded);
  const { occurred_at: at, command, actor } = recorded.metadata;
  const eventId = command.count === 1 ? undefined : recorded.id;
  const context: EventContext = { at, commandId: command.id, eventId, revision: recorded.revision, actor };
  // `touches` is judged on the fleet before the event.
  const touches = changesOwnerAlone(event) ? [] : [...eventDeclaration(event).touches(fleet, event, context)];
  const declaring = declaringResource(event);
  if (declaring.kind === 'singleton') {
    const cell = fleet.singletons[declaring.type] as Cell<unknown>;
    if (event.type === 'FleetApplied') keepChangesBehind(fleet, event.data);
    cell.set(declaring.declaration.evolve(cell.value, event, context));
    if (event.type === 'ConnectivityUpdated') noteSettings(fleet, event.data.changes, recorded, first);
    return touches;
  }
  const { id } = resourceOf(event);
  const before = tableOf(fleet, declaring.type).get(id);
  const after = declaring.declaration.evolve(before, event, context);
  const by: By = { event: recorded, first };
  replaceResource(fleet, declaring.type, id, after, by);
  if (event.type === 'NodeRestored' && before === undefined) restoreWithNode(fleet, event.data, context, by);
  if (declaring.type !== 'node' || before === undefined || after !== undefined) return touches;
  forgetNode(fleet, id, by);
  return [...touches, id];
}

/** Which set owns a resource is in no snapshot. */
function changesOwnerAlone({ data }: AnyEvent): boolean {
  const changes: unknown = Reflect.get(data, 'changes');
  if (typeof changes !== 'object' || changes === null) return false;
  return Object.hasOwn(changes, 'managed_by') && Object.keys(changes).length === 1;
}

function tableOf(fleet: Fleet, type: ResourceType): Table<AnyState> {
  return fleet.tables[type] as unknown as Table<AnyState>;
}

function forgetNode(fleet: Fleet, nodeId: string, by: By): void {
  fleet.touched.delete(nodeId);
  for (const { type, id } of fleet.contributorsTo(nodeId)) {
    if (resourceOfType(type)?.ownedByNode !== undefined)
      replaceResource(fleet, type as ResourceType, id, undefined, by);
  }
  setSingletons(fleet, ({ withoutNode }, value) => withoutNode(value, nodeId));
}

/** The resources that the delete of the node took along. */
function restoreWithNode(fleet: Fleet, node: object, context: EventContext, by: By): void {
  for (const type of resourceTypes) {
    const owned = (resources[type] as unknown as AnyResource).ownedByNode?.restoredWith(node, context) ?? [];
    for (const state of owned) replaceResource(fleet, type, state.id, state, by);
  }
  setSingletons(fleet, ({ withNode }, value) => withNode(value, node));
}

function setSingletons(fleet: Fleet, next: (declaration: AnySingleton, value: unknown) => unknown): void {
  for (const type of singletonTypes) {
    const cell = fleet.singletons[type] as Cell<unknown>;
    const value = next(singletons[type] as unknown as AnySingleton, cell.value);
    if (value !== cell.value) cell.set(value);
  }
}

/**
 * Stores what an event leaves of a resource. The ids of what belongs to a node come back, so their versions begin above all
 * that were deleted: else an entity tag of the former content would fit the new one.
 */
function replaceResource(fleet: Fleet, type: ResourceType, id: string, after: AnyState | undefined, by: By): void {
  const before = tableOf(fleet, type).get(id);
  noteChanges(fleet, type, before, after, by);
  const { ownedByNode } = resources[type] as unknown as AnyResource;
  if (ownedByNode === undefined || (before === undefined) === (after === undefined)) {
    return putResource(fleet, type, id, after);
  }
  const { deletedVersion } = fleet;
  if (before !== undefined) deletedVersion.set(Math.max(deletedVersion.value, before.version));
  putResource(fleet, type, id, after && { ...after, version: Math.max(after.version, deletedVersion.value + 1) });
}

/** An event, and the first one of its command. */
interface By {
  readonly event: RecordedEvent;
  readonly first: RecordedEvent;
}

/** Notes what is changed by hand of a resource that a set owns. */
function noteChanges(
  fleet: Fleet,
  type: ResourceType,
  before: AnyState | undefined,
  after: AnyState | undefined,
  by: By,
): void {
  const state = before ?? after;
  const set = state?.managed_by ?? null;
  if (state === undefined || set === null) return;
  const { fields, sealed = [] } = resources[type] as unknown as AnyResource;
  const value = (of: AnyState | undefined, field: string): Json =>
    of === undefined ? null : ((Reflect.get(of, field) as Json | undefined) ?? null);
  const changed = [...fields.filter((field) => !sealed.includes(field)), deployedField].flatMap((field) => {
    const [from, to] = [value(before, field), value(after, field)];
    return from === to || jsonEqual(from, to) ? [] : [[field, from] as const];
  });
  note(fleet, ownerOf(type, state.id), set, (after ?? state).name, changed, by);
}

/** Notes the fields of the settings that are changed by hand although a document names them. */
function noteSettings(fleet: Fleet, changes: Changes, event: RecordedEvent, first: RecordedEvent): void {
  for (const [set, { settings = [] }] of Object.entries(fleet.singletons.fleet.value)) {
    const changed = settings.flatMap((field) => {
      const change = changes[field];
      return change === undefined ? [] : [[field, change.from] as const];
    });
    const { type, id } = singletons.connectivity;
    note(fleet, ownerOf(type, id), set, id, changed, { event, first });
  }
}

function note(
  { handChanges, singletons: { fleet: bases } }: Fleet,
  owner: Owner,
  set: string,
  name: string,
  fields: readonly ChangedField[],
  { event, first }: By,
): void {
  const base = baseOf(bases.value, set);
  if (base === undefined || fields.length === 0) return;
  const known = handChanges.get(owner);
  const next = withChange(known, base, { hand: handOf(bases.value, first, set), set, name, fields, event });
  if (next === known) return;
  if (next === undefined) handChanges.delete(owner);
  else handChanges.set(owner, next);
}

/** A new base of a set: what was changed by hand before the present one is forgotten. */
function keepChangesBehind({ handChanges, singletons: { fleet: bases } }: Fleet, applied: FleetApplied['data']): void {
  if (applied.part > 1) return;
  const ofSet = [...handChanges.entries()].filter(([, { set }]) => set === applied.name);
  for (const [owner, known] of ofSet) {
    const next = withNewBase(known, baseOf(bases.value, applied.name));
    if (next === undefined) handChanges.delete(owner);
    else handChanges.set(owner, next);
  }
}

/** Stores a resource's new state, undefined to delete it, and updates the index entries that differ. */
export function putResource(fleet: Fleet, type: ResourceType, id: string, after: AnyState | undefined): void {
  const table = tableOf(fleet, type);
  const before = table.get(id);
  const declaration = resources[type] as unknown as AnyResource;
  if (after === undefined) table.delete(id);
  else table.set(id, after);
  rename(fleet, type, id, before?.name, after?.name);
  moveIndexes(fleet, declaration, id, before, after);
  if (changed(before, after, declaration.indexed?.shapesClaims ?? [])) moveClaimsOfReferrers(fleet, type, id);
}

/** Whether a field differs between two states of one resource. An update keeps unchanged values as the same objects. */
function changed(
  before: AnyState | undefined,
  after: AnyState | undefined,
  fields: readonly (keyof AnyState)[],
): boolean {
  return before !== undefined && after !== undefined && fields.some((field) => before[field] !== after[field]);
}

function moveClaimsOfReferrers(fleet: Fleet, type: ResourceType, id: string): void {
  for (const owner of fleet.references.get(ownerOf(type, id))) {
    const referrer = splitOwner(owner);
    const indexed = resourceOfType(referrer.type)?.indexed;
    const state = fleet.get<AnyState>(referrer, referrer.id);
    if (indexed === undefined || indexed === null || state === undefined) continue;
    moveClaims(fleet, owner, indexed.claims(state, fleet));
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
  // A start puts every resource for the first time, twice: then there is nothing to compare.
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
  // A remaining claim may share index entries with a removed one, so remaining claims are added again.
  for (const [key, claim] of next) if (removed.length > 0 || !previous.has(key)) fleet.claims.add(claim);
  if (claims.length === 0) fleet.claimsOf.delete(owner);
  else fleet.claimsOf.set(owner, claims);
}
