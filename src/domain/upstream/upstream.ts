/**
 * An L4 upstream: where chains end. State, events, commands. Implements `docs/contract/rest.md#l4-upstreams`.
 */
import type { Changes } from '../resource/change.js';
import type { ResourceMeta } from '../resource/meta.js';
import type { IfMatch } from '../node/node.js';

export interface UpstreamTls {
  readonly server_name: string;
  /** Base64 of 32 bytes, at least one. */
  readonly spki_pins_sha256: readonly string[];
}

export interface UpstreamDefinition {
  readonly name: string;
  /** `host:port`, IPv6 in brackets. */
  readonly endpoint: string;
  readonly server_names: readonly string[];
  readonly health_check_interval_ms: number;
  readonly enabled: boolean;
  readonly tls: UpstreamTls | null;
}

export interface UpstreamState extends ResourceMeta, UpstreamDefinition {}

export type UpstreamEvent =
  | { readonly type: 'UpstreamCreated'; readonly data: { readonly upstream_id: string } & UpstreamDefinition }
  | { readonly type: 'UpstreamUpdated'; readonly data: { readonly upstream_id: string; readonly changes: Changes } }
  | { readonly type: 'UpstreamDeleted'; readonly data: { readonly upstream_id: string } & UpstreamDefinition };

export type UpstreamCommand =
  | ({ readonly type: 'CreateUpstream'; readonly id: string } & UpstreamDefinition)
  | {
      readonly type: 'UpdateUpstream';
      readonly id: string;
      readonly ifMatch: IfMatch;
      readonly endpoint?: string | undefined;
      readonly server_names?: readonly string[] | undefined;
      readonly health_check_interval_ms?: number | undefined;
      readonly enabled?: boolean | undefined;
      readonly tls?: UpstreamTls | null | undefined;
    }
  | { readonly type: 'DeleteUpstream'; readonly id: string; readonly ifMatch: IfMatch };
