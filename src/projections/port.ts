/**
 * The read side for other parts: queries on the stored read models, and their progress. `fleet/fleet-queries.ts` has those
 * on the committed fleet. Types only. Implements `docs/contract/rest.md#envelope`, `docs/contract/rest.md#audit` and `docs/architecture.md#read-models`.
 */
import type { AnyState } from '../domain/fleet/resources.js';
import type { Deployment } from '../domain/fleet-file/applied.js';
import type { ChainDefinition } from '../domain/chain/chain.js';
import type { ListOf, ListQuery } from '../kernel/list.js';
import type { AuditChange } from '../domain/resource/audit-change.js';
import type { SettingsState } from '../domain/settings/settings.js';
import type { EntryAbout } from '../domain/revert/history.js';
import type { RecordedCommand, TokenMark } from '../kernel/event.js';

/** Times are RFC 3339. */
export interface StoredIncident {
  readonly id: string;
  readonly resource: { readonly type: string; readonly id: string; readonly name: string };
  /** The worst so far, and its reason. */
  readonly status: string;
  readonly reason: string | null;
  readonly began_at: string;
  /** Null while it lasts. */
  readonly ended_at: string | null;
}

export interface IncidentQuery extends NewestFirst {
  readonly resourceType?: string | undefined;
  readonly resourceId?: string | undefined;
  readonly isOpen?: boolean | undefined;
  /** Incidents that lasted at some time between these two; RFC 3339, UTC, with milliseconds. */
  readonly from?: string | undefined;
  readonly to?: string | undefined;
}

/** A deployment with its definition. */
export interface StoredDeployment extends Deployment {
  readonly definition: ChainDefinition;
}

/** A list that is newest first and has no other order: a page of it, or a step of a walk. */
export interface NewestFirst {
  readonly page: number;
  readonly pageSize: number;
  /** In a walk: the place of the item that was shown last. */
  readonly behind?: string | undefined;
}

export interface StepOf<T> {
  readonly items: readonly T[];
  readonly total: number;
  /** In a walk: the place of the last item; null at the end. */
  readonly next?: string | null;
}

export interface AuditQuery extends NewestFirst {
  /** Only entries of these types. */
  readonly resourceTypes?: readonly string[] | undefined;
  /** No entries of these types. */
  readonly notResourceTypes?: readonly string[] | undefined;
  /** A part of the name of its resource or actor, in any case. */
  readonly q?: string | undefined;
  readonly resourceId?: string | undefined;
  /** Id or user name. */
  readonly actor?: string | undefined;
  readonly action?: string | undefined;
  /** RFC 3339, inclusive. */
  readonly from?: string | undefined;
  readonly to?: string | undefined;
  /** Whether to include entries about users, sign-ins, webhooks and API tokens, which only admins see. */
  readonly includeAccounts: boolean;
  /** The user whose entries about API tokens are always included. */
  readonly ownTokensOf?: string | undefined;
}

/** The outcome of a change that a person has to confirm. Times are RFC 3339. */
export interface EntryConfirmation {
  readonly until: string;
  readonly confirmed_at: string | null;
  readonly confirmed_by: AuditEntry['actor'] | null;
  /** Why it could not be reverted in time. */
  readonly error: string | null;
}

/** An entry without what the fleet knows of its confirmation. */
export type StoredEntry = Omit<AuditEntry, 'confirm'>;

export interface AuditEntry {
  /** Null for an entry that nobody is asked to confirm. */
  readonly confirm: EntryConfirmation | null;
  readonly id: string;
  readonly at: string;
  readonly actor: {
    readonly type: 'user' | 'agent' | 'system';
    readonly id: string | null;
    readonly name: string | null;
  };
  readonly action: string;
  readonly resource: { readonly type: string; readonly id: string | null; readonly name: string | null };
  /** The API token that the actor used. */
  readonly token: TokenMark | null;
  readonly changes: readonly AuditChange[];
  /** How many changes there are; the first ones are shown. */
  readonly changes_total: number;
  readonly request_id: string;
  /** `stream@revision`. */
  readonly position: string;
  readonly revertible: boolean;
  readonly not_revertible_because: string | null;
  readonly reverts: string | null;
  readonly reverted_by: string | null;
}

