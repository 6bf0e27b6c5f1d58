/**
 * An L4 chain: traffic enters at `hops[0]` and leaves the last hop for the target. State, events, commands.
 * Snapshots come from the deployed definition, edits change the current one. Implements `docs/contract/domain.md#l4-chain`.
 */
import type { Changes, FieldChange } from '../resource/change.js';
import type { ResourceMeta } from '../resource/meta.js';
import type { IfMatch } from '../node/node.js';
import type { UpstreamTls } from '../upstream/upstream.js';

export type Payload = 'tcp' | 'udp';
export type Outer = 'tcp' | 'udp' | 'quic' | 'fake_tcp';
export type Security = 'raw' | 'tls' | 'reality' | 'noise';

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

export interface ChainState extends ResourceMeta, ChainDefinition {
  readonly name: string;
  readonly description: string | null;
  readonly enabled: boolean;
  readonly deployed: DeployedDefinition | null;
}

export type ChainStatus = 'draft' | 'deployed' | 'modified' | 'disabled';

export interface ChainFields extends ChainDefinition {
  readonly name: string;
  readonly description: string | null;
  readonly enabled: boolean;
}

export type ChainEvent =
  | { readonly type: 'ChainCreated'; readonly data: { readonly chain_id: string } & ChainFields }
  | { readonly type: 'ChainUpdated'; readonly data: { readonly chain_id: string; readonly changes: Changes } }
  | {
      readonly type: 'ChainDeleted';
      readonly data: { readonly chain_id: string; readonly deployed: DeployedDefinition | null } & ChainFields;
    }
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
  | ({ readonly type: 'CreateChain'; readonly id: string } & ChainFields)
  | {
      readonly type: 'UpdateChain';
      readonly id: string;
      readonly ifMatch: IfMatch;
      readonly name?: string | undefined;
      readonly description?: string | null | undefined;
      readonly enabled?: boolean | undefined;
      readonly payload?: Payload | undefined;
      readonly hops?: readonly Hop[] | undefined;
      readonly target?: Target | undefined;
    }
  | { readonly type: 'DeleteChain'; readonly id: string; readonly ifMatch: IfMatch }
  | { readonly type: 'DeployChain'; readonly id: string; readonly ifMatch: IfMatch };
