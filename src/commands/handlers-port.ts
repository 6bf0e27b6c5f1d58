/**
 * What REST calls to change something or to sign someone in, and the state types that its answers are made of.
 * Types only: the handlers are in the files beside. Bodies come in validated and canonical; what needs other
 * resources to be judged (references, names, collisions, a PUT against what is stored) is decided behind this port.
 * Implements `docs/contract/rest.md`, the endpoints that write.
 */
import type { ChainFields, ChainState, Hop, Payload, Target } from '../domain/chain/chain.js';
import type { Role } from '../domain/accounts/user.js';
import type { AgentCommand, AgentCommandName, IfMatch, Labels, NodeState } from '../domain/node/node.js';
import type { SettingsState } from '../domain/settings/settings.js';
import type { UpstreamDefinition, UpstreamState, UpstreamTls } from '../domain/upstream/upstream.js';
import type { CommandContext, CommandOutcome } from './port.js';

export type {
  ChainDefinition,
  ChainState,
  ChainStatus,
  Hop,
  Outer,
  Payload,
  Security,
  Target,
} from '../domain/chain/chain.js';
export type { Role } from '../domain/accounts/user.js';
export type { AgentCommand, AgentCommandName, IfMatch, Labels, NodeState } from '../domain/node/node.js';
export type { SettingsState } from '../domain/settings/settings.js';
export type { UpstreamState, UpstreamTls } from '../domain/upstream/upstream.js';

/** An account as it is shown: no password, personal data opened. */
export interface UserView {
  readonly id: string;
  readonly username: string;
  readonly display_name: string | null;
  readonly email: string | null;
  readonly role: Role;
  readonly created_at: string;
  readonly updated_at: string;
  readonly version: number;
}

/** Whom a token stands for. */
export interface Caller {
  readonly userId: string;
  readonly username: string;
  readonly role: Role;
}

export interface Login {
  readonly token: string;
  /** Seconds. */
  readonly expiresIn: number;
  readonly user: UserView;
}

export interface CreateNodeFields {
  readonly name: string;
  readonly description: string | null;
  readonly address: string | null;
  readonly labels: Labels;
  readonly issuePsk: boolean;
}

/** Absent fields stay as they are. */
export interface UpdateNodeFields {
  readonly name?: string | undefined;
  readonly description?: string | null | undefined;
  readonly address?: string | null | undefined;
  readonly labels?: Labels | undefined;
}

/** A new upstream is enabled. */
export type CreateUpstreamFields = Omit<UpstreamDefinition, 'enabled'>;

export interface UpdateUpstreamFields {
  readonly endpoint?: string | undefined;
  readonly server_names?: readonly string[] | undefined;
  readonly health_check_interval_ms?: number | undefined;
  readonly enabled?: boolean | undefined;
  readonly tls?: UpstreamTls | null | undefined;
}

export type CreateChainFields = ChainFields;

export interface UpdateChainFields {
  readonly name?: string | undefined;
  readonly description?: string | null | undefined;
  readonly enabled?: boolean | undefined;
  readonly payload?: Payload | undefined;
  readonly hops?: readonly Hop[] | undefined;
  readonly target?: Target | undefined;
}

export interface DeployResult {
  readonly chain: ChainState;
  /** Nodes of the old and of the new definition, with the generation that the deploy gave them. */
  readonly nodes: readonly { readonly node_id: string; readonly generation: number }[];
}

export interface UpdateSettingsFields {
  readonly multiplex?: boolean | undefined;
  readonly multiplex_port?: number | null | undefined;
  readonly heartbeat_interval_secs?: number | undefined;
  readonly metrics_interval_secs?: number | undefined;
  readonly offline_after_secs?: number | null | undefined;
  readonly nodes?:
    | readonly {
        readonly node_id: string;
        /** null removes the node's override. */
        readonly multiplex: boolean | null;
        readonly multiplex_port?: number | null | undefined;
      }[]
    | undefined;
}

export interface UpdateMeFields {
  readonly display_name?: string | null | undefined;
  readonly email?: string | null | undefined;
}

type Answer<R> = Promise<CommandOutcome<R>>;

/**
 * Every method that changes something refuses by throwing a ServiceError, in this order: `not_found` of the resource,
 * `precondition_failed`, `invalid_request` (references, the result of a PUT), `conflict`; `unavailable` when the log
 * can't be written or the instance is read-only.
 */
export interface CommandHandlers {
  readonly nodes: {
    create(ctx: CommandContext, fields: CreateNodeFields): Answer<{ node: NodeState; controlPsk: string | null }>;
    update(ctx: CommandContext, id: string, ifMatch: IfMatch, fields: UpdateNodeFields): Answer<NodeState>;
    remove(ctx: CommandContext, id: string, ifMatch: IfMatch): Answer<void>;
    issuePsk(ctx: CommandContext, id: string): Answer<{ controlPsk: string; fingerprint: string }>;
    refresh(ctx: CommandContext, id: string): Answer<{ generation: number }>;
    command(ctx: CommandContext, id: string, command: AgentCommandName): Answer<AgentCommand>;
  };
  readonly upstreams: {
    create(ctx: CommandContext, fields: CreateUpstreamFields): Answer<UpstreamState>;
    update(ctx: CommandContext, id: string, ifMatch: IfMatch, fields: UpdateUpstreamFields): Answer<UpstreamState>;
    remove(ctx: CommandContext, id: string, ifMatch: IfMatch): Answer<void>;
  };
  readonly chains: {
    create(ctx: CommandContext, fields: CreateChainFields): Answer<ChainState>;
    update(ctx: CommandContext, id: string, ifMatch: IfMatch, fields: UpdateChainFields): Answer<ChainState>;
    remove(ctx: CommandContext, id: string, ifMatch: IfMatch): Answer<void>;
    deploy(ctx: CommandContext, id: string, ifMatch: IfMatch): Answer<DeployResult>;
  };
  readonly settings: {
    update(ctx: CommandContext, ifMatch: IfMatch, fields: UpdateSettingsFields): Answer<SettingsState>;
  };
  readonly accounts: {
    /**
     * `address` is the caller's IP in canonical form.
     * @throws ServiceError `unauthenticated`, or `rate_limited` with `retryAfterSeconds`
     */
    login(username: string, password: string, address: string, requestId: string): Promise<Login>;
    /** Checks signature, expiry and token version; undefined for a token that stands for nobody. */
    authenticate(token: string): Caller | undefined | Promise<Caller | undefined>;
    /** @throws ServiceError `not_found` when the user is gone. */
    me(userId: string): UserView | Promise<UserView>;
    updateMe(ctx: CommandContext, userId: string, ifMatch: IfMatch, fields: UpdateMeFields): Answer<UserView>;
  };
}
