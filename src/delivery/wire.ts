/**
 * A compiled snapshot as wire messages: names become enum numbers, placeholders become bytes. Written field by field, so that a
 * field added to one side only does not compile, and without spreads, which take ten times as long. Implements `docs/contract/wire.md#configuration`.
 */
import type * as compiled from '../domain/snapshot/snapshot.js';
import type {
  GatewayConfig,
  L3TunnelConfig,
  ListenerPolicy,
  NodeConfig,
  TlsCertificate,
  UpstreamCluster,
} from '../gen/svc/control/v1/gateway.js';
import {
  AddressFamily,
  L3Role,
  TcpProxyMode,
  UdpMode,
  type HttpProxyRule,
  type L3TunnelRule,
  type QuicRule,
  type TcpProxyRule,
  type TunConfig,
  type UdpRule,
} from '../gen/svc/control/v1/rules.js';
import {
  OuterTransport,
  PayloadProtocol,
  SecurityLayer,
  type Outbound,
  type RealityInbound,
  type RealityOutbound,
  type RuleOrigin,
  type TransportProfile,
} from '../gen/svc/control/v1/transport.js';
import type { SecretOpener } from './secrets.js';

const noBytes = Buffer.alloc(0);

/** The configuration in a RuntimeConfigSnapshot. All parts are always present. */
export interface WireParts {
  readonly gateway: GatewayConfig;
  readonly l3: L3TunnelConfig;
  readonly node: NodeConfig;
}

/** @throws SecretUnreadableError of `open` */
export function wireParts(snapshot: compiled.NodeSnapshot, open: SecretOpener): WireParts {
  const { tls_certificates: certificates } = snapshot;
  return {
    gateway: {
      upstreamClusters: snapshot.upstream_clusters.map(cluster),
      tcpProxyRules: snapshot.tcp_proxy_rules.map((rule) => tcpProxyRule(rule, open)),
      httpProxyRules: snapshot.http_proxy_rules.map(httpProxyRule),
      tls:
        certificates.length === 0
          ? undefined
          : { certificates: certificates.map((certificate) => tlsCertificate(certificate, open)) },
      quicRules: snapshot.quic_rules.map((rule) => quicRule(rule, open)),
      udpRules: snapshot.udp_rules.map((rule) => udpRule(rule, open)),
      listenerPolicies: snapshot.listener_policies.map(listenerPolicy),
    },
    l3: { rules: snapshot.l3_rules.map((rule) => l3TunnelRule(rule, open)) },
    node: { multiplex: snapshot.node.multiplex, multiplexPort: snapshot.node.multiplex_port },
  };
}

function cluster(value: compiled.UpstreamCluster): UpstreamCluster {
  const { health_check_interval_ms: intervalMs } = value;
  return {
    name: value.name,
    endpoints: value.endpoints,
    serverNames: value.server_names,
    enabled: value.enabled,
    healthCheck: intervalMs === null ? undefined : { intervalMs, path: '' },
  };
}

function tcpProxyRule(rule: compiled.TcpProxyRule, open: SecretOpener): TcpProxyRule {
  return {
    ruleId: rule.rule_id,
    origin: origin(rule.origin),
    listenAddr: rule.listen_addr,
    listenPort: rule.listen_port,
    mode: TcpProxyMode[rule.mode],
    transportProfile: profile(rule.transport_profile),
    serverNames: rule.server_names,
    reality: realityInbound(rule.reality, open),
    tlsCredentialId: rule.tls_credential_id,
    outbound: outbound(rule.outbound),
    upstreamTlsSpkiPinsSha256: rule.upstream_tls_spki_pins_sha256,
  };
}

function udpRule(rule: compiled.UdpRule, open: SecretOpener): UdpRule {
  return {
    ruleId: rule.rule_id,
    origin: origin(rule.origin),
    listenAddr: rule.listen_addr,
    listenPort: rule.listen_port,
    mode: UdpMode[rule.mode],
    transportProfile: profile(rule.transport_profile),
    noisePrivateKey: rule.noise_private_key === null ? noBytes : secretBytes(rule.noise_private_key, open),
    noisePublicKey: publicKey(rule.noise_public_key),
    outbound: outbound(rule.outbound),
  };
}

