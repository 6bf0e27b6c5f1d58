/**
 * What the agent transport and REST see of delivery. Types only: the work is in the files beside.
 * Implements `docs/contract/agent-protocol.md#configuration`.
 */
import type { ChainState } from '../domain/chain/chain.js';
import type { NodeState } from '../domain/node/node.js';
import type { SettingsState } from '../domain/settings/settings.js';
import type { SealedSecret } from '../domain/resource/sealed.js';
import type { ApplyError } from '../domain/agents/facts.js';

export { offlineAfterSeconds } from '../domain/settings/settings.js';
export type { ApplyError } from '../domain/agents/facts.js';

/** One full snapshot, encoded once and shared by every stream that sends it. */
export interface SnapshotPush {
  readonly generation: number;
  /** 32 bytes. */
  readonly checksum: Uint8Array;
  /** Bytes of a `ServicePayload` with the `ConfigUpdate` in it, ready to be fragmented and encrypted. */
  readonly payload: Uint8Array;
}

/** The one-slot queue of a session: a newer offer replaces the one that was not sent yet. Never throws, never waits. */
export interface PushSlot {
  offer(push: SnapshotPush): void;
}

export type ConfigAnswer =
  | { readonly kind: 'snapshot'; readonly push: SnapshotPush }
  | { readonly kind: 'unchanged'; readonly generation: number }
  /** A raised generation too soon after the last: SessionClose OVERLOADED. */
  | { readonly kind: 'overloaded'; readonly retryAfterMs: number }
  /** Above 2^53-1 or more than 2^32 ahead: PROTOCOL_ERROR, FAILED_PRECONDITION. */
  | { readonly kind: 'absurd_version' }
  /** Catching up, stores out of reach, an older compiler: DRAINING. */
  | { readonly kind: 'draining'; readonly retryAfterMs: number };

export interface ApplyReport {
  readonly generation: bigint;
  readonly checksum: Uint8Array;
  readonly status: 'applied' | 'rejected';
  readonly errors: readonly ApplyError[];
  readonly durationMs: number;
}

/** A session's place at delivery, from its hello to its end. */
export interface NodeSession {
  /** Answers a ConfigRequest. Until the first one nothing is offered to the slot. */
  request(configVersion: bigint, checksum: Uint8Array): Promise<ConfigAnswer>;
  /** Takes an apply report. One that fits neither the newest nor the kept generation is counted and ignored. */
  report(outcome: ApplyReport): Promise<void>;
  /** Tells that a push was handed to the network as a whole, for the `pushed` state. */
  sent(push: SnapshotPush): void;
  close(): void;
}

export type DeliveryState =
  | { readonly kind: 'ready' }
  | { readonly kind: 'catching_up' }
  /** It was ready, and the log is out of reach since: sessions stay as they are, none is begun. */
  | { readonly kind: 'cut_off' }
  /** The log was written by a release with a higher compiler number. */
  | { readonly kind: 'older_compiler'; readonly logVersion: number; readonly ownVersion: number }
  /** The log was lowered to an earlier compiler number while this instance ran. */
  | { readonly kind: 'newer_compiler'; readonly logVersion: number; readonly ownVersion: number }
  /** An event type or shape that this release does not know. */
  | { readonly kind: 'unknown_event'; readonly eventType: string };

/** How a node stands to its newest generation (`docs/contract/rest.md`, Nodes and L4 chains). */
export interface ApplyState {
  readonly state: 'none' | 'pushed' | 'applied' | 'rejected';
  readonly generation: number | null;
  readonly at: string | null;
  readonly errors: readonly ApplyError[];
}

export interface ChainPlan {
  readonly nodes: readonly {
    readonly node_id: string;
    readonly added: readonly string[];
    readonly changed: readonly string[];
    readonly removed: readonly string[];
  }[];
  readonly collisions: readonly string[];
}

/** What an operator may see of a node's snapshot: secrets are `"***"`. */
export interface SnapshotJson {
  readonly generation: number;
  /** Lower-case hex. */
  readonly checksum: string;
  /** proto3 JSON with the proto's field names. */
  readonly snapshot: object;
}

export type { AgentCommand, AgentCommandName } from '../domain/node/node.js';

export interface Delivery {
  state(): DeliveryState;
  /** Calls back when the state changes; returns how to stop listening. */
  onStateChange(listener: (state: DeliveryState) => void): () => void;

  /** Committed state, in memory. */
  node(nodeId: string): NodeState | undefined;
  chain(chainId: string): ChainState | undefined;
  settings(): SettingsState;
  /** The sealed PSK verifier, or undefined for an unknown node or one without a PSK. */
  verifier(nodeId: string): SealedSecret | undefined;
  /** The newest generation of a node, or undefined for an unknown node. */
  generation(nodeId: string): number | undefined;
  /**
   * Calls back when a node's PSK was replaced or the node was deleted, before the command is answered; `replaced` is
   * the verifier that no longer counts (its data key is to be shredded), undefined when there was none.
   */
  onRevoked(listener: (nodeId: string, replaced: SealedSecret | undefined) => void): () => void;

  openNodeSession(nodeId: string, sessionId: string, slot: PushSlot): NodeSession;
  /** Newest generation pushed as a whole to a live session of this instance. */
  pushed(nodeId: string): { readonly generation: number; readonly at: number } | undefined;

  plan(chainId: string): ChainPlan | undefined;
  snapshotJson(nodeId: string): Promise<SnapshotJson | undefined>;
  /** Resolves true once the committed fold has passed the revision of `svc-fleet`, false after `timeoutMs`. */
  waitFor(revision: number, timeoutMs: number): Promise<boolean>;
  close(): Promise<void>;
}
