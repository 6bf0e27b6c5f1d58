/**
 * The read side for other parts: queries on the committed fleet and on the stored read models, and their progress. Types only.
 * Implements `docs/contract/rest.md#envelope`, `docs/contract/rest.md#audit` and `docs/architecture.md#read-models`.
 */
import type { AnyState, PlainType, StateOf } from '../domain/fleet/resources.js';
import type { ChainDefinition, ChainState } from '../domain/chain/chain.js';
import type { DeployPlan } from '../domain/compile/plan.js';
import type { CredentialState } from '../domain/credential/credential.js';
import type { ResourceCounts } from '../domain/fleet/counts.js';
import type { DriftedResource, FleetSet } from '../domain/fleet-file/drift.js';
import type { DriftBase } from '../domain/fleet-set/declaration.js';
import type { Referrer } from '../domain/fleet/referrers.js';
import type { NodeState } from '../domain/node/node.js';
import type { IntendedLink } from '../domain/port-table/intended-links.js';
import type { PortRow } from '../domain/port-table/port-table.js';
import type { ListOf, ListQuery } from '../kernel/list.js';
import type { AuditChange } from '../domain/resource/audit-change.js';
import type { RolloutState } from '../domain/rollout/rollout.js';
import type { SettingsState } from '../domain/settings/settings.js';
import type { Feature, Needs } from '../domain/snapshot/features.js';
import type { UpstreamState } from '../domain/upstream/upstream.js';
import type { EntryAbout } from '../domain/revert/history.js';
import type { RecordedCommand, RecordedEvent, TokenMark } from '../kernel/event.js';

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
  /** Those that lasted at some time between both, RFC 3339, UTC, with milliseconds. */
  readonly from?: string | undefined;
  readonly to?: string | undefined;
}

export interface Deployment {
  readonly id: string;
  readonly chain_id: string;
  readonly chain_version: number;
  readonly at: string;
  readonly nodes: readonly { readonly node_id: string; readonly generation: number }[];
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
  /** Of any of these types. */
  readonly resourceTypes?: readonly string[] | undefined;
  /** Of none of these. */
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
  /** null for one that nobody is asked to confirm. */
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
  /** Whether something else than the name holds what `q` searches. @param searched as by `nameKey` */
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

export interface NodeName {
  readonly id: string;
  readonly name: string;
}

/** Queries on the committed fleet, which is in memory. */
export interface FleetQueries {
  node(nodeId: string): NodeState | undefined;
  chain(chainId: string): ChainState | undefined;
  chains(): Iterable<ChainState>;
  upstream(upstreamId: string): UpstreamState | undefined;
  upstreams(): Iterable<UpstreamState>;
  /** The chains that name an upstream in either definition, unordered. */
  chainsWith(upstreamId: string): readonly ChainState[];
  settings(): SettingsState;
  rollouts(): Iterable<RolloutState>;
  whole(): WholeFleet;
  nameOf(type: string, id: string): string | undefined;
  credentials(): Iterable<CredentialState>;
  readonly nodes: ResourceQueries<NodeState>;
  /** Resources whose answers show only the folded state. */
  readonly resources: { readonly [T in PlainType]: ResourceQueries<StateOf<T>> };
  /** The resources that refer to one, in their current or deployed definition, by type, name and id. */
  referrers(type: string, id: string): readonly Referrer[];
  /** The first referrers, and their total. */
  firstReferrers(
    type: string,
    id: string,
    count: number,
  ): { readonly items: readonly Referrer[]; readonly total: number };
  nodeIds(): Iterable<string>;
  /** Ids and names of all nodes, by name, then id. */
  nodeNames(): readonly NodeName[];
  /** The newest generation of a node, or undefined for an unknown node. */
  generation(nodeId: string): number | undefined;
  rollout(id: string): RolloutState | undefined;
  /** The rollout whose wave of the node is not released yet. */
  heldBy(nodeId: string): string | undefined;
  /** The intended listeners of a node, with policies; none for an unknown node. */
  portRows(nodeId: string): readonly PortRow[];
  /** A few free ports of a node. */
  freePorts(nodeId: string, transport: 'tcp' | 'udp'): readonly number[];
  /** The intended links from a node to others; none for an unknown node. */
  links(nodeId: string): readonly IntendedLink[];
  /** The same, and the links from others to it. */
  linksOfNode(nodeId: string): readonly IntendedLink[];
  /** The keys (`listenerKey`) of the listeners in a node's newest snapshot; none for an unknown node. */
  liveListeners(nodeId: string): ReadonlySet<string>;
  /** The number of each resource, at least as new as the call. Counted in slices. */
  resourceCounts(): Promise<ResourceCounts>;
  plan(chainId: string): DeployPlan | undefined;
  /** What a resource needs of agents, see `needsOf`. */
  needs(type: string, id: string, definition: 'current' | 'deployed'): Needs;
  /** What committed events ask of agents. Collected in slices. */
  needsOfEvents(events: Iterable<RecordedEvent>): Promise<Needs>;
  /** What the newest snapshot of a node needs of its agent. */
  needsOfNode(nodeId: string): ReadonlySet<Feature>;
  /** The sets of the fleet file, by name. Found in slices. */
  sets(): Promise<readonly FleetSet[]>;
  /** The drift of a set since its last apply; undefined for an unknown set. Found in slices. */
  drift(set: string): Promise<readonly DriftedResource[] | undefined>;
  /** The apply that is the base of a set's drift. */
  base(set: string): DriftBase | undefined;
  /** The revert of a fleet entry that is in effect. */
  revertOf(entryId: string): string | undefined;
  /** What became of the change of an entry that a person is to confirm; null for another. */
  confirmationOf(entryId: string): EntryConfirmation | null;
  /** Revision of `svc-fleet` that the committed fleet has reached; -1 for an empty log. */
  revision(): number;
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
  /** True once every read model holds the event's command; false after `timeoutMs`. */
  applied(stream: string, revision: number, timeoutMs: number): Promise<boolean>;
  /** True once every read model has reached the log position; false after `timeoutMs`. */
  reached(position: number, timeoutMs: number): Promise<boolean>;
  /** The last revision of a stream that was applied since the start; undefined when none was. */
  revision(stream: string): number | undefined;
  /** The latest time of an event that was applied since the start, in milliseconds since the epoch. */
  newestAt(): number | undefined;
  close(): Promise<void>;
}
