/**
 * Port: what REST calls to change something or to sign somebody in. Types only. Bodies arrive validated and canonical;
 * checks that need other resources (references, names, collisions) or the stored one (a PUT) are made behind this port.
 * Implements `docs/contract/rest.md#envelope`.
 */
import type { ChainState } from '../domain/chain/chain.js';
import type { ApiTokenState } from '../domain/accounts/api-token.js';
import type { Role } from '../domain/accounts/user.js';
import type { ConfirmationState } from '../domain/confirmation/confirmation.js';
import type { CredentialState } from '../domain/credential/credential.js';
import type { FleetCommand, NounOf, PlainType, ResourceType, StateOf } from '../domain/fleet/resources.js';
import type { ChangedNode } from '../domain/fleet-file/carry-out.js';
import type { StepAction } from '../domain/fleet-file/compare.js';
import type { DocumentMistake, FileFlags, FleetDocument } from '../domain/fleet-file/document.js';
import type { RevertSeveral } from '../domain/fleet-file/revert.js';
import type { AuditChange } from '../domain/resource/audit-change.js';
import type { PolicyKey, PolicyState } from '../domain/listener-policy/policy.js';
import type { AgentCommand, AgentCommandName, BulkCommand, NodeState } from '../domain/node/node.js';
import type { ResourceMeta } from '../domain/resource/meta.js';
import type { ListOf, ListQuery } from '../kernel/list.js';
import type { IfMatch } from '../domain/resource/refusal.js';
import type { PreviewedChange } from '../domain/revert/decide.js';
import type { JoinTokenDefinition, JoinTokenState } from '../domain/join-token/join-token.js';
import type { WebhookDefinition, WebhookState } from '../domain/webhook/webhook.js';
import type { RolloutState } from '../domain/rollout/rollout.js';
import type { SettingsState } from '../domain/settings/settings.js';
import type { Needs } from '../domain/snapshot/features.js';
import type { RecordedCommand, TokenMark } from '../kernel/event.js';
import type { CommandContext, CommandOutcome } from './port.js';

/** An account as answers show it: without password, personal data in clear. */
export interface UserView extends Omit<ResourceMeta, 'managed_by'> {
  readonly username: string;
  readonly display_name: string | null;
  readonly email: string | null;
  readonly role: Role;
}

/** The user that a token authenticates, with the rights of the token. */
export interface Caller {
  readonly userId: string;
  readonly username: string;
  readonly role: Role;
  /** The claim `jti`, which a sign-out ends; of an API token, its id. */
  readonly tokenId: string;
  /** The API token of a program; null for people. */
  readonly apiToken: TokenMark | null;
  /** Whether the token has expired or was ended. */
  ended(): boolean;
}

/** A token that was just signed. */
export interface NewToken {
  readonly token: string;
  /** Seconds. */
  readonly expiresIn: number;
}

export interface Login extends NewToken {
  readonly user: UserView;
}

type FieldsOf<Type extends string, Named extends string> = Omit<
  Extract<FleetCommand, { readonly type: Type }>,
  'type' | Named
>;

/** The fields of a create: the whole definition, defaults filled in. */
export type CreateFields<T extends ResourceType> = FieldsOf<`Create${NounOf<T>}`, 'id'>;
/** The fields of an update; absent ones stay as they are. */
export type UpdateFields<T extends ResourceType> = FieldsOf<`Update${NounOf<T>}`, 'id' | 'ifMatch'>;

/** The fields of a certificate that the service makes. */
export interface SelfSigned {
  readonly common_name: string;
  /** When absent or empty, the common name, which is then a DNS name. */
  readonly subject_alt_names?: readonly string[] | undefined;
  readonly days?: number | undefined;
}

interface RealityFields {
  readonly x25519_credential_id: string;
  readonly server_names: readonly string[];
  readonly short_ids: readonly string[];
  readonly target_host: string;
  readonly target_port: number;
}

