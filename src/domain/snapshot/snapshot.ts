/**
 * The compiler's output: the whole configuration of one node as plain data, with a placeholder for each secret.
 * Delivery opens the placeholders and encodes it. The fields mean what `docs/contract/wire.md#configuration` says.
 */
import type { SealedSecret } from '../secret/sealed.js';

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

/** The types of the resources that rules and links come from. */
export const originTypes = ['l4_chain', 'l3_network', 'route'] as const;

export interface RuleOrigin {
  readonly resource_type: (typeof originTypes)[number];
  readonly resource_id: string;
  readonly resource_name: string;
  readonly hop_index: number;
}

export interface RealityInbound {
  readonly private_key: SecretPlaceholder;
  readonly server_names: readonly string[];
  readonly short_ids: readonly string[];
  readonly target_host: string;
  readonly target_port: number;
}

export interface RealityOutbound {
  /** Base64url of 32 bytes. */
  readonly public_key: string;
  readonly server_name: string;
  readonly short_id: string;
}

type OutboundNext =
  | { readonly kind: 'upstream_cluster'; readonly name: string }
  | { readonly kind: 'endpoint'; readonly endpoint: string };

export interface Outbound {
  readonly next: OutboundNext;
  readonly transport_profile: TransportProfile;
  readonly reality: RealityOutbound | null;
  readonly quic_reality: RealityOutbound | null;
  readonly tls: boolean;
  readonly tls_server_name: string;
  /** Base64url of 32 bytes; null unless the next hop speaks Noise. */
  readonly noise_public_key: string | null;
}

/** The fields of every rule that occupies a listener. */
interface ListenerRule {
  readonly rule_id: string;
  readonly origin: RuleOrigin;
  readonly listen_addr: string;
  readonly listen_port: number;
}

interface ProxyRule extends ListenerRule {
  readonly transport_profile: TransportProfile;
  readonly outbound: Outbound;
}

export interface TcpProxyRule extends ProxyRule {
  readonly mode: 'RAW' | 'TLS' | 'REALITY';
  readonly server_names: readonly string[];
  /** null unless the mode is REALITY. */
  readonly reality: RealityInbound | null;
  /** `""` unless the mode is TLS. */
  readonly tls_credential_id: string;
  readonly upstream_tls_spki_pins_sha256: readonly string[];
}

export interface UdpRule extends ProxyRule {
  readonly mode: 'RAW' | 'ENC';
  /** null with mode RAW. */
  readonly noise_private_key: SecretPlaceholder | null;
  /** Base64url of 32 bytes; null with mode RAW. */
  readonly noise_public_key: string | null;
}

export interface QuicRule extends ProxyRule {
  readonly reality: RealityInbound;
  readonly max_streams_per_connection: number;
  readonly upstream_tls_spki_pins_sha256: readonly string[];
}

export interface HttpProxyRule extends ListenerRule {
  readonly host: string;
  readonly path_prefix: string;
  /** The name of an upstream cluster of the same snapshot. */
  readonly upstream_cluster: string;
}

export interface UpstreamCluster {
  readonly name: string;
  readonly endpoints: readonly string[];
  readonly server_names: readonly string[];
  readonly enabled: boolean;
  /** null for a cluster without health check. */
  readonly health_check_interval_ms: number | null;
}

export interface TlsCertificate {
  readonly credential_id: string;
  readonly certificate_pem: string;
  readonly private_key_pem: SecretPlaceholder;
  readonly server_names: readonly string[];
}

export interface ListenerPolicy {
  readonly transport: 'tcp' | 'udp';
  readonly listen_addr: string;
  readonly listen_port: number;
  readonly priority_order: readonly string[];
}

export interface TunConfig {
  readonly interface_name: string;
  readonly address_family: 'IPV4' | 'IPV6' | 'DUAL';
  readonly prefixes: readonly string[];
  readonly mtu: number;
  readonly features: readonly string[];
}

export interface L3TunnelRule {
  readonly rule_id: string;
  readonly origin: RuleOrigin;
  /** The number of the network, in decimal. */
  readonly network_id: string;
  readonly network_name: string;
  /** `host:port`; `""` for the other role. */
  readonly local_endpoint: string;
  readonly peer_endpoint: string;
  readonly routes: readonly string[];
  readonly allowed_sources: readonly string[];
  readonly tun: TunConfig;
  /** null for a connector. */
  readonly reality_inbound: RealityInbound | null;
  /** null for a listener. */
  readonly reality_outbound: RealityOutbound | null;
  readonly datagram_context_id: number;
  readonly role: 'LISTENER' | 'CONNECTOR';
  readonly transport_profile: TransportProfile;
}

/** Every kind of rule, by the name of its list in a snapshot. */
export interface RuleKinds {
  readonly tcp_proxy_rules: TcpProxyRule;
  readonly http_proxy_rules: HttpProxyRule;
  readonly quic_rules: QuicRule;
  readonly udp_rules: UdpRule;
  readonly l3_rules: L3TunnelRule;
}

export type RuleKind = keyof RuleKinds;
export type Rule = RuleKinds[RuleKind];
type RuleLists = { readonly [K in RuleKind]: readonly RuleKinds[K][] };

/** Lists to fill, one for each kind. */
export const noRuleLists = (): { readonly [K in RuleKind]: RuleKinds[K][] } => ({
  tcp_proxy_rules: [],
  http_proxy_rules: [],
  quic_rules: [],
  udp_rules: [],
  l3_rules: [],
});

export const ruleKinds = Object.keys(noRuleLists()) as readonly RuleKind[];

/** All rules of a snapshot. */
export const rulesIn = (snapshot: RuleLists): readonly Rule[] =>
  ruleKinds.flatMap((kind): readonly Rule[] => snapshot[kind]);

export interface NodeSnapshot extends RuleLists {
  readonly node_id: string;
  readonly generation: number;
  readonly upstream_clusters: readonly UpstreamCluster[];
  readonly tls_certificates: readonly TlsCertificate[];
  readonly listener_policies: readonly ListenerPolicy[];
  readonly node: { readonly multiplex: boolean; readonly multiplex_port: number };
}

/** What one resource adds to the snapshot of a node. */
export interface NodeRules extends Partial<RuleLists> {
  /** Equal clusters or certificates of several resources appear in the snapshot once. */
  readonly clusters?: readonly UpstreamCluster[];
  readonly certificates?: readonly TlsCertificate[];
  readonly policies?: readonly ListenerPolicy[];
}

export const noRules: NodeRules = {};
