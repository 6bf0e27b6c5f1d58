/**
 * What the agent transport and REST see of delivery. Types only.
 * Implements `docs/contract/agent-protocol.md#configuration`.
 */
import type { ChainState } from '../domain/chain/chain.js';
import type { NodeState } from '../domain/node/node.js';
import type { IntendedLink } from '../domain/port-table/intended-links.js';
import type { PortRow } from '../domain/port-table/port-rows.js';
import type { SettingsState } from '../domain/settings/settings.js';
import type { UpstreamState } from '../domain/upstream/upstream.js';
import type { SealedSecret } from '../domain/secret/sealed.js';
import type { ApplyError } from '../domain/agents/facts.js';
import type { CredentialState } from '../domain/credential/credential.js';
import type { ResourceCounts } from '../domain/fleet/counts.js';
import type { Referrer } from '../domain/fleet/referrers.js';
import type { NodeName } from './node-names.js';

export { offlineAfterSeconds } from '../domain/settings/settings.js';
export type { ApplyError } from '../domain/agents/facts.js';
export type { Referrer } from '../domain/fleet/referrers.js';

/** One whole snapshot, encoded once and shared by every stream that sends it. */
export interface SnapshotPush {
  readonly generation: number;
  /** 32 bytes. */
  readonly checksum: Uint8Array;
  /** Bytes of a `ServicePayload` that holds the `ConfigUpdate`, ready to be fragmented and encrypted. */
  readonly payload: Uint8Array;
}

/** The one-slot queue of a session: an offer replaces the one that has not been sent. Never throws, never waits. */
export interface PushSlot {
  offer(push: SnapshotPush): void;
}

export type ConfigAnswer =
  | { readonly kind: 'snapshot'; readonly push: SnapshotPush }
  | { readonly kind: 'unchanged'; readonly generation: number }
  /** A generation raise too soon after the last one: SessionClose OVERLOADED. */
  | { readonly kind: 'overloaded'; readonly retryAfterMs: number }
  /** Above 2^53-1 or more than 2^32 ahead: PROTOCOL_ERROR, FAILED_PRECONDITION. */
  | { readonly kind: 'absurd_version' }
  /** Catching up, stores out of reach, or another compiler version: DRAINING. */
  | { readonly kind: 'draining'; readonly retryAfterMs: number };

export interface ApplyReport {
  readonly generation: bigint;
  readonly checksum: Uint8Array;
  readonly status: 'applied' | 'rejected';
  readonly errors: readonly ApplyError[];
  readonly durationMs: number;
}

/** One agent session as delivery sees it, from its hello to its end. */
export interface NodeSession {
  /** Answers a ConfigRequest. Nothing is offered to the slot before the first one. */
  request(configVersion: bigint, checksum: Uint8Array): Promise<ConfigAnswer>;
  /**
   * What the agent says next will be about a snapshot that is being brought to others as well: resolves when it may be worked
   * on. Undefined when that is now.
   */
  reportTurn(): Promise<void> | undefined;
  /**
   * Takes an apply report. One that fits neither the newest nor the last-good snapshot is counted and ignored.
   * @param at when it came, monotonic milliseconds
   */
  report(report: ApplyReport, at: number): Promise<void>;
  /** A push was handed to the network as a whole, which makes the node's apply state `pushed`. */
  sent(push: SnapshotPush): void;
  /**
   * RELOAD_CONFIG was sent: the next request gets the newest snapshot although it was rejected.
   * @throws ServiceError `unavailable`
   */
  reload(): Promise<void>;
  close(): void;
}

export type DeliveryState =
  | { readonly kind: 'ready' }
  | { readonly kind: 'catching_up' }
  /** It was ready, and the log has been out of reach since: open sessions stay, new ones are refused. */
  | { readonly kind: 'cut_off' }
  /** The log is at a higher compiler version than this release has. */
  | { readonly kind: 'older_compiler'; readonly logVersion: number; readonly ownVersion: number }
  /** The log was lowered to an earlier compiler version while this instance ran. */
  | { readonly kind: 'newer_compiler'; readonly logVersion: number; readonly ownVersion: number }
  /** The log has an event type or schema version that this release does not know. */
  | { readonly kind: 'unknown_event'; readonly eventType: string }
  /** The log was tampered with, or damaged: what is folded is all before that place. */
  | { readonly kind: 'broken_log'; readonly reason: string };

