/**
 * Folds whole commands into the fleet: states and touched nodes, by the declarations of the resources. `put-resource.ts`
 * stores states with their indexes, `decide.ts` decides. Implements `docs/contract/domain.md#commands-and-events` and `docs/contract/domain.md#generation`.
 */
import { lastEvent, type RecordedCommand, type RecordedEvent } from '../../kernel/event.js';
import { jsonEqual } from '../../kernel/json.js';
import { runSync } from '../../kernel/pieces.js';
import type { Cell } from '../aggregate/containers.js';
import { rememberRevert } from '../aggregate/reverts.js';
import { rememberKey } from '../aggregate/idempotency.js';
import { deployedField } from '../chain/chain.js';
import { askedOfNodes } from '../confirmation/confirmation.js';
import { beginBase, fieldIn, forgetGone, keepLeft, settingsOwner, type Changed } from '../fleet-set/left-by-apply.js';
import { namesHeads } from '../log-chain/heads.js';
import type { NodeEvent } from '../node/node.js';
import { ownerOf, splitOwner, type Owner } from '../references/references.js';
import type { EventContext } from '../resource/declaration.js';
import type { AnyEvent } from '../resource/lifecycle.js';
import { fieldsOfSettings, withNode, withoutNode } from '../settings/evolve.js';
import type { SettingsState } from '../settings/settings.js';
import {
  fleetEvent,
  eventDeclaration,
  declaringResource,
  resourceOf,
  resourceOfType,
  declarationOf,
  resourceTypes,
  type AnyState,
  type ResourceType,
} from './resources.js';
import type { Fleet } from './fleet.js';
import { putResource, tableOf } from './put-resource.js';
import { forgetOldRollouts, leaveRollout } from './rollouts.js';

/**
 * Applies one command, which `log/upcast.ts` has read.
 * @returns ids of the touched nodes, with deleted ones, whose sessions must end
 */
export function applyCommand(fleet: Fleet, command: RecordedCommand): ReadonlySet<string> {
  return runSync(applyInPieces(fleet, command));
}

/** Events applied, and nodes marked, at a time. */
const perPiece = { events: 25, nodes: 2_500 };

/** Like `applyCommand`. Yields between two pieces: a command may have hundreds of events, and touch all nodes. */
export function* applyInPieces(fleet: Fleet, command: RecordedCommand): Generator<void, ReadonlySet<string>> {
  const { revision, position } = lastEvent(command);
  const touched = new Set<string>();
  if (!namesHeads(command)) {
    const [first] = command.events;
    // Plain loops, because a start folds every command of the log here, and nearly all have one event.
    let done = 0;
    for (const event of command.events) {
      for (const nodeId of applyEvent(fleet, event, first)) touched.add(nodeId);
      done += 1;
      if (done % perPiece.events === 0) yield;
    }
    if (touched.size > perPiece.nodes) yield;
    const confirmSecs = askedOfNodes(command.events);
    for (const nodeId of touched) {
      if (fleet.tables.node.has(nodeId)) {
        fleet.touched.set(nodeId, revision);
        if (confirmSecs !== undefined) fleet.needs.set(nodeId, { revision, secs: confirmSecs });
      }
      done += 1;
      if (done % perPiece.nodes === 0) yield;
    }
    rememberKey(fleet.idempotency, first, resourceOf(first).id);
    rememberRevert(fleet.reverts, command);
  }
  fleet.revision.set(revision);
  fleet.position.set(position);
  return touched;
}

/** @param first the first event of its command @returns ids of the nodes that the event touches or deletes */
function applyEvent(fleet: Fleet, recorded: RecordedEvent, first: RecordedEvent): Iterable<string> {
  const event = fleetEvent(recorded);
  const { occurred_at: at, command, actor } = recorded.metadata;
  const eventId = command.count === 1 ? undefined : recorded.id;
  const context: EventContext = { at, commandId: command.id, eventId, revision: recorded.revision, actor };
  // `touches` sees the fleet before the event.
  const touches = changesOwnerAlone(event) ? [] : [...eventDeclaration(event).touches(fleet, event, context)];
  const declaring = declaringResource(event);
  if (declaring.kind === 'singleton') {
    const cell = fleet.singletons[declaring.type] as Cell<unknown>;
    const settings = fleet.singletons.connectivity.value;
    if (event.type === 'FleetApplied' || event.type === 'FleetBaseMoved') {
      forgetGone(fleet.left, fleet.singletons.fleet.value, event.data.name, fleet.has);
      beginBase(fleet.left, event, (owner) => presentState(fleet, owner));
    }
    cell.set(declaring.declaration.evolve(cell.value, event, context));
    if (event.type === 'ConnectivityUpdated') keepLeftOfSettings(fleet, settings, first);
    return touches;
  }
  const { id } = resourceOf(event);
  const isThere = fleet.has(declaring.type, id);
  replaceResource(fleet, declaring.type, id, (state) => declaring.declaration.evolve(state, event, context), first);
  if (declaring.type === 'rollout') forgetOldRollouts(fleet, id);
  if (event.type === 'NodeRestored' && !isThere) restoreWithNode(fleet, event.data, context, first);
  if (declaring.type !== 'node' || !isThere || fleet.has(declaring.type, id)) return touches;
  forgetNode(fleet, id, first);
  return [...touches, id];
}

