/** The fold of the settings' events. A node's override is the field `nodes.<id>`, with null for a missing override. */
import { fromJson } from '../../kernel/json.js';
import { withChanges, type Changes } from '../resource/change.js';
import type { EventContext } from '../resource/declaration.js';
import type { MultiplexOverride, SettingsEvent, SettingsState } from './settings.js';

const overridePrefix = 'nodes.';

export function overrideField(nodeId: string): string {
  return overridePrefix + nodeId;
}

/** The id of the node whose override a field is; undefined for a global field. */
export function overriddenNode(field: string): string | undefined {
  return field.startsWith(overridePrefix) ? field.slice(overridePrefix.length) : undefined;
}

/** Ids of the nodes whose multiplex the changes may affect: all for a global field, else the overridden ones. */
export function nodesInReach(changes: Changes, all: Iterable<string>): Iterable<string> {
  if (changes['multiplex'] !== undefined || changes['multiplex_port'] !== undefined) return all;
  return Object.keys(changes)
    .map(overriddenNode)
    .filter((id) => id !== undefined);
}

/** The settings under the field names of their events. */
export function fieldsOfSettings({ nodes, ...globals }: SettingsState): { readonly [field: string]: unknown } {
  const overrides = Object.entries(nodes).map(([id, override]) => [overrideField(id), override] as const);
  return { ...globals, ...Object.fromEntries(overrides) };
}

/** The settings after one event. */
export function evolveSettings(
  state: SettingsState,
  event: SettingsEvent,
  { at }: Pick<EventContext, 'at'>,
): SettingsState {
  const changes = Object.entries(event.data.changes);
  const globals = changes.filter(([field]) => overriddenNode(field) === undefined);
  const nodes = new Map(Object.entries(state.nodes));
  for (const [field, { to }] of changes) {
    const nodeId = overriddenNode(field);
    if (nodeId === undefined) continue;
    if (to === null) nodes.delete(nodeId);
    else nodes.set(nodeId, fromJson<MultiplexOverride>(to));
  }
  return {
    ...withChanges(state, Object.fromEntries(globals)),
    nodes: sorted(nodes),
    version: state.version + 1,
    updated_at: at,
  };
}

function sorted(nodes: ReadonlyMap<string, MultiplexOverride>): SettingsState['nodes'] {
  return Object.fromEntries([...nodes].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** The settings with the override of a restored node, if it had one; their version stays. */
export function withNode(
  state: SettingsState,
  { node_id, override }: { readonly node_id: string; readonly override: MultiplexOverride | null },
): SettingsState {
  if (override === null) return state;
  return { ...state, nodes: sorted(new Map([...Object.entries(state.nodes), [node_id, override]])) };
}

/** The settings without a deleted node's override; their version stays. */
export function withoutNode(state: SettingsState, nodeId: string): SettingsState {
  if (state.nodes[nodeId] === undefined) return state;
  return { ...state, nodes: Object.fromEntries(Object.entries(state.nodes).filter(([id]) => id !== nodeId)) };
}
