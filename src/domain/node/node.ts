/**
 * A gateway node as operators describe it: state, events, commands. The facts of its agent are in `agents/`. Implements
 * `docs/contract/rest.md#nodes` and `docs/contract/domain.md#generation`.
 */
import { isDialableIp } from '../../kernel/addresses.js';
import type { Actor } from '../../kernel/event.js';
import { limits } from '../../kernel/limits.js';
import { withChanges, type Changes, type FieldChange } from '../resource/change.js';
import type { PolicyOfNode } from '../listener-policy/policy.js';
import type { ResourceKey } from '../resource/fleet-view.js';
import { fieldsOf, type AnyEvent, type LifecycleCommand, type LifecycleEvent } from '../resource/lifecycle.js';
import { nextVersion, restoredVersion, type ResourceMeta } from '../resource/meta.js';
import type { IfMatch } from '../resource/refusal.js';
import type { SealedSecret } from '../secret/sealed.js';
import type { MultiplexOverride } from '../settings/settings.js';
import { unreachable } from '../../kernel/errors.js';
import type { EventContext } from '../resource/declaration.js';
import { evolveLabels, isLabelField, sortedLabels, type Labels } from './labels.js';

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
  /** A second PSK, until the agent proves a session under it; absent without one. It may have expired. */
  readonly psk_candidate?: PskCandidate | undefined;
  /** From the agent's last hello. */
  readonly public_ipv4: string | null;
  readonly public_ipv6: string | null;
  /** Part of the node's generation; above 0 only after a restore of an older log. */
  readonly generation_offset: number;
  /** The last commands to the agent, oldest first, including delivered and expired ones. */
  readonly commands: readonly AgentCommand[];
}

export const agentCommandNames = ['RELOAD_CONFIG', 'RESTART_PINGORA', 'RUN_DIAGNOSTICS'] as const;
export type AgentCommandName = (typeof agentCommandNames)[number];

export interface QueuedCommand {
  readonly command: AgentCommandName;
  /** RFC 3339. */
  readonly queued_at: string;
  readonly expires_at: string;
}

/** A command to the agent. It is sent at most once: a claim in the read store decides which instance sends it. */
export interface AgentCommand extends QueuedCommand {
  /** The id of the command that queued it, or of the event if it queued several. */
  readonly id: string;
  readonly actor: Actor;
}

export interface IssuedPsk {
  readonly fingerprint: string;
  /** JSON of {node_static_public, psk}, sealed with stream, node id and field `psk_verifier` as associated data. */
  readonly verifier: SealedSecret;
  /** The identity key of the service that it carries, X25519, base64url; absent: the installation's first. */
  readonly service_public?: string | undefined;
}

interface NodePsk extends IssuedPsk {
  readonly issued_at: string;
  /** It was a candidate that an agent has proven. */
  readonly proven?: true;
}

export interface PskCandidate extends IssuedPsk {
  readonly issued_at: string;
  /** RFC 3339. */
  readonly expires_at: string;
}

/** Everything besides the definition that a delete removes and a restore brings back. */
export interface DeletedWithNode {
  readonly override: MultiplexOverride | null;
  readonly policies: readonly PolicyOfNode[];
  /** Without it, a restored node could get a generation that its agent has seen. */
  readonly generation_offset: number;
}

interface ReportedAddresses<T> {
  readonly public_ipv4: T;
  readonly public_ipv6: T;
}

interface OfNode {
  readonly node_id: string;
}

interface OfPsk {
  readonly fingerprint: string;
}

/** A part of a command about several nodes, whose audit entry is about all of them (`bulk.ts`). */
interface OfBulk {
  readonly bulk?: true | undefined;
}

type NodeLifecycle = LifecycleEvent<'Node', 'node_id', NodeDefinition, DeletedWithNode>;

