/**
 * An L4 chain: traffic enters at `hops[0]` and leaves the last hop for the target. State, the events and commands of a
 * deploy, and the references of a definition. Edits change the current definition; snapshots are compiled from the
 * deployed one. Implements `docs/contract/domain.md#l4-chain`.
 */
import type { RecordedEvent } from '../../kernel/event.js';
import type { FieldChange } from '../resource/change.js';
import type { ResourceKey } from '../resource/fleet-view.js';
import type { IfMatch } from '../resource/refusal.js';
import type { ResourceMeta } from '../resource/meta.js';
import type { UpstreamReality, UpstreamTls } from '../upstream/upstream.js';

export const payloads = ['tcp', 'udp'] as const;
export type Payload = (typeof payloads)[number];
export const outers = ['tcp', 'udp', 'quic', 'fake_tcp'] as const;
export type Outer = (typeof outers)[number];
export const securities = ['raw', 'tls', 'reality', 'noise'] as const;
export type Security = (typeof securities)[number];

export interface Hop {
  readonly node_id: string;
  /** An IP literal in canonical form. */
  readonly listen_addr: string;
  readonly listen_port: number;
  readonly outer: Outer;
  readonly security: Security;
  /** As they were sent; `names.ts` resolves the default. */
  readonly server_names?: readonly string[];
  readonly credential_id?: string;
  /** Only with outer quic. */
  readonly max_streams?: number;
  /** The host or IP that the previous hop dials instead of the node's address. */
  readonly dial_addr?: string;
}

export type Target = { readonly upstream_id: string } | EndpointTarget;

/** At most one of `tls` and `reality`. */
export interface EndpointTarget {
  readonly endpoint: string;
  readonly tls?: UpstreamTls;
  readonly reality?: UpstreamReality;
}

/** The part of a chain that a deploy publishes. */
export interface ChainDefinition {
  readonly payload: Payload;
  readonly hops: readonly Hop[];
  readonly target: Target;
}

export interface DeployedDefinition extends ChainDefinition {
  /** The chain's version before the deploy's own event. */
  readonly chain_version: number;
  readonly at: string;
  /** See `deploymentId`. */
  readonly deployment_id: string;
}

export interface ChainFields extends ChainDefinition {
  readonly name: string;
  readonly description: string | null;
  readonly enabled: boolean;
}

export interface ChainState extends ResourceMeta, ChainFields {
  readonly deployed: DeployedDefinition | null;
}

export const chainStatuses = ['draft', 'deployed', 'modified', 'disabled'] as const;
export type ChainStatus = (typeof chainStatuses)[number];

/** The event of a deploy, or of a return to what was deployed before. */
export interface ChainDeployed {
  readonly type: 'ChainDeployed';
  readonly data: {
    readonly chain_id: string;
    readonly chain_version: number;
    readonly definition: FieldChange<ChainDefinition | null>;
    /** The nodes of both definitions; generation = 1 + revision + offset. */
    readonly nodes: readonly { readonly node_id: string; readonly offset: number }[];
  };
}

export interface DeployChain {
  readonly type: 'DeployChain';
  readonly id: string;
  readonly ifMatch: IfMatch;
}

/** Deploys the former definition again, or null for none. The current definition stays. */
export interface RollBackChain {
  readonly type: 'RollBackChain';
  readonly id: string;
  readonly definition: ChainDefinition | null;
}

/** The id of a deployment: its command's, or its event's when the command has several, as an apply may deploy many chains. */
export function deploymentId({ id, metadata: { command } }: Pick<RecordedEvent, 'id' | 'metadata'>): string {
  return command.count === 1 ? command.id : id;
}

export const chainKey: ResourceKey<ChainState> = { type: 'l4_chain' };

/** The field of a chain's state with its deployed definition. */
export const deployedField = 'deployed';

export function definitionOf({ payload, hops, target }: ChainDefinition): ChainDefinition {
  return { payload, hops, target };
}

/** The current definition, and the deployed one if there is one. */
export function definitionsOf(chain: ChainState): readonly ChainDefinition[] {
  return chain.deployed === null ? [chain] : [chain, chain.deployed];
}

/** The definition that nodes run: the deployed one of an enabled chain. */
export function liveDefinition(chain: Pick<ChainState, 'enabled' | 'deployed'>): DeployedDefinition | null {
  return chain.enabled ? chain.deployed : null;
}

/** Ids of the nodes of definitions, each once, in order of appearance. */
export function nodesOf(...definitions: readonly (ChainDefinition | null)[]): readonly string[] {
  return [...new Set(definitions.flatMap((definition) => definition?.hops.map((hop) => hop.node_id) ?? []))];
}

/** The id of the upstream that a definition ends in; undefined when it ends in a literal endpoint. */
export function upstreamOf({ target }: ChainDefinition): string | undefined {
  return 'upstream_id' in target ? target.upstream_id : undefined;
}

/** The ids of a definition's credentials, once per hop that has one. */
export function credentialsOf({ hops }: ChainDefinition): readonly string[] {
  return hops.map((hop) => hop.credential_id).filter((id) => id !== undefined);
}