/** A change with its resource. */
export type ChangeOfResource = AuditChange & { readonly resource: AuditEntry['resource'] };

/** The part of an entry that comes from the log alone and never changes. */
export type LoggedEntry = Omit<StoredEntry, 'revertible' | 'not_revertible_because' | 'reverted_by'>;

export interface NameLookup {
  readonly type: string;
  readonly id: string;
  /** The log position of the command that is shown with the name. */
  readonly position: number;
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
  /** Set when an unknown event stopped the projections; the instance is then read-only. */
  readonly unknownEvent: string | null;
  /** Set when the log cannot be read any further: a sentence without a full stop. The instance is then read-only. */
  readonly brokenLog: string | null;
  readonly lastError: string | null;
}

export interface ResourceListQuery<S> extends ListQuery {
  /** Whether something other than the name contains what `q` searches for. @param searched as by `nameKey` */
  readonly mentions?: ((state: S, searched: string) => boolean) | undefined;
  /** A further filter on the folded state. */
  readonly matches?: ((state: S) => boolean) | undefined;
}

/** A state whose sealed secrets are null. */
export interface ResourceQueries<S> {
  get(id: string): S | undefined;
  list(query: ResourceListQuery<S>): ListOf<S>;
}

/** Whether this instance may serve configuration, or why not. */
export type ServingState =
  | { readonly kind: 'ready' }
  | { readonly kind: 'catching_up' }
  /** It was ready before the log became unreachable: open sessions stay, new ones are refused. */
  | { readonly kind: 'cut_off' }
  /** The log is at a higher compiler version than this release has. */
  | { readonly kind: 'older_compiler'; readonly logVersion: number; readonly ownVersion: number }
  /** The log was lowered to an earlier compiler version while this instance ran. */
  | { readonly kind: 'newer_compiler'; readonly logVersion: number; readonly ownVersion: number }
  /** The log has an event type or schema version that this release does not know. */
  | { readonly kind: 'unknown_event'; readonly eventType: string }
  /** The log was tampered with or damaged; everything before that place is folded. */
  | { readonly kind: 'broken_log'; readonly reason: string };

/** All resources as they were at one revision of the fleet. */
export interface WholeFleet {
  readonly revision: number;
  readonly settings: SettingsState;
  /** Sealed secrets included. */
  states(type: string): readonly AnyState[];
  /** The id itself when nothing has it. */
  nameOf(type: string, id: string): string;
}

export interface Projections {
  readonly deployments: {
    ofChain(chainId: string): Promise<readonly StoredDeployment[]>;
  };
  readonly audit: {
    list(query: AuditQuery): Promise<StepOf<StoredEntry>>;
    get(id: string): Promise<StoredEntry | undefined>;
    /** All changes of an entry, each with its resource; undefined when there is no such entry. */
    changes(id: string, page: Pick<AuditQuery, 'page' | 'pageSize'>): Promise<ListOf<ChangeOfResource> | undefined>;
  };
  /** Newest first. */
  readonly incidents: { list(query: IncidentQuery): Promise<StepOf<StoredIncident>> };
  /**
   * The names that resources had, null for one that had none. The read models must have reached the positions.
   * @throws ServiceError `unavailable`
   */
  names(lookups: readonly NameLookup[]): Promise<(lookup: NameLookup) => string | null>;
  /** For reverts. */
  readonly auditTrail: {
    /** The command of an entry in its current shape; undefined if there is none or the log no longer has it. */
    command(id: string): Promise<RecordedCommand | undefined>;
    /** The entries about a resource after a log position, newest first. */
    about(type: string, id: string, behind: number): AsyncIterable<EntryAbout>;
  };
  status(): ProjectionStatus;
  onStatusChange(listener: (status: ProjectionStatus) => void): () => void;
  /** True once every read model has reached the log position; false after `timeoutMs`. */
  reached(position: number, timeoutMs: number): Promise<boolean>;
  /** The latest time of an event that was applied since the start, in milliseconds since the epoch. */
  newestAt(): number | undefined;
  close(): Promise<void>;
}