interface TlsFields {
  readonly certificate_pem: string;
  readonly private_key_pem: string;
  /** Instead of the other two. */
  readonly self_signed: SelfSigned;
}

type Given<T> = { readonly [K in keyof T]?: T[K] | undefined };

/** A credential in a create, with its keys in clear. */
export type NewCredential = { readonly name: string } & (
  | {
      readonly key_type: 'x25519';
      /** Base64url of 32 bytes; generated if absent. */
      readonly private_key?: string | null | undefined;
    }
  | ({ readonly key_type: 'reality' } & RealityFields)
  | ({ readonly key_type: 'tls_cert' } & Given<TlsFields>)
);

/** The fields of an update, all of one type. A private key of null is generated. */
export type CredentialChanges = Given<
  { readonly name: string; readonly private_key: string | null } & RealityFields & TlsFields
>;

/** A webhook in a create; its secret is generated. */
export type NewWebhook = Omit<WebhookDefinition, 'secret' | 'former_secret' | 'former_secret_until'>;
export type WebhookChanges = Given<NewWebhook & { readonly rotate_secret: boolean }>;

/** A join token in a create. */
export type NewJoinToken = Omit<JoinTokenDefinition, 'expires_at'> & { readonly expires_in_hours: number };

export type CreateNodeFields = Omit<CreateFields<'node'>, 'psk'> & { readonly issuePsk: boolean };

export interface DeployResult {
  readonly chain: ChainState;
  /** The nodes of both definitions with their new generations. */
  readonly nodes: readonly { readonly node_id: string; readonly generation: number }[];
}

/** The key of a listener policy, and its order. */
export type SavePolicyFields = FieldsOf<'SaveListenerPolicy', 'ifMatch'>;

export type UpdateSettingsFields = FieldsOf<'UpdateConnectivity', 'ifMatch'>;

export interface UpdateMeFields {
  readonly display_name?: string | null | undefined;
  readonly email?: string | null | undefined;
}

export interface ChangePasswordFields {
  readonly current_password: string;
  readonly new_password: string;
  /** Ends the API tokens too. */
  readonly revoke_tokens?: boolean | undefined;
}

export interface CreateUserFields extends UpdateMeFields {
  /** Lower-cased. */
  readonly username: string;
  readonly password: string;
  readonly role: Role;
}

export interface ApiTokenListQuery extends ListQuery {
  /** Only those of this user. */
  readonly userId?: string | undefined;
}

/** An API token as answers show it. */
export interface ApiTokenView extends Omit<ApiTokenState, 'token_sha256'> {
  readonly expired: boolean;
  /** RFC 3339, to the minute. */
  readonly last_used_at: string | null;
  readonly last_used_from: string | null;
}

export type NewApiTokenFields = Pick<ApiTokenState, 'name' | 'role' | 'from'> & {
  /** Null: it never expires. */
  readonly expires_in_days: number | null;
};

export const rolloutVerbs = ['pause', 'resume', 'advance', 'complete'] as const;
export type RolloutVerb = (typeof rolloutVerbs)[number];

/** The labels that several nodes get and lose. */
export type LabelFields = Pick<Extract<BulkCommand, { readonly type: 'LabelNodes' }>, 'set' | 'remove'>;

type Answer<R> = Promise<CommandOutcome<R>>;
/** The outcome of a command that takes no idempotency key. */
export type Done<R> = Extract<CommandOutcome<R>, { readonly kind: 'done' }>;

/** The handlers that every resource of the fleet has. */
export interface LifecycleHandlers<T extends ResourceType> {
  create(ctx: CommandContext, fields: CreateFields<T>): Answer<StateOf<T>>;
  update(ctx: CommandContext, id: string, ifMatch: IfMatch, fields: UpdateFields<T>): Answer<StateOf<T>>;
  remove(ctx: CommandContext, id: string, ifMatch: IfMatch): Answer<void>;
}