function quicRule(rule: compiled.QuicRule, open: SecretOpener): QuicRule {
  return {
    ruleId: rule.rule_id,
    origin: origin(rule.origin),
    listenAddr: rule.listen_addr,
    listenPort: rule.listen_port,
    transportProfile: profile(rule.transport_profile),
    reality: realityInbound(rule.reality, open),
    maxStreamsPerConnection: rule.max_streams_per_connection,
    outbound: outbound(rule.outbound),
    upstreamTlsSpkiPinsSha256: rule.upstream_tls_spki_pins_sha256,
  };
}

function httpProxyRule(rule: compiled.HttpProxyRule): HttpProxyRule {
  return {
    ruleId: rule.rule_id,
    origin: origin(rule.origin),
    listenAddr: rule.listen_addr,
    listenPort: rule.listen_port,
    host: rule.host,
    pathPrefix: rule.path_prefix,
    upstreamCluster: rule.upstream_cluster,
  };
}

function l3TunnelRule(rule: compiled.L3TunnelRule, open: SecretOpener): L3TunnelRule {
  return {
    ruleId: rule.rule_id,
    origin: origin(rule.origin),
    networkId: rule.network_id,
    networkName: rule.network_name,
    // A disabled network is in no snapshot.
    enabled: true,
    localEndpoint: rule.local_endpoint,
    peerEndpoint: rule.peer_endpoint,
    routes: rule.routes,
    allowedSources: rule.allowed_sources,
    tun: tunConfig(rule.tun),
    realityInbound: realityInbound(rule.reality_inbound, open),
    realityOutbound: realityOutbound(rule.reality_outbound),
    datagramContextId: rule.datagram_context_id,
    role: L3Role[rule.role],
    transportProfile: profile(rule.transport_profile),
  };
}

function tunConfig(value: compiled.TunConfig): TunConfig {
  return {
    interfaceName: value.interface_name,
    addressFamily: AddressFamily[value.address_family],
    prefixes: value.prefixes,
    mtu: value.mtu,
    features: value.features,
  };
}

function tlsCertificate(value: compiled.TlsCertificate, open: SecretOpener): TlsCertificate {
  return {
    credentialId: value.credential_id,
    certificatePem: value.certificate_pem,
    privateKeyPem: secretBytes(value.private_key_pem, open).toString('utf8'),
    serverNames: value.server_names,
  };
}

function listenerPolicy(value: compiled.ListenerPolicy): ListenerPolicy {
  return {
    transport: value.transport,
    listenAddr: value.listen_addr,
    listenPort: value.listen_port,
    priorityOrder: value.priority_order,
  };
}

function realityInbound(value: compiled.RealityInbound | null, open: SecretOpener): RealityInbound | undefined {
  if (value === null) return undefined;
  return {
    privateKey: secretBytes(value.private_key, open),
    serverNames: value.server_names,
    shortIds: value.short_ids,
    targetHost: value.target_host,
    targetPort: value.target_port,
  };
}

function realityOutbound(value: compiled.RealityOutbound | null): RealityOutbound | undefined {
  if (value === null) return undefined;
  return { publicKey: publicKey(value.public_key), serverName: value.server_name, shortId: value.short_id };
}

function publicKey(base64url: string | null): Buffer {
  return base64url === null ? noBytes : Buffer.from(base64url, 'base64url');
}

function secretBytes(placeholder: compiled.SecretPlaceholder, open: SecretOpener): Buffer {
  return Buffer.from(open(placeholder));
}

function origin(value: compiled.RuleOrigin): RuleOrigin {
  return {
    resourceType: value.resource_type,
    resourceId: value.resource_id,
    resourceName: value.resource_name,
    hopIndex: value.hop_index,
  };
}

function profile(value: compiled.TransportProfile): TransportProfile {
  return {
    payload: PayloadProtocol[value.payload],
    outer: OuterTransport[value.outer],
    security: SecurityLayer[value.security],
  };
}

function outbound(value: compiled.Outbound): Outbound {
  return {
    next:
      value.next.kind === 'upstream_cluster'
        ? { $case: 'upstreamCluster', value: value.next.name }
        : { $case: 'endpoint', value: value.next.endpoint },
    transportProfile: profile(value.transport_profile),
    reality: realityOutbound(value.reality),
    quicReality: realityOutbound(value.quic_reality),
    tls: value.tls,
    tlsServerName: value.tls_server_name,
    noisePublicKey: publicKey(value.noise_public_key),
  };
}
