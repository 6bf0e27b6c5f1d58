/**
 * A listener policy: the order in which a node tries the match kinds on one of its listeners. It is deleted and restored
 * with its node, and its listener identifies it. State, events, commands. Implements
 * `docs/contract/rest.md#port-management`.
 */
import type { FleetView, ResourceKey } from '../resource/fleet-view.js';
import type { IfMatch } from '../resource/refusal.js';
import { fieldsOf, type LifecycleEvent, type RestoreCommand } from '../resource/lifecycle.js';
import type { Owned, ResourceMeta } from '../resource/meta.js';

export const policyTransports = ['tcp', 'udp'] as const;

/** The match kinds in their default order. */
export const priorityLabels = ['reality', 'tls', 'noise', 'raw'] as const;
export type PriorityLabel = (typeof priorityLabels)[number];

/** A policy without its node, as snapshots and the delete of the node carry it. */
export interface PolicyOfNode {
  readonly transport: (typeof policyTransports)[number];
  /** An IP literal in canonical form. */
  readonly listen_addr: string;
  readonly listen_port: number;
  /** Every label, once. */
  readonly priority_order: readonly PriorityLabel[];
  readonly managed_by?: string | null | undefined;
}

/** The policies in the event that restores a node. */
export interface PoliciesOfNode {
  readonly node_id: string;
  readonly policies: readonly PolicyOfNode[];
}

export interface PolicyDefinition extends Omit<PolicyOfNode, 'managed_by'> {
  readonly node_id: string;
}

export type PolicyKey = Omit<PolicyDefinition, 'priority_order'>;

export const policyFields = fieldsOf<PolicyDefinition>()([
  'node_id',
  'transport',
  'listen_addr',
  'listen_port',
  'priority_order',
]);

export interface PolicyState extends ResourceMeta, PolicyDefinition {
  /** Its id. */
  readonly name: string;
}

export type PolicyEvent = LifecycleEvent<'ListenerPolicy', 'policy_id', PolicyDefinition>;

export type PolicyCommand =
  | ({ readonly type: 'SaveListenerPolicy'; readonly ifMatch: IfMatch } & PolicyDefinition & Owned)
  | ({ readonly type: 'DeleteListenerPolicy'; readonly ifMatch: IfMatch } & PolicyKey)
  | RestoreCommand<'ListenerPolicy', PolicyDefinition>;

export const policyKey: ResourceKey<PolicyState> = { type: 'listener_policy' };

/** The id of a policy, which is its listener. */
export function policyId({ node_id, transport, listen_addr, listen_port }: PolicyKey): string {
  return `${node_id}/${transport}/${listen_addr}/${listen_port}`;
}

/** The node of the policy with an id. */
export function nodeOfPolicy(id: string): string {
  return id.slice(0, id.indexOf('/'));
}

/** A policy's id with the name of its node in place of the node's id, as plans, applies and drift name it. */
export function nameOfPolicy(id: string, nameOfNode: (id: string) => string | undefined): string {
  const nodeId = nodeOfPolicy(id);
  return (nameOfNode(nodeId) ?? nodeId) + id.slice(nodeId.length);
}

/** The order without repeated labels, and with missing ones appended in the default order. */
export function wholeOrder(labels: readonly PriorityLabel[]): readonly PriorityLabel[] {
  return [...new Set([...labels, ...priorityLabels])];
}

/** The saved policies of a node, by id. */
export function policiesOf(fleet: Pick<FleetView, 'get' | 'contributorsTo'>, nodeId: string): readonly PolicyState[] {
  return fleet
    .contributorsTo(nodeId)
    .filter(({ type }) => type === policyKey.type)
    .flatMap(({ id }) => fleet.get(policyKey, id) ?? [])
    .sort((a, b) => (a.id < b.id ? -1 : 1));
}
