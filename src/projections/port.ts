/**
 * What other parts see of the read side: the queries of each read model, and how far the projections are. Types only.
 * Implements `docs/contract/rest.md#envelope`, `docs/contract/rest.md#audit` and `docs/architecture.md#read-models`.
 */
import type { AgentEvent } from '../domain/agents/facts.js';
import type { NodeAgentFacts } from '../domain/agents/node-agent-facts.js';
import type { PlainType, StateOf } from '../domain/fleet/resources.js';
import type { NodeState } from '../domain/node/node.js';
import type { EntryAbout } from '../domain/revert/history.js';
import type { RecordedCommand } from '../kernel/event.js';
import type { Json } from '../kernel/json.js';

export interface ListQuery {
  /** 1-based. */
  readonly page: number;
  readonly pageSize: number;
  readonly sort: 'name' | 'created_at' | 'updated_at' | '-name' | '-created_at' | '-updated_at';
  /** Case-insensitive substring of the name. */
  readonly q?: string | undefined;
}

export interface ListOf<T> {
  readonly items: readonly T[];
  readonly total: number;
}

export interface NodeRecord {
  readonly node: NodeState;
  readonly agent: NodeAgentFacts;
}

export interface NodeListQuery extends ListQuery {
  readonly label?: { readonly key: string; readonly value: string } | undefined;
  /** The ids that a status filter leaves; for `offline` and `pending` as all but those online. */
  readonly ids?:
    | { readonly in: readonly string[] }
    | { readonly notIn: ReadonlySet<string>; readonly connectedOnce: boolean }
    | undefined;
}

export interface Deployment {
  readonly id: string;
  readonly chain_id: string;
  readonly chain_version: number;
  readonly at: string;
  readonly nodes: readonly { readonly node_id: string; readonly generation: number }[];
}

export interface AuditQuery {
  readonly page: number;
  readonly pageSize: number;
  readonly resourceType?: string | undefined;
  readonly resourceId?: string | undefined;
  /** Id or user name. */
  readonly actor?: string | undefined;
  readonly action?: string | undefined;
  /** RFC 3339, inclusive. */
  readonly from?: string | undefined;
  readonly to?: string | undefined;
  /** Whether to include entries about users and sign-ins, which only admins are shown. */
  readonly includeAccounts: boolean;
}

export interface AuditEntry {
  readonly id: string;
  readonly at: string;
  readonly actor: {
    readonly type: 'user' | 'agent' | 'system';
    readonly id: string | null;
    readonly name: string | null;
  };
  readonly action: string;
  readonly resource: { readonly type: string; readonly id: string | null; readonly name: string | null };
  readonly changes: readonly { readonly path: string; readonly before: Json; readonly after: Json }[];
  readonly request_id: string;
  /** `stream@revision`. */
  readonly position: string;
  readonly revertible: boolean;
  readonly not_revertible_because: string | null;
  readonly reverts: string | null;
  readonly reverted_by: string | null;
}

/** An entity that an event could not be applied to; it is left out of its read model. */
export interface ParkedEntity {
  readonly projection: string;
  readonly id: string;
  readonly position: number;
  readonly error: string;
}

export interface ProjectionStatus {
  readonly caughtUp: boolean;
  /** The log position of the last command that every read model holds. */
  readonly position: number;
  readonly parked: readonly ParkedEntity[];
  /** Set when an event of unknown type or shape stopped the projections; the instance is then read-only. */
  readonly unknownEvent: string | null;
  readonly lastError: string | null;
}

export interface ResourceListQuery<S> extends ListQuery {
  /** Values of fields that the declaration lists as filters. */
  readonly where?: { readonly [F in keyof S]?: string | undefined };
}

/** Sealed secrets of a state are null. */
export interface ResourceQueries<S> {
  get(id: string): Promise<S | undefined>;
  list(query: ResourceListQuery<S>): Promise<ListOf<S>>;
}

export interface Projections {
  readonly nodes: {
    get(id: string): Promise<NodeRecord | undefined>;
    getMany(ids: readonly string[]): Promise<readonly NodeRecord[]>;
    list(query: NodeListQuery): Promise<ListOf<NodeRecord>>;
  };
  /** Resources whose answers show the folded state alone. */
  readonly resources: { readonly [T in PlainType]: ResourceQueries<StateOf<T>> };
  readonly deployments: {
    get(id: string): Promise<Deployment | undefined>;
    ofChain(chainId: string): Promise<readonly Deployment[]>;
  };
  readonly audit: {
    list(query: AuditQuery): Promise<ListOf<AuditEntry>>;
    get(id: string): Promise<AuditEntry | undefined>;
  };
  /** For reverts. */
  readonly auditTrail: {
    /** The command of an entry in its current shape; undefined when there is none, or the log no longer holds it. */
    command(id: string): Promise<RecordedCommand | undefined>;
    /** The entries about a resource behind a log position, newest first. */
    about(type: string, id: string, behind: number): AsyncIterable<EntryAbout>;
  };
  status(): ProjectionStatus;
  onStatusChange(listener: (status: ProjectionStatus) => void): () => void;
  /** True once every read model holds the event's command; false after `timeoutMs`. */
  applied(stream: string, revision: number, timeoutMs: number): Promise<boolean>;
  /** True once every read model has reached the log position; false after `timeoutMs`. */
  reached(position: number, timeoutMs: number): Promise<boolean>;
  /** The last revision of a stream that was applied since the start; undefined when none was. */
  revision(stream: string): number | undefined;
  /**
   * Calls back with each applied agent fact and when it happened, RFC 3339. A deploy with `?wait=applied` waits for them.
   * @returns how to stop
   */
  onAgentFact(listener: (fact: AgentEvent, at: string) => void): () => void;
  close(): Promise<void>;
}
