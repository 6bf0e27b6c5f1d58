/**
 * An L4 chain: traffic enters at `hops[0]` and leaves the last hop for the target. State, events, commands.
 * Snapshots come from the deployed definition; edits change the current one. Implements `docs/contract/domain.md#l4-chain`.
 */
import type { FieldChange } from '../resource/change.js';
import type { ResourceKey } from '../resource/fleet-view.js';
import type { IfMatch } from '../resource/if-match.js';
import type { LifecycleCommand, LifecycleEvent } from '../resource/lifecycle.js';
import { fieldsOf } from '../resource/lifecycle.js';
import type { ResourceMeta } from '../resource/meta.js';
import type { UpstreamTls } from '../upstream/upstream.js';

export const payloads = ['tcp', 'udp'] as const;
export type Payload = (typeof payloads)[number];
export const outers = ['tcp', 'udp', 'quic', 'fake_tcp'] as const;
export type Outer = (typeof outers)[number];
export const securities = ['raw', 'tls', 'reality', 'noise'] as const;
export type Security = (typeof securities)[number];

export interface Hop {
  readonly node_id: string;
  /** IP literal in canonical form. */
  readonly listen_addr: string;
  readonly listen_port: number;
  readonly outer: Outer;
  readonly security: Security;
  readonly server_names?: readonly string[];
  readonly credential_id?: string;
  readonly max_streams?: number;
  /** Host or IP that the previous hop dials instead of the node's address. */
  readonly dial_addr?: string;
}

export type Target = { readonly upstream_id: string } | { readonly endpoint: string; readonly tls?: UpstreamTls };

/** What deploy publishes. */
export interface ChainDefinition {
  readonly payload: Payload;
  readonly hops: readonly Hop[];
  readonly target: Target;
}

export interface DeployedDefinition extends ChainDefinition {
  /** The chain's version before the deploy's own event. */
  readonly chain_version: number;
  readonly at: string;
  /** Id of the deploy command. */
  readonly deployment_id: string;
}

export interface ChainFields extends ChainDefinition {
  readonly name: string;
  readonly description: string | null;
  readonly enabled: boolean;
}

export const chainFields = fieldsOf<ChainFields>()(['name', 'description', 'enabled', 'payload', 'hops', 'target']);

export interface ChainState extends ResourceMeta, ChainFields {
  readonly deployed: DeployedDefinition | null;
}

export const chainStatuses = ['draft', 'deployed', 'modified', 'disabled'] as const;
export type ChainStatus = (typeof chainStatuses)[number];

export type ChainEvent =
  | LifecycleEvent<'Chain', 'chain_id', ChainFields, { readonly deployed: DeployedDefinition | null }>
  | {
      readonly type: 'ChainDeployed';
      readonly data: {
        readonly chain_id: string;
        readonly chain_version: number;
        readonly definition: FieldChange<ChainDefinition | null>;
        /** Nodes of the old and of the new definition, with the offset that gives each one's generation. */
        readonly nodes: readonly { readonly node_id: string; readonly offset: number }[];
      };
    };

export type ChainCommand =
  | LifecycleCommand<'Chain', ChainFields>
  | { readonly type: 'DeployChain'; readonly id: string; readonly ifMatch: IfMatch };

export const chainKey: ResourceKey<ChainState> = { type: 'l4_chain' };