export interface RevertHandlers {
  /** @returns the name that the entry's resource has afterwards, or null */
  revert(ctx: CommandContext, entry: RecordedCommand): Answer<{ readonly name: string | null }>;
  /**
   * The changes that the revert would make. @param ctx is told of its rollout
   * @throws ServiceError the refusal that the revert would get
   */
  preview(entry: RecordedCommand, ctx?: CommandContext): Promise<readonly PreviewedChange[]>;
}

export interface FleetRevertHandlers extends RevertHandlers {
  /** @param ofRollout set when somebody reverts the entry's rollout by its name */
  revert(ctx: CommandContext, entry: RecordedCommand, ofRollout?: true): Answer<{ readonly name: string | null }>;
  /** The history of each resource of an entry about several, which the decision of its revert needs. */
  historiesOf(entry: RecordedCommand): Promise<RevertSeveral['histories']>;
}

/** A document of the fleet and what its sender allows. */
export interface FileRequest {
  readonly document: FleetDocument;
  readonly flags: FileFlags;
  /** SHA-256 of the document's text. */
  readonly digest: string;
}

export interface ApplyRequest extends FileRequest {
  readonly issuePsks: boolean;
}

/** The outcome of an apply; with mistakes, nothing was written. */
export type FileApplied =
  | { readonly kind: 'mistakes'; readonly mistakes: readonly DocumentMistake[] }
  | {
      readonly kind: 'done';
      readonly applyId: string;
      /** Null for resources that no set owns. */
      readonly set: string | null;
      /** Newest last. */
      readonly commands: readonly RecordedCommand[];
      readonly controlPsks: readonly { readonly node: string; readonly controlPsk: string | null }[];
      readonly incomplete: { readonly error: string; readonly commandsLeft: number } | null;
      readonly position: number;
    };

/** The outcome of the revert of an apply. */
export interface FleetReverted {
  /** In the order in which they were written, or in which a dry run would write them. */
  readonly commands: readonly RecordedCommand[];
  /** The commands of the apply that were not reverted. */
  readonly notReverted: readonly RecordedCommand[];
  readonly position: number;
}

export interface PlannedStep {
  readonly action: StepAction;
  /** `id` is null before it exists. */
  readonly resource: { readonly type: string; readonly name: string; readonly id: string | null };
  /** With names in place of ids, secrets masked. */
  readonly changes: readonly AuditChange[];
}

export interface FilePlan {
  /** The mistakes of the document; with any, there are no steps. */
  readonly mistakes: readonly DocumentMistake[];
  readonly steps: readonly PlannedStep[];
  readonly nodes: readonly ChangedNode[];
  /** Why an apply would be refused. */
  readonly obstacles: readonly string[];
  /** What its steps ask of agents. */
  readonly needs: Needs;
  /** How many commands an apply would write. */
  readonly commands: number;
  readonly etag: string;
}

/**
 * A method that changes something refuses by throwing a ServiceError, checked in this order: `not_found` of the
 * resource, `precondition_failed`, `invalid_request` (references, the result of a PUT), `conflict`. It throws
 * `unavailable` when the log cannot be written or the instance is read-only.
 */
