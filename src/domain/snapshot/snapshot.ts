/**
 * The compiler's output: the whole configuration of one node as plain data, with a placeholder for each secret. Not the
 * wire: delivery opens the placeholders and encodes. The fields mean what `docs/contract/wire.md#configuration` says.
 */
import type { SealedSecret } from '../secret/sealed.js';

/** Stands for a secret, which delivery opens. */
export interface SecretPlaceholder {
  readonly secret: SealedSecret;
  // The associated data that the secret was sealed with.
  readonly stream: string;
  readonly resource_id: string;
  readonly field: string;
}

type ProfileOuter = 'TCP' | 'UDP' | 'QUIC' | 'FAKE_TCP';

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

type OutboundNext =
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
  /** null with mode RAW. */
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

/** What one resource adds to the snapshot of a node. */
export interface NodeRules {
  readonly tcp: readonly TcpProxyRule[];
  readonly udp: readonly UdpRule[];
  readonly clusters: readonly UpstreamCluster[];
}

export const noRules: NodeRules = { tcp: [], udp: [], clusters: [] };
