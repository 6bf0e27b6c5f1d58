/**
 * The part of a node's snapshot that is shown in sentences: proto3 JSON as in the answer of `GET
 * /api/nodes/{id}/config`, with `"***"` for every secret. The fields mean what `docs/contract/wire.md#configuration`
 * says.
 */

interface TransportProfile {
  readonly payload: string;
  readonly outer: string;
  readonly security: string;
}

export interface RealityInbound {
  readonly server_names: readonly string[];
  readonly short_ids: readonly string[];
  readonly target_host: string;
  readonly target_port: number;
}

interface RealityOutbound {
  readonly public_key: string;
  readonly server_name: string;
  readonly short_id: string;
}

export interface Outbound {
  readonly upstream_cluster?: string;
  readonly endpoint?: string;
  readonly transport_profile: TransportProfile;
  readonly reality?: RealityOutbound;
  readonly quic_reality?: RealityOutbound;
  readonly tls: boolean;
  readonly tls_server_name: string;
  readonly noise_public_key?: string;
}

export interface Origin {
  readonly resource_type: string;
  readonly resource_id: string;
  readonly resource_name: string;
  readonly hop_index: number;
}

interface Rule {
  readonly rule_id: string;
  readonly origin: Origin;
  readonly listen_addr: string;
  readonly listen_port: number;
}

/** Of a chain's hop, over TCP, UDP or QUIC. */
export interface HopRule extends Rule {
  readonly transport_profile: TransportProfile;
  readonly server_names?: readonly string[];
  readonly reality?: RealityInbound;
  readonly tls_credential_id?: string;
  readonly max_streams_per_connection?: number;
  readonly outbound: Outbound;
  readonly upstream_tls_spki_pins_sha256?: readonly string[];
}

export interface HttpRule extends Rule {
  readonly host: string;
  readonly path_prefix: string;
  readonly upstream_cluster: string;
}

export interface Cluster {
  readonly name: string;
  readonly endpoints: readonly string[];
  readonly server_names: readonly string[];
  readonly enabled: boolean;
  readonly health_check?: { readonly interval_ms: number };
}

export interface Certificate {
  readonly credential_id: string;
  readonly server_names: readonly string[];
}

export interface Policy {
  readonly transport: string;
  readonly listen_addr: string;
  readonly listen_port: number;
  readonly priority_order: readonly string[];
}

export interface TunnelRule {
  readonly rule_id: string;
  readonly origin: Origin;
  readonly local_endpoint: string;
  readonly peer_endpoint: string;
  readonly routes: readonly string[];
  readonly allowed_sources: readonly string[];
  readonly tun: { readonly interface_name: string; readonly prefixes: readonly string[]; readonly mtu: number };
  readonly reality_inbound?: RealityInbound;
  readonly reality_outbound?: RealityOutbound;
  readonly datagram_context_id: number;
  readonly role: string;
}

export interface ConfigSnapshot {
  readonly gateway: {
    readonly upstream_clusters: readonly Cluster[];
    readonly tcp_proxy_rules: readonly HopRule[];
    readonly http_proxy_rules: readonly HttpRule[];
    readonly tls?: { readonly certificates: readonly Certificate[] };
    readonly quic_rules: readonly HopRule[];
    readonly udp_rules: readonly HopRule[];
    readonly listener_policies: readonly Policy[];
  };
  readonly l3: { readonly rules: readonly TunnelRule[] };
  readonly node: { readonly multiplex: boolean; readonly multiplex_port: number };
}