export interface CommandHandlers {
  readonly resources: {
    readonly [T in Exclude<PlainType, 'credential' | 'webhook' | 'join_token'>]: LifecycleHandlers<T>;
  };
  readonly credentials: Omit<LifecycleHandlers<'credential'>, 'create' | 'update'> & {
    create(ctx: CommandContext, fields: NewCredential): Answer<CredentialState>;
    update(ctx: CommandContext, id: string, ifMatch: IfMatch, changes: CredentialChanges): Answer<CredentialState>;
  };
  readonly nodes: Omit<LifecycleHandlers<'node'>, 'create'> & {
    create(ctx: CommandContext, fields: CreateNodeFields): Answer<{ node: NodeState; controlPsk: string | null }>;
    issuePsk(ctx: CommandContext, id: string): Answer<{ controlPsk: string; fingerprint: string }>;
    /** @param days until it expires */
    issueCandidate(
      ctx: CommandContext,
      id: string,
      days: number,
    ): Answer<{ readonly controlPsk: string; readonly node: NodeState }>;
    dropCandidate(ctx: CommandContext, id: string, ifMatch: IfMatch): Answer<void>;
    refresh(ctx: CommandContext, id: string): Answer<{ generation: number }>;
    command(ctx: CommandContext, id: string, command: AgentCommandName): Answer<AgentCommand>;
    /** @param ids of at least one node, each once, as of `label` */
    commandSeveral(ctx: CommandContext, ids: readonly string[], command: AgentCommandName): Answer<void>;
    label(ctx: CommandContext, ids: readonly string[], labels: LabelFields): Answer<void>;
  };
  readonly serviceIdentity: {
    rotate(ctx: CommandContext): Answer<void>;
    /** @param force also while nodes need the old key */
    retire(ctx: CommandContext, force: boolean): Answer<void>;
  };
  readonly joinTokens: {
    create(
      ctx: CommandContext,
      fields: NewJoinToken,
    ): Answer<{ readonly joinToken: JoinTokenState; readonly token: string }>;
    /** Once it returns, every live instance that answers in time refuses the token. */
    remove(ctx: CommandContext, id: string, ifMatch: IfMatch): Answer<void>;
    /** Deletes those that a user has made. @returns how many */
    removeThoseOf(ctx: CommandContext, userId: string): Promise<number>;
  };
  readonly webhooks: {
    create(
      ctx: CommandContext,
      fields: NewWebhook,
    ): Answer<{ readonly webhook: WebhookState; readonly secret: string | null }>;
    /** @returns the secret when there is a new one */
    update(
      ctx: CommandContext,
      id: string,
      ifMatch: IfMatch,
      changes: WebhookChanges,
    ): Answer<{ readonly webhook: WebhookState; readonly secret: string | undefined }>;
    remove(ctx: CommandContext, id: string, ifMatch: IfMatch): Answer<void>;
    /** @param where `after`: a cursor, `start` or `now`; `skip`: behind the item that failed */
    resume(
      ctx: CommandContext,
      id: string,
      where: { readonly after?: string | undefined; readonly skip?: boolean | undefined },
    ): Answer<WebhookState>;
  };
  readonly chains: {
    deploy(ctx: CommandContext, id: string, ifMatch: IfMatch): Answer<DeployResult>;
  };
  readonly policies: {
    save(ctx: CommandContext, ifMatch: IfMatch, fields: SavePolicyFields): Answer<PolicyState>;
    remove(ctx: CommandContext, ifMatch: IfMatch, key: PolicyKey): Answer<void>;
  };
  readonly rollouts: {
    /** A step by a person. @throws ServiceError `not_found`, `conflict` in a state that does not have the step */
    step(ctx: CommandContext, id: string, step: RolloutVerb): Answer<RolloutState>;
    /** Reverts the entry of a rollout. @throws ServiceError as `step`, and what the revert throws */
    revert(ctx: CommandContext, id: string): Answer<unknown>;
    /** Confirms the change of an entry. @throws ServiceError `conflict` for one that waits for nobody */
    confirm(ctx: CommandContext, entryId: string): Answer<unknown>;
    /** Reverts the entry of a change that nobody has confirmed. @throws ServiceError its refusal */
    revertUnconfirmed(ctx: CommandContext, of: Pick<ConfirmationState, 'name' | 'revision'>): Promise<unknown>;
  };
  readonly settings: {
    update(ctx: CommandContext, ifMatch: IfMatch, fields: UpdateSettingsFields): Answer<SettingsState>;
  };
  readonly fleetFile: {
    /** Writes nothing. @throws ServiceError `unavailable` */
    plan(request: FileRequest): Promise<FilePlan>;
    /**
     * @param ifMatch etags of plans, one of which must still be valid; `*` for any
     * @throws ServiceError `precondition_failed`, `conflict` with every obstacle, `unavailable`
     */
    apply(
      ctx: CommandContext,
      request: ApplyRequest,
      ifMatch: '*' | readonly string[] | undefined,
    ): Promise<FileApplied>;
    /** The outcome of an apply; undefined when there is none with the id. @throws ServiceError `unavailable` */
    find(applyId: string): Promise<Extract<FileApplied, { readonly kind: 'done' }> | undefined>;
    /**
     * Reverts the commands of an apply, newest first, except rotations.
     * @throws ServiceError `not_found`, `conflict` with every obstacle, `unavailable`
     */
    revert(ctx: CommandContext, applyId: string, dryRun: boolean): Promise<FleetReverted>;
    /** Releases the resources of a set. @throws ServiceError `not_found`, `unavailable` */
    release(ctx: CommandContext, set: string): Promise<Omit<FleetReverted, 'notReverted'>>;
  };
  /** Keyed by the subject of the entry. */
  readonly reverts: { readonly fleet: FleetRevertHandlers; readonly accounts: RevertHandlers };
  readonly accounts: {
    /**
     * @param address the caller's IP in canonical form
     * @throws ServiceError `unauthenticated`, or `rate_limited` with `retryAfterSeconds`
     */
    login(username: string, password: string, address: string, requestId: string): Promise<Login>;
    /**
     * Checks an access token (signature, expiry, token version, sign-out) or an API token.
     * @param address the caller's IP in canonical form
     * @returns undefined for a token that authenticates nobody
     * @throws ServiceError `rate_limited` for an unknown API token, when there were too many from the address
     */
    authenticate(token: string, address: string): Caller | undefined | Promise<Caller | undefined>;
    /** @throws ServiceError `not_found` when the user is gone */
    me(userId: string): UserView | Promise<UserView>;
    updateMe(ctx: CommandContext, userId: string, ifMatch: IfMatch, fields: UpdateMeFields): Answer<UserView>;
    /**
     * Ends every older token of the user. @returns a fresh one
     * @param address the caller's IP in canonical form, for the budget that sign-ins have
     * @throws ServiceError `invalid_request` for a wrong current password, `rate_limited` with `retryAfterSeconds`
     */
    changePassword(
      ctx: CommandContext,
      userId: string,
      ifMatch: IfMatch,
      address: string,
      fields: ChangePasswordFields,
    ): Promise<Done<NewToken>>;
    /** Ends the caller's token on every instance that answers in time. */
    signOut(ctx: CommandContext, caller: Caller): Answer<void>;
    /**
     * Deletes the join tokens that the user has made, then ends every token of the user.
     * @throws ServiceError `rate_limited` with `retryAfterSeconds`
     */
    resetPassword(
      ctx: CommandContext,
      id: string,
      ifMatch: IfMatch,
      password: string,
    ): Promise<Done<{ readonly user: UserView; readonly joinTokensDeleted: number }>>;
    users(query: ListQuery): Promise<ListOf<UserView>>;
    user(id: string): Promise<UserView | undefined>;
    /** @throws ServiceError `rate_limited` with `retryAfterSeconds` */
    createUser(ctx: CommandContext, fields: CreateUserFields): Answer<UserView>;
    /** A caller sees and deletes only own tokens, an admin all; any other is `not_found`. */
    readonly apiTokens: {
      list(caller: Caller, query: ApiTokenListQuery): Promise<ListOf<ApiTokenView>>;
      get(caller: Caller, id: string): Promise<ApiTokenView | undefined>;
      /** @throws ServiceError `forbidden` for a role above the caller's, `conflict` for a name or one token too many */
      create(
        ctx: CommandContext,
        caller: Caller,
        fields: NewApiTokenFields,
      ): Answer<{ readonly apiToken: ApiTokenView; readonly token: string }>;
      /** Once it returns, every live instance that answers in time refuses the token. */
      remove(ctx: CommandContext, caller: Caller, id: string, ifMatch: IfMatch): Answer<void>;
    };
  };
}
