/**
 * The event as it lies in the log: who, why, when, and its place. Not what events mean: each resource of
 * `src/domain/` owns its own. Implements `docs/contract/domain.md#commands-and-events` (metadata).
 */
import type { JsonObject } from './json.js';

/** The streams of one installation (`docs/contract/domain.md`, table of streams). */
export const streams = {
  fleet: 'svc-fleet',
  accounts: 'svc-accounts',
  service: 'svc-service',
  signins: 'svc-signins',
  agentsPrefix: 'svc-agents-',
  prefix: 'svc-',
} as const;

export const agentShards = 16;

/** The shard stream that holds what a node's agent did. The same node is always in the same shard. */
export function agentsStream(nodeId: string): string {
  let hash = 0;
  for (let index = 0; index < nodeId.length; index += 1) hash = (hash * 31 + nodeId.charCodeAt(index)) >>> 0;
  return `${streams.agentsPrefix}${String(hash % agentShards).padStart(2, '0')}`;
}

export type Actor =
  | { readonly type: 'user'; readonly id: string; readonly name: string }
  | { readonly type: 'agent'; readonly id: string; readonly name: string }
  | { readonly type: 'system'; readonly id: string; readonly name: string };

export interface EventMetadata {
  /** Which command this event belongs to, its place in it, and how many events the command has. */
  readonly command: { readonly id: string; readonly index: number; readonly count: number };
  readonly actor: Actor;
  /** The correlation id: `x-request-id` of the REST call, or the session's of an agent. */
  readonly request_id: string;
  /** RFC 3339, UTC, milliseconds. */
  readonly occurred_at: string;
  readonly schema_version: number;
  /** The audit entry (command id) that this command reverts. */
  readonly revert_of?: string;
  readonly idempotency?: IdempotencyMark;
}

/** Hashes only: neither the key nor the body can be read back. `key_hash` covers caller, path and key. */
export interface IdempotencyMark {
  readonly key_hash: string;
  readonly body_hash: string;
}

/** JSON bytes of one event, data and metadata together. */
export const eventBytesMax = 256 * 1024;

/** An event before it has a place in the log. */
export interface ProposedEvent {
  /** UUID; appending the same id at the same revision again is answered as the first time. */
  readonly id: string;
  readonly type: string;
  readonly data: JsonObject;
  readonly metadata: EventMetadata;
}

/**
 * An event with its place. `revision` counts from 0 within its stream without gaps; `position` grows strictly over
 * the whole log (not by one). Positions stay below 2^53: a log of nine petabytes.
 */
export interface RecordedEvent extends ProposedEvent {
  readonly stream: string;
  readonly revision: number;
  readonly position: number;
}

/** All events of one command, in order: the unit that folds, projections and pushes work on. */
export interface RecordedCommand {
  readonly stream: string;
  readonly events: readonly [RecordedEvent, ...RecordedEvent[]];
}

/** The last event of a command: its revision and position are the command's. */
export function lastEvent(command: RecordedCommand): RecordedEvent {
  return command.events[command.events.length - 1] ?? command.events[0];
}
