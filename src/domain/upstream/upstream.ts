/**
 * An L4 upstream: an endpoint outside the fleet that chains can end in. The chains that end in it compile it into snapshots.
 * Implements `docs/contract/rest.md#l4-upstreams`.
 */
import { defineResource, type WithoutFields } from '../resource/define-resource.js';
import type { ResourceKey } from '../resource/fleet-view.js';
import type { ResourceMeta } from '../resource/meta.js';

export interface UpstreamTls {
  readonly server_name: string;
  /** Base64 of 32 bytes, at least one. */
  readonly spki_pins_sha256: readonly string[];
}

/** A REALITY server, which the last hop dials. */
export interface UpstreamReality {
  /** `quic` carries a udp chain by DATAGRAM, and a tcp chain by streams. */
  readonly outer: 'tcp' | 'quic';
  /** Base64url of 32 bytes. */
  readonly public_key: string;
  readonly server_name: string;
  /** Lower-case hex; may be empty. */
  readonly short_id: string;
}

export interface UpstreamDefinition {
  readonly name: string;
  /** `host:port`, IPv6 in brackets. */
  readonly endpoint: string;
  readonly server_names: readonly string[];
  readonly health_check_interval_ms: number;
  readonly enabled: boolean;
  readonly tls: UpstreamTls | null;
  readonly reality: UpstreamReality | null;
}

export interface UpstreamState extends ResourceMeta, UpstreamDefinition {}

export const upstreamKey: ResourceKey<UpstreamState> = { type: 'l4_upstream' };

export const l4Upstream = defineResource<UpstreamDefinition, WithoutFields, 'name'>()('l4_upstream', {
  noun: 'Upstream',
  singular: 'upstream',
  fields: ['name', 'endpoint', 'server_names', 'health_check_interval_ms', 'enabled', 'tls', 'reality'],
  absent: { reality: null },
  invalid: (_, { tls, reality }) =>
    tls === null || reality === null
      ? undefined
      : { code: 'invalid_request', message: 'tls and reality: expected at most one of them, the other as null' },
  indexed: null,
  compiled: null,
  // Only an edit touches nodes: nothing uses a new upstream yet, and one in use cannot be deleted.
  touches: (fleet, before, after) =>
    before === undefined || after === undefined ? [] : fleet.nodesUsing(upstreamKey.type, after.id),
});
