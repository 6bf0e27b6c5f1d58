/**
 * The output of the compiler: one node's whole configuration as plain data, with a placeholder wherever a secret goes.
 * Not the wire: delivery opens the placeholders and encodes. Field meanings are those of `docs/contract/wire.md#configuration`.
 */
import type { SealedSecret } from '../secret/sealed.js';

/** Stands for a secret; delivery replaces it by the opened bytes. */
export interface SecretPlaceholder {
  readonly secret: SealedSecret;
  /** Associated data that the secret was sealed with. */
  readonly stream: string;
  readonly resource_id: string;
  readonly field: string;
}

export type ProfileOuter = 'TCP' | 'UDP' | 'QUIC' | 'FAKE_TCP';

export interface TransportProfile {
  readonly payload: 'TCP' | 'UDP' | 'IP';
  readonly outer: ProfileOuter;
  readonly security: 'RAW' | 'TLS' | 'REALITY' | 'NOISE';
}

export interface RuleOrigin {
  readonly resource_type: 'l4_chain' | 'route' | 'l3_network';
  readonly resource_id: string;
  readonly resource_name: string;
  readonly hop_index: number;
}

export type OutboundNext =
  | { readonly kind: 'upstream_cluster'; readonly name: string }
  | { readonly kind: 'endpoint'; readonly endpoint: string };

export interface Outbound {
  readonly next: OutboundNext;
  readonly transport_profile: TransportProfile;
  readonly tls: boolean;
  readonly tls_server_name: string;
}

interface RuleBase {
  readonly rule_id: string;
  readonly origin: RuleOrigin;
  readonly listen_addr: string;
  readonly listen_port: number;
  readonly transport_profile: TransportProfile;
  readonly outbound: Outbound;
}

export interface TcpProxyRule extends RuleBase {
  readonly mode: 'RAW' | 'TLS' | 'REALITY';
  readonly server_names: readonly string[];
  readonly upstream_tls_spki_pins_sha256: readonly string[];
}

export interface UdpRule extends RuleBase {
  readonly mode: 'RAW' | 'ENC';
  /** null for RAW. */
  readonly noise_private_key: SecretPlaceholder | null;
}

export interface UpstreamCluster {
  readonly name: string;
  readonly endpoints: readonly string[];
  readonly server_names: readonly string[];
  readonly enabled: boolean;
  readonly health_check_interval_ms: number;
}

export interface NodeSnapshot {
  readonly node_id: string;
  readonly generation: number;
  readonly upstream_clusters: readonly UpstreamCluster[];
  readonly tcp_proxy_rules: readonly TcpProxyRule[];
  readonly udp_rules: readonly UdpRule[];
  readonly node: { readonly multiplex: boolean; readonly multiplex_port: number };
}

/** What one resource contributes to a node's snapshot. */
export interface NodeRules {
  readonly tcp: readonly TcpProxyRule[];
  readonly udp: readonly UdpRule[];
  readonly clusters: readonly UpstreamCluster[];
}

export const noRules: NodeRules = { tcp: [], udp: [], clusters: [] };