export type NodeEvent =
  | Exclude<NodeLifecycle, { readonly type: 'NodeUpdated' }>
  | { readonly type: 'NodeUpdated'; readonly data: OfNode & OfBulk & { readonly changes: Changes } }
  /** Drops a candidate too. */
  | { readonly type: 'NodePskIssued'; readonly data: OfNode & IssuedPsk }
  /** Replaces an earlier candidate. */
  | { readonly type: 'NodePskCandidateIssued'; readonly data: OfNode & Omit<PskCandidate, 'issued_at'> }
  | { readonly type: 'NodePskCandidateDropped'; readonly data: OfNode & OfPsk }
  /** The candidate is the node's PSK from now on. */
  | { readonly type: 'NodePskCandidateProven'; readonly data: OfNode & OfPsk & { readonly former: string | null } }
  | { readonly type: 'NodeConfigRefreshed'; readonly data: OfNode }
  | {
      readonly type: 'NodeReportedAddressChanged';
      readonly data: OfNode & ReportedAddresses<FieldChange<string | null>>;
    }
  | { readonly type: 'NodeGenerationRaised'; readonly data: OfNode & { readonly offset: FieldChange<number> } }
  | { readonly type: 'NodeCommandQueued'; readonly data: OfNode & OfBulk & QueuedCommand };

type Lifecycle = LifecycleCommand<'Node', NodeDefinition, never, DeletedWithNode>;

export type NodeCommand =
  | (Extract<Lifecycle, { readonly type: 'CreateNode' }> & { readonly psk: IssuedPsk | null })
  | Exclude<Lifecycle, { readonly type: 'CreateNode' }>
  | ({ readonly type: 'IssueNodePsk'; readonly id: string } & IssuedPsk)
  | ({ readonly type: 'IssueNodePskCandidate'; readonly id: string } & Omit<PskCandidate, 'issued_at'>)
  /** @param now milliseconds since the epoch */
  | { readonly type: 'DropNodePskCandidate'; readonly id: string; readonly ifMatch: IfMatch; readonly now: number }
  /** The agent has proven a session under a candidate. */
  | ({ readonly type: 'ProveNodePskCandidate'; readonly id: string; readonly now: number } & OfPsk)
  | { readonly type: 'RefreshNodeConfig'; readonly id: string }
  | ({ readonly type: 'ReportNodeAddress'; readonly id: string } & ReportedAddresses<string | null>)
  | {
      readonly type: 'RaiseNodeGeneration';
      readonly id: string;
      /** The generation that the agent runs. The node's next one will be higher. */
      readonly reported: number;
    }
  | ({ readonly type: 'QueueNodeCommand'; readonly id: string } & QueuedCommand)
  /** Reverts the part about one node of a command that labelled several. */
  | { readonly type: 'LabelNode'; readonly id: string; readonly labels: Labels };

/** A command about several nodes, each named once. */
export type BulkCommand =
  | {
      readonly type: 'LabelNodes';
      readonly ids: readonly string[];
      readonly set: Labels;
      /** Keys of labels, none of them in `set`. */
      readonly remove: readonly string[];
    }
  | ({ readonly type: 'QueueNodeCommands'; readonly ids: readonly string[] } & QueuedCommand);

export const nodeKey: ResourceKey<NodeState> = { type: 'node' };

/** Whether an event is part of a command about several nodes. */
export const isOfBulk = ({ data }: AnyEvent): boolean => Reflect.get(data, 'bulk') === true;

/**
 * The address that other nodes dial: the configured one, else the public IPv4 or IPv6 that the agent reported. Reported
 * loopback and link-local addresses are ignored, because a dialler would reach itself.
 */
export function dialAddress(node: Pick<NodeState, 'address' | 'public_ipv4' | 'public_ipv6'>): string | null {
  if (node.address !== null) return node.address;
  return [node.public_ipv4, node.public_ipv6].find((reported) => reported !== null && isDialableIp(reported)) ?? null;
}