/** Whether an event only changes the set that owns a resource, which no snapshot contains. */
function changesOwnerAlone({ data }: AnyEvent): boolean {
  const changes: unknown = Reflect.get(data, 'changes');
  if (typeof changes !== 'object' || changes === null) return false;
  return Object.hasOwn(changes, 'managed_by') && Object.keys(changes).length === 1;
}

function forgetNode(fleet: Fleet, nodeId: string, first: RecordedEvent): void {
  fleet.touched.delete(nodeId);
  fleet.needs.delete(nodeId);
  leaveRollout(fleet, nodeId);
  for (const { type, id } of fleet.contributorsTo(nodeId)) {
    if (resourceOfType(type)?.ownedByNode !== undefined)
      replaceResource(fleet, type as ResourceType, id, () => undefined, first);
  }
  setSettings(fleet, withoutNode(fleet.singletons.connectivity.value, nodeId), first);
}

/** Restores what was deleted with the node. */
function restoreWithNode(
  fleet: Fleet,
  node: Extract<NodeEvent, { readonly type: 'NodeRestored' }>['data'],
  context: EventContext,
  first: RecordedEvent,
): void {
  for (const type of resourceTypes) {
    const owned = declarationOf(type).ownedByNode?.restoredWith(node, context) ?? [];
    for (const state of owned) replaceResource(fleet, type, state.id, () => state, first);
  }
  setSettings(fleet, withNode(fleet.singletons.connectivity.value, node), first);
}

/** Stores the settings with or without the override of a node. */
function setSettings(fleet: Fleet, next: SettingsState, first: RecordedEvent): void {
  const { connectivity } = fleet.singletons;
  const before = connectivity.value;
  if (next === before) return;
  connectivity.set(next);
  keepLeftOfSettings(fleet, before, first);
}

/** The effect of an event on a state; undefined for no resource. */
type Evolve = (state: AnyState | undefined) => AnyState | undefined;

/**
 * Stores a resource after an event. Resources of a node get the same id again when they are created again, so their versions
 * start above those of all deleted ones: otherwise an old entity tag would match the new content.
 */
function replaceResource(fleet: Fleet, type: ResourceType, id: string, next: Evolve, first: RecordedEvent): void {
  const before = tableOf(fleet, type).get(id);
  const after = next(before);
  keepLeftOf(fleet, type, before, after, next, first);
  const { ownedByNode } = declarationOf(type);
  if (ownedByNode === undefined || (before === undefined) === (after === undefined)) {
    return putResource(fleet, type, id, after);
  }
  const { deletedVersion } = fleet;
  if (before !== undefined) deletedVersion.set(Math.max(deletedVersion.value, before.version));
  putResource(fleet, type, id, after && { ...after, version: Math.max(after.version, deletedVersion.value + 1) });
}

/** The fields of a resource that a document describes, and those that its apply sets besides. */
export const describedFields = (type: ResourceType): readonly string[] => described.get(type) ?? [];

const described: ReadonlyMap<ResourceType, readonly string[]> = new Map(
  resourceTypes.map((type) => {
    const { fields, sealed = [] } = declarationOf(type);
    return [type, [...fields.filter((field) => !sealed.includes(field)), deployedField, 'managed_by']];
  }),
);

/** The state of a resource, or the fields of the settings; null for a resource that does not exist. */
export function presentState(fleet: Fleet, owner: Owner): object | null {
  if (owner === settingsOwner) return fieldsOfSettings(fleet.singletons.connectivity.value);
  const { type, id } = splitOwner(owner);
  return fleet.get<AnyState>({ type }, id) ?? null;
}

function keepLeftOf(
  { left, singletons: { fleet: bases } }: Fleet,
  type: ResourceType,
  before: AnyState | undefined,
  after: AnyState | undefined,
  next: Evolve,
  first: RecordedEvent,
): void {
  const state = before ?? after;
  const sets = [before?.managed_by, after?.managed_by].filter((set) => typeof set === 'string');
  if (state === undefined || (sets.length === 0 && after !== undefined)) return;
  const owner = ownerOf(type, state.id);
  const from = before?.managed_by ?? null;
  const change = { owner, before, after, next: next as Changed['next'], fields: describedFields(type), sets, from };
  keepLeft(left, bases.value, { ...change, first });
}

function keepLeftOfSettings(
  { left, singletons: { connectivity, fleet } }: Fleet,
  was: SettingsState,
  first: RecordedEvent,
): void {
  const [before, after] = [fieldsOfSettings(was), fieldsOfSettings(connectivity.value)];
  for (const [set, { settings: fields = [] }] of Object.entries(fleet.value)) {
    const changed = fields.filter((field) => !jsonEqual(fieldIn(before, field), fieldIn(after, field)));
    const next = (state: object): object => ({
      ...state,
      ...Object.fromEntries(changed.map((field) => [field, fieldIn(after, field)])),
    });
    keepLeft(left, fleet.value, { owner: settingsOwner, before, after, next, fields, sets: [set], first });
  }
}
