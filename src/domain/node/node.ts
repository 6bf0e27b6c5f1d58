/**
 * A gateway node as operators describe it: state, events, commands. Not its telemetry and not what its agent did
 * (streams `svc-agents-*`). Implements `docs/contract/rest.md#nodes` and `docs/contract/domain.md#generation`.
 */
import type { FieldChange } from '../resource/change.js';
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
  /** Host or IP that other nodes dial; falls back to what the agent reported. */
  readonly address: string | null;
  readonly labels: Labels;
}

export const nodeFields = fieldsOf<NodeDefinition>()(['name', 'description', 'address', 'labels']);

export interface NodeState extends ResourceMeta, NodeDefinition {
  readonly psk: NodePsk | null;
  /** As the agent's hello last reported them. */
  readonly public_ipv4: string | null;
  readonly public_ipv6: string | null;
  /** Added to the node's revision to give its generation; above 0 only after a store was restored. */
  readonly generation_offset: number;
  /** For the agent, oldest first, claimed or not. Expired ones go when the next is queued. */
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

/** One command to the agent. Delivered at most once: a claim in the read store settles which instance sends it. */
export interface AgentCommand extends QueuedCommand {
  /** The id of the command that queued it, and so of its audit entry. */
  readonly id: string;
}

interface IssuedPsk {
  readonly fingerprint: string;
  /** JSON of {node_static_public, psk}, sealed with stream, node id and field `psk_verifier` as associated data. */
  readonly verifier: SealedSecret;
}

export interface NodePsk extends IssuedPsk {
  readonly issued_at: string;
}

/** What a delete takes along and an undo brings back. */
interface TakenWithNode {
  readonly override: MultiplexOverride | null;
  /** Without it a node that comes back could take a generation that its agent has seen before. */
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
  | LifecycleEvent<'Node', 'node_id', NodeDefinition, TakenWithNode>
  | { readonly type: 'NodePskIssued'; readonly data: OfNode & IssuedPsk }
  | { readonly type: 'NodeConfigRefreshed'; readonly data: OfNode }
  | {
      readonly type: 'NodeReportedAddressChanged';
      readonly data: OfNode & ReportedAddresses<FieldChange<string | null>>;
    }
  | { readonly type: 'NodeGenerationRaised'; readonly data: OfNode & { readonly offset: FieldChange<number> } }
  | { readonly type: 'NodeCommandQueued'; readonly data: OfNode & QueuedCommand };

type Lifecycle = LifecycleCommand<'Node', NodeDefinition>;

export type NodeCommand =
  | (Extract<Lifecycle, { readonly type: 'CreateNode' }> & { readonly psk: IssuedPsk | null })
  | Exclude<Lifecycle, { readonly type: 'CreateNode' }>
  | ({ readonly type: 'IssueNodePsk'; readonly id: string } & IssuedPsk)
  | { readonly type: 'RefreshNodeConfig'; readonly id: string }
  | ({ readonly type: 'ReportNodeAddress'; readonly id: string } & ReportedAddresses<string | null>)
  | {
      readonly type: 'RaiseNodeGeneration';
      readonly id: string;
      /** The version that the agent says it runs; the node's next generation will be above it. */
      readonly reported: number;
    }
  | ({ readonly type: 'QueueNodeCommand'; readonly id: string } & QueuedCommand);

export const nodeKey: ResourceKey<NodeState> = { type: 'node' };

/** Where other nodes dial this one: its address, else the public IPv4, then IPv6, that it reported. */
export function dialAddress(node: Pick<NodeState, 'address' | 'public_ipv4' | 'public_ipv6'>): string | null {
  return node.address ?? node.public_ipv4 ?? node.public_ipv6;
}

/** The commands that an agent may still be sent at a time (RFC 3339), oldest first. */
export function unexpired(commands: readonly AgentCommand[], at: string): readonly AgentCommand[] {
  return commands.filter((command) => command.expires_at > at);
}
