/**
 * An event as the log holds it: its metadata and position. Each resource in `src/domain/` defines what its events mean.
 * Implements `docs/contract/domain.md#commands-and-events`.
 */
import type { JsonObject } from './json.js';
import { limits } from './limits.js';

/** The streams of one installation (`docs/contract/domain.md#one-consistency-boundary-the-fleet`). */
export const streams = {
  fleet: 'svc-fleet',
  accounts: 'svc-accounts',
  service: 'svc-service',
  /** The wrapped keyring; only the newest event is kept. */
  keyring: 'svc-keyring',
  signins: 'svc-signins',
  /** Webhook cursors. */
  webhooks: 'svc-webhooks',
  /** What changed by itself. */
  status: 'svc-status',
  agentsPrefix: 'svc-agents-',
} as const;

export const agentShards = 16;

/** The streams of agent facts, by shard. */
export const agentStreams: readonly string[] = Array.from(
  { length: agentShards },
  (_, shard) => `${streams.agentsPrefix}${String(shard).padStart(2, '0')}`,
);

/** The streams that have a log chain (`docs/log-chain.md`). */
export const chainedStreams: readonly string[] = [streams.fleet, streams.accounts, streams.service];

const factStreams: ReadonlySet<string> = new Set([streams.signins, streams.webhooks, streams.status, ...agentStreams]);

/** All streams of an installation, by exact name: any other stream is foreign, whatever its prefix. */
export const allStreams: readonly string[] = [...chainedStreams, streams.keyring, ...factStreams];

/** Whether a stream holds facts. Nothing else in the log refers to facts. */
export const holdsFacts = (stream: string): boolean => factStreams.has(stream);

/** Whether events of a stream are removed over time: it holds facts, or keeps only its newest event. */
export const expires = (stream: string): boolean => stream === streams.keyring || holdsFacts(stream);

/** The shard that holds the facts of a node's agent. A node never changes its shard. */
export function agentsStream(nodeId: string): string {
  let hash = 0;
  for (let index = 0; index < nodeId.length; index += 1) hash = (hash * 31 + nodeId.charCodeAt(index)) >>> 0;
  return agentStreams[hash % agentShards] ?? streams.agentsPrefix;
}

export type Actor =
  | { readonly type: 'user'; readonly id: string; readonly name: string }
  | { readonly type: 'agent'; readonly id: string; readonly name: string }
  /** Its id is null for a machine that joins by itself. */
  | { readonly type: 'system'; readonly id: string | null; readonly name: string };

export interface EventMetadata {
  /** The command of this event, the event's index in it, and the command's number of events. */
  readonly command: { readonly id: string; readonly index: number; readonly count: number };
  readonly actor: Actor;
  /** The correlation id: `x-request-id` of the REST call, or the id of the agent's session. */
  readonly request_id: string;
  /** RFC 3339, UTC, milliseconds. */
  readonly occurred_at: string;
  readonly schema_version: number;
  /** The API token, or the join token, that the actor used to give the command. */
  readonly token?: TokenMark;
  /** The audit entry (command id) that this command reverts. */
  readonly revert_of?: string;
  readonly idempotency?: IdempotencyMark;
  /**
   * In the last event of a `svc-fleet` command: the ids of the nodes whose configuration it changed or that it deleted,
   * or `all` when they are too many to name.
   */
  readonly touched?: readonly string[] | 'all';
  /** In the last event of each command of a chained stream. */
  readonly link?: CommandLink;
}

/** Links a command to the previous one of its stream (`src/domain/log-chain/links.ts`). */
export interface CommandLink {
  /** The first characters of the previous command's MAC, which tell a moved command from an altered one. */
  readonly after: string;
  /** HMAC-SHA256 over the previous command's full MAC and this command's events, base64url. */
  readonly mac: string;
}

/** An API token with the name it had at the time. */
export interface TokenMark {
  readonly id: string;
  readonly name: string;
}

/** Hashes only, so that neither key nor body can be recovered. `key_hash` covers caller, path and key. */
export interface IdempotencyMark {
  readonly key_hash: string;
  readonly body_hash: string;
}

/** The maximum size of one event's JSON in bytes, data and metadata together: a command may be a single event. */
export const eventBytesMax = limits.events.commandBytes;

/** An event that has no position in the log yet. */
export interface ProposedEvent {
  /** UUID. Appending the same id at the same revision again gives the same answer again. */
  readonly id: string;
  readonly type: string;
  readonly data: JsonObject;
  readonly metadata: EventMetadata;
}

/**
 * An event with its position. `revision` counts from 0 within its stream, without gaps; `position` grows strictly over
 * the whole log, but not by one. Positions stay below 2^53, which is a log of nine petabytes.
 */
export interface RecordedEvent extends ProposedEvent {
  readonly stream: string;
  readonly revision: number;
  readonly position: number;
}

/** An event in one of this service's streams that the service cannot have written. Its content is unknown. */
export interface ForeignEvent {
  readonly id: string;
  readonly type: string;
  readonly stream: string;
  readonly revision: number;
  readonly position: number;
  /** The evidence, as a clause: "it has no metadata". */
  readonly foreign: string;
}

/** An event as a store returns it. */
export type StoredEvent = RecordedEvent | ForeignEvent;

/**
 * A recorded event, typed as an event of its stream. Its type and shape must have passed `src/domain/log/upcast.ts`.
 * @param stream the stream's name, or the prefix of its shards' names
 */
export function eventOf<E extends object>(stream: string, event: RecordedEvent): E {
  if (!event.stream.startsWith(stream)) throw new Error(`${event.stream}@${event.revision} is no event of ${stream}`);
  return event as object as E;
}

export const isForeign = (event: StoredEvent): event is ForeignEvent => 'foreign' in event;

/** All events of one command, in order: folds, projections and pushes work on whole commands. */
export interface RecordedCommand {
  readonly stream: string;
  readonly events: readonly [RecordedEvent, ...RecordedEvent[]];
}

/** The last event of a command, which has the command's revision and position. */
export function lastEvent(command: RecordedCommand): RecordedEvent {
  return command.events[command.events.length - 1] ?? command.events[0];
}
