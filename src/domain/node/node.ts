/**
 * A gateway node as operators describe it: state, events, commands. What its agent did is in `agents/`. Implements
 * `docs/contract/rest.md#nodes` and `docs/contract/domain.md#generation`.
 */
import { isDialableIp } from '../../kernel/addresses.js';
import type { FieldChange } from '../resource/change.js';
import type { PolicyOfNode } from '../listener-policy/policy.js';
import type { ResourceKey } from '../resource/fleet-view.js';
import type { LifecycleCommand, LifecycleEvent } from '../resource/lifecycle.js';
import { fieldsOf } from '../resource/lifecycle.js';
import type { ResourceMeta } from '../resource/meta.js';
import type { SealedSecret } from '../secret/sealed.js';
import type { MultiplexOverride } from '../settings/settings.js';

export type Labels = { readonly [key: string]: string };

export interface NodeDefinition {
  readonly name: string;
  readonly description: string | null;
  /** Host or IP that other nodes dial; null for the addresses that the agent reported. */
  readonly address: string | null;
  readonly labels: Labels;
}

export const nodeFields = fieldsOf<NodeDefinition>()(['name', 'description', 'address', 'labels']);

export interface NodeState extends ResourceMeta, NodeDefinition {
  readonly psk: NodePsk | null;
  /** As the agent's last hello reported them. */
  readonly public_ipv4: string | null;
  readonly public_ipv6: string | null;
  /** Part of the node's generation; above 0 only after a restore of an older log. */
  readonly generation_offset: number;
  /** For the agent, oldest first, delivered or not. Expired ones are removed when the next one is queued. */
  readonly commands: readonly AgentCommand[];
}

export const agentCommandNames = ['RELOAD_CONFIG', 'RESTART_PINGORA', 'RUN_DIAGNOSTICS'] as const;
export type AgentCommandName = (typeof agentCommandNames)[number];

interface QueuedCommand {
  readonly command: AgentCommandName;
  /** RFC 3339. */
  readonly queued_at: string;
  readonly expires_at: string;
}

/** A command to the agent. It is sent at most once: a claim in the read store decides which instance sends it. */
export interface AgentCommand extends QueuedCommand {
  /** The id of the command that queued it, which is also the id of its audit entry. */
  readonly id: string;
}

interface IssuedPsk {
  readonly fingerprint: string;
  /** JSON of {node_static_public, psk}, sealed with stream, node id and field `psk_verifier` as associated data. */
  readonly verifier: SealedSecret;
}

interface NodePsk extends IssuedPsk {
  readonly issued_at: string;
}

/** The parts besides the definition that a delete removes and an undo restores. */
export interface DeletedWithNode {
  readonly override: MultiplexOverride | null;
  readonly policies: readonly PolicyOfNode[];
  /** Without it, a restored node could get a generation that its agent has already seen. */
  readonly generation_offset: number;
}

interface ReportedAddresses<T> {
  readonly public_ipv4: T;
  readonly public_ipv6: T;
}

interface OfNode {
  readonly node_id: string;
}

export type NodeEvent =
  | LifecycleEvent<'Node', 'node_id', NodeDefinition, DeletedWithNode>
  | { readonly type: 'NodePskIssued'; readonly data: OfNode & IssuedPsk }
  | { readonly type: 'NodeConfigRefreshed'; readonly data: OfNode }
  | {
      readonly type: 'NodeReportedAddressChanged';
      readonly data: OfNode & ReportedAddresses<FieldChange<string | null>>;
    }
  | { readonly type: 'NodeGenerationRaised'; readonly data: OfNode & { readonly offset: FieldChange<number> } }
  | { readonly type: 'NodeCommandQueued'; readonly data: OfNode & QueuedCommand };

type Lifecycle = LifecycleCommand<'Node', NodeDefinition, never, DeletedWithNode>;

export type NodeCommand =
  | (Extract<Lifecycle, { readonly type: 'CreateNode' }> & { readonly psk: IssuedPsk | null })
  | Exclude<Lifecycle, { readonly type: 'CreateNode' }>
  | ({ readonly type: 'IssueNodePsk'; readonly id: string } & IssuedPsk)
  | { readonly type: 'RefreshNodeConfig'; readonly id: string }
  | ({ readonly type: 'ReportNodeAddress'; readonly id: string } & ReportedAddresses<string | null>)
  | {
      readonly type: 'RaiseNodeGeneration';
      readonly id: string;
      /** The generation that the agent says it runs. The node's next generation is above it. */
      readonly reported: number;
    }
  | ({ readonly type: 'QueueNodeCommand'; readonly id: string } & QueuedCommand);

export const nodeKey: ResourceKey<NodeState> = { type: 'node' };

/**
 * The address that other nodes dial: the node's own, as the operator gave it, else the public IPv4 or IPv6 that its agent
 * reported. One that a dialler would take for itself or its own link is passed over: a node must not be able to lead
 * others to their own loopback.
 */
export function dialAddress(node: Pick<NodeState, 'address' | 'public_ipv4' | 'public_ipv6'>): string | null {
  if (node.address !== null) return node.address;
  return [node.public_ipv4, node.public_ipv6].find((reported) => reported !== null && isDialableIp(reported)) ?? null;
}

/** The commands that have not expired, oldest first. @param at the time, RFC 3339 */
export function unexpired(commands: readonly AgentCommand[], at: string): readonly AgentCommand[] {
  return commands.filter((command) => command.expires_at > at);
}