/** The commands that have not expired, oldest first. @param at the time, RFC 3339 */
export function unexpired(commands: readonly AgentCommand[], at: string): readonly AgentCommand[] {
  return commands.filter((command) => command.expires_at > at);
}

function withoutCandidate({ psk_candidate: _, ...state }: NodeState): NodeState {
  return state;
}

/** A new or restored node waits for a new agent and its PSK. */
const neverConnected = { psk: null, public_ipv4: null, public_ipv6: null, commands: [] } as const;

/**
 * The node after one event; undefined once deleted. Ignores events for a node that does not exist, and the creation or
 * restore of one that does. @param context gives a queued command its id (see `EventContext.eventId`) and its actor
 */
export function evolveNode(
  state: NodeState | undefined,
  event: NodeEvent,
  context: EventContext,
): NodeState | undefined {
  const { at, commandId, eventId = commandId, actor } = context;
  if (event.type === 'NodeCreated') {
    if (state !== undefined) return state;
    const { data } = event;
    // One literal, because each creation is folded three times, and object rest takes fifty times as long.
    return {
      name: data.name,
      description: data.description,
      address: data.address,
      labels: sortedLabels(data.labels),
      id: data.node_id,
      version: 1,
      created_at: at,
      updated_at: at,
      psk: null,
      public_ipv4: null,
      public_ipv6: null,
      commands: [],
      generation_offset: 0,
      ...(data.managed_by === undefined ? undefined : { managed_by: data.managed_by }),
    };
  }
  if (event.type === 'NodeRestored') {
    if (state !== undefined) return state;
    // `fleet/apply.ts` restores the policies and the override.
    const { node_id, former, override: _, policies: __, ...fields } = event.data;
    return { ...fields, ...restoredVersion(node_id, former, at), ...neverConnected };
  }
  if (state === undefined) return undefined;
  switch (event.type) {
    case 'NodeUpdated': {
      const { changes } = event.data;
      const fields = Object.keys(changes);
      // The fast path, because few updates change labels.
      if (!fields.some(isLabelField)) return nextVersion(withChanges(state, changes), at);
      const plain = Object.fromEntries(Object.entries(changes).filter(([field]) => !isLabelField(field)));
      return nextVersion({ ...withChanges(state, plain), labels: evolveLabels(state.labels, changes) }, at);
    }
    case 'NodeDeleted':
      return undefined;
    case 'NodePskIssued': {
      const { node_id: _, ...issued } = event.data;
      return nextVersion({ ...withoutCandidate(state), psk: { ...issued, issued_at: at } }, at);
    }
    case 'NodePskCandidateIssued': {
      const { node_id: _, ...issued } = event.data;
      return nextVersion({ ...state, psk_candidate: { ...issued, issued_at: at } }, at);
    }
    case 'NodePskCandidateDropped':
      return nextVersion(withoutCandidate(state), at);
    case 'NodePskCandidateProven': {
      if (state.psk_candidate === undefined) return nextVersion(state, at);
      const { expires_at: _, ...proven } = state.psk_candidate;
      return nextVersion({ ...withoutCandidate(state), psk: { ...proven, issued_at: at, proven: true as const } }, at);
    }
    case 'NodeConfigRefreshed':
      return nextVersion(state, at);
    case 'NodeReportedAddressChanged': {
      const { public_ipv4, public_ipv6 } = event.data;
      return nextVersion({ ...state, public_ipv4: public_ipv4.to, public_ipv6: public_ipv6.to }, at);
    }
    case 'NodeGenerationRaised':
      return nextVersion({ ...state, generation_offset: event.data.offset.to }, at);
    case 'NodeCommandQueued': {
      const { command, queued_at, expires_at } = event.data;
      const commands = [...state.commands, { id: eventId, command, queued_at, expires_at, actor }];
      return nextVersion({ ...state, commands: commands.slice(-limits.agent.queuedCommands) }, at);
    }
    default:
      return unreachable(event);
  }
}
