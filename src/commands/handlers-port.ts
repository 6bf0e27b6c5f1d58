/**
 * Port: what REST calls to change something or to sign somebody in. Types only. Bodies arrive validated and canonical;
 * checks that need other resources (references, names, collisions) or the stored one (a PUT) are made behind this port.
 * Implements `docs/contract/rest.md#envelope`.
 */
import type { ChainState } from '../domain/chain/chain.js';
import type { ConfirmationState } from '../domain/confirmation/confirmation.js';
import type { CredentialState } from '../domain/credential/credential.js';
import type { FleetCommand, NounOf, PlainType, ResourceType, StateOf } from '../domain/fleet/resources.js';
import type { PolicyKey, PolicyState } from '../domain/listener-policy/policy.js';
import type { AgentCommand, AgentCommandName, BulkCommand, NodeState } from '../domain/node/node.js';
import type { IfMatch } from '../domain/resource/refusal.js';
import type { PreviewedChange, Revert } from '../domain/revert/decide.js';
import type { JoinTokenDefinition, JoinTokenState } from '../domain/join-token/join-token.js';
import type { WebhookDefinition, WebhookState } from '../domain/webhook/webhook.js';
import type { RolloutState } from '../domain/rollout/rollout.js';
import type { SettingsState } from '../domain/settings/settings.js';
import type { RecordedCommand } from '../kernel/event.js';
import type { AccountsHandlers } from './accounts-port.js';
import type { FleetFileHandlers } from './fleet-file-port.js';
import type { Answer, CommandContext } from './port.js';

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

export interface RealityFields {
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

export const rolloutVerbs = ['pause', 'resume', 'advance', 'complete'] as const;
export type RolloutVerb = (typeof rolloutVerbs)[number];

/** The labels that several nodes get and lose. */
export type LabelFields = Pick<Extract<BulkCommand, { readonly type: 'LabelNodes' }>, 'set' | 'remove'>;

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
   * The changes that the revert would make. @param ctx receives the plan of its rollout
   * @throws ServiceError the refusal that the revert would get
   */
  preview(entry: RecordedCommand, ctx?: CommandContext): Promise<readonly PreviewedChange[]>;
}

export interface FleetRevertHandlers extends RevertHandlers {
  /** @param ofRollout set when somebody reverts the entry's rollout itself */
  revert(ctx: CommandContext, entry: RecordedCommand, ofRollout?: true): Answer<{ readonly name: string | null }>;
  /** The history of each resource that an entry is about, which the decision of its revert needs. */
  historiesOf(entry: RecordedCommand): Promise<Revert['histories']>;
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
    /** @param ids of at least one node, each once; likewise for `label` */
    commandSeveral(ctx: CommandContext, ids: readonly string[], command: AgentCommandName): Answer<void>;
    label(ctx: CommandContext, ids: readonly string[], labels: LabelFields): Answer<void>;
  };
  readonly serviceIdentity: {
    rotate(ctx: CommandContext): Answer<void>;
    /** @param force retires it even while nodes need the old key */
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
    /** @param where `after`: a cursor, `start` or `now`; `skip`: after the item that failed */
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
    /** A step by a person. @throws ServiceError `not_found`, `conflict` in a state that does not allow the step */
    step(ctx: CommandContext, id: string, step: RolloutVerb): Answer<RolloutState>;
    /** Reverts the entry of a rollout. @throws ServiceError as `step`, and what the revert throws */
    revert(ctx: CommandContext, id: string): Answer<unknown>;
    /** Confirms the change of an entry. @throws ServiceError `conflict` if nobody has to confirm it */
    confirm(ctx: CommandContext, entryId: string): Answer<unknown>;
    /** Reverts the entry of a change that nobody has confirmed. @throws ServiceError its refusal */
    revertUnconfirmed(ctx: CommandContext, of: Pick<ConfirmationState, 'name' | 'revision'>): Promise<unknown>;
  };
  readonly settings: {
    update(ctx: CommandContext, ifMatch: IfMatch, fields: UpdateSettingsFields): Answer<SettingsState>;
  };
  readonly fleetFile: FleetFileHandlers;
  /** Keyed by the subject of the entry. */
  readonly reverts: { readonly fleet: FleetRevertHandlers; readonly accounts: RevertHandlers };
  readonly accounts: AccountsHandlers;
}