export interface ChainPlan {
  readonly nodes: readonly {
    readonly node_id: string;
    readonly added: readonly string[];
    readonly changed: readonly string[];
    readonly removed: readonly string[];
  }[];
  readonly collisions: readonly string[];
}

/** A node's snapshot as operators see it: every secret is `"***"`. */
export interface SnapshotJson {
  readonly generation: number;
  /** Lower-case hex. */
  readonly checksum: string;
  /** proto3 JSON with the proto's field names. */
  readonly snapshot: object;
}

export type { AgentCommandName } from '../domain/node/node.js';

export interface Delivery {
  state(): DeliveryState;
  /** Calls back when the state changes. @returns a function that stops listening */
  onStateChange(listener: (state: DeliveryState) => void): () => void;

  /** From the committed fold, like everything down to `referrers`. */
  node(nodeId: string): NodeState | undefined;
  chain(chainId: string): ChainState | undefined;
  chains(): Iterable<ChainState>;
  upstream(upstreamId: string): UpstreamState | undefined;
  settings(): SettingsState;
  credentials(): Iterable<CredentialState>;
  /** The resources that refer to one, in their current or deployed definition, by type, name and id. */
  referrers(type: string, id: string): readonly Referrer[];
  /** Ids of all nodes; from the committed fold. */
  nodeIds(): Iterable<string>;
  /** The listeners that a node has with its newest snapshot, as `listenerKey` names them; none for an unknown node. */
  liveListeners(nodeId: string): ReadonlySet<string>;
  /** How many there are of each resource, not older than the fold at the call. Counted in pieces. */
  resourceCounts(): Promise<ResourceCounts>;
  /** Revision of `svc-fleet` that the committed fold has reached; -1 for an empty log. */
  revision(): number;
  /** Ids and names of all nodes, by name, then id; from the committed fold, like `portRows` and `links`. */
  nodeNames(): readonly NodeName[];
  /** The listeners that are intended on a node, with policies; none for an unknown node. */
  portRows(nodeId: string): readonly PortRow[];
  /** The links from a node to others that are intended; none for an unknown node. */
  links(nodeId: string): readonly IntendedLink[];
  /** The sealed PSK verifier, or undefined for an unknown node or one without a PSK. */
  verifier(nodeId: string): SealedSecret | undefined;
  /** The newest generation of a node, or undefined for an unknown node. */
  generation(nodeId: string): number | undefined;
  /**
   * Calls back when a node's PSK was replaced or the node was deleted, before the command is answered. `replaced` is
   * the verifier that no longer counts and whose data key is to be shredded; undefined when there was none.
   */
  onRevoked(listener: (nodeId: string, replaced: SealedSecret | undefined) => void): () => void;

  openNodeSession(nodeId: string, sessionId: string, slot: PushSlot): NodeSession;
  /** The newest generation that was sent as a whole to an open session of this instance. */
  pushed(nodeId: string): { readonly generation: number; readonly at: number } | undefined;
  /** For how many milliseconds the node's agent has not taken what it is offered here; 0 while nothing waits for it. */
  unsentMs(nodeId: string): number;

  plan(chainId: string): ChainPlan | undefined;
  /**
   * The newest snapshot, or the one at the newest generation not above `generation`; undefined for an unknown node, and
   * before its first generation. @throws ServiceError `unavailable`, `internal`, `not_found`
   */
  snapshotJson(nodeId: string, generation?: number): Promise<SnapshotJson | undefined>;
  /** Resolves true once the committed fold has passed the revision of `svc-fleet`, false after `timeoutMs`. */
  waitFor(revision: number, timeoutMs: number): Promise<boolean>;
  close(): Promise<void>;
}
