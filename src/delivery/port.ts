/** Delivery as the agent transport and REST see it. Implements `docs/contract/agent-protocol.md#configuration`. */
import type { ApplyError } from '../domain/agents/facts.js';
import type { NodeState } from '../domain/node/node.js';
import type { SealedSecret } from '../domain/secret/sealed.js';
import type { SettingsState } from '../domain/settings/settings.js';
import type { ServingState } from '../projections/port.js';

export { offlineAfterSeconds } from '../domain/settings/settings.js';
export type { ApplyError } from '../domain/agents/facts.js';
export type { ServingState } from '../projections/port.js';

/** A snapshot, encoded once and shared by all streams that send it. */
export interface SnapshotPush {
  readonly generation: number;
  /** 32 bytes. */
  readonly checksum: Uint8Array;
  /** A `ServicePayload` with the `ConfigUpdate`, ready to be fragmented and encrypted. */
  readonly payload: Uint8Array;
}

/** The one-slot queue of a session: a new offer replaces an unsent one. Never throws or waits. */
export interface PushSlot {
  offer(push: SnapshotPush): void;
}

export type ConfigAnswer =
  | { readonly kind: 'snapshot'; readonly push: SnapshotPush }
  | { readonly kind: 'unchanged'; readonly generation: number }
  /** The generation was raised too recently: SessionClose OVERLOADED. */
  | { readonly kind: 'raised_too_soon'; readonly reported: number; readonly retryAfterMs: number }
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

/** An agent session as delivery sees it, from its hello to its end. */
export interface NodeSession {
  /** Answers a ConfigRequest. Nothing is offered to the slot before the first one. */
  request(configVersion: bigint, checksum: Uint8Array): Promise<ConfigAnswer>;
  /** Resolves when the agent's next report may be processed, because it may have to wait for a fan-out; undefined: now. */
  reportTurn(): Promise<void> | undefined;
  /**
   * Handles an apply report. One that fits neither the newest nor the last-good snapshot is counted and ignored.
   * @param at when it arrived, monotonic milliseconds
   */
  report(report: ApplyReport, at: number): Promise<void>;
  /**
   * The agent has sent a heartbeat, after every report before it: what it applied is confirmed.
   * @returns false if it must be called for the next one too
   */
  beat(): boolean;
  /** A push was sent completely: the node's apply state becomes `pushed`. */
  sent(push: SnapshotPush): void;
  /** RELOAD_CONFIG was sent: the next request gets the newest snapshot even if it was rejected. @throws ServiceError `unavailable` */
  reload(): Promise<void>;
  close(): void;
}

/** A node's snapshot for operators: every secret is `"***"`. */
export interface SnapshotJson {
  readonly generation: number;
  /** Lower-case hex. */
  readonly checksum: string;
  /** proto3 JSON with the proto's field names. */
  readonly snapshot: object;
}

export type { AgentCommandName } from '../domain/node/node.js';

export interface AcceptedPsk {
  /** Empty for a join token. */
  readonly fingerprint: string;
  readonly verifier: SealedSecret;
  /** The identity key that it carries; undefined for the first one. */
  readonly service_public?: string | undefined;
  /** It becomes the node's PSK once a session is proven under it. */
  readonly isCandidate: boolean;
}

export interface Delivery {
  state(): ServingState;
  /** @returns how to stop listening */
  onStateChange(listener: (state: ServingState) => void): () => void;

  node(nodeId: string): NodeState | undefined;
  settings(): SettingsState;
  /** The PSKs that authenticate a node or a join token now; none for an unknown one. At most `pskTries()`. */
  psks(nodeId: string): readonly AcceptedPsk[];
  /** How many PSKs an unauthenticated handshake is tried with, the same for every id: more while there is any candidate. */
  pskTries(): number;
  /** True once the committed fleet has everything that the log had at the call; false after a while, or without the store. */
  atHead(): Promise<boolean>;
  /** The newest generation of a node, or undefined for an unknown node. */
  generation(nodeId: string): number | undefined;
  /** Calls back when a node's PSK is replaced or the node, or a join token, is deleted, before the command is answered. */
  onRevoked(listener: (nodeId: string) => void): () => void;

  /**
   * Calls back when PSKs end without a revocation: those of a node whose candidate was proven; undefined: those of a retired
   * identity. `psks` has only the others.
   */
  onPsksEnded(listener: (nodeId: string | undefined) => void): () => void;

  /** @param confirm sends ConfigConfirmed; undefined for an agent without the feature `confirm` */
  openNodeSession(
    nodeId: string,
    sessionId: string,
    slot: PushSlot,
    confirm?: (generation: number) => void,
  ): NodeSession;
  /** The newest generation that was sent completely to an open session of this instance. */
  pushed(nodeId: string): { readonly generation: number; readonly at: number } | undefined;
  /** For how many milliseconds the agent has taken nothing that is offered here; 0 while nothing waits. */
  unsentMs(nodeId: string): number;

  /**
   * The newest snapshot, or the one at the newest generation not above `generation`; undefined for an unknown node, and
   * before its first generation. @throws ServiceError `unavailable`, `internal`, `not_found`
   */
  snapshotJson(nodeId: string, generation?: number): Promise<SnapshotJson | undefined>;
  close(): Promise<void>;
}
