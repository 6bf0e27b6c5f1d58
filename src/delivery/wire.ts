/**
 * A compiled snapshot as wire messages: names become enum numbers, placeholders become bytes. Written field by field,
 * so that a field added to one side only does not compile, or is seen in review. Implements
 * `docs/contract/wire.md#configuration`.
 */
import type * as compiled from '../domain/snapshot/snapshot.js';
import type { GatewayConfig, L3TunnelConfig, NodeConfig, UpstreamCluster } from '../gen/svc/control/v1/gateway.js';
import { TcpProxyMode, UdpMode } from '../gen/svc/control/v1/rules.js';
import type { TcpProxyRule, UdpRule } from '../gen/svc/control/v1/rules.js';
import { OuterTransport, PayloadProtocol, SecurityLayer } from '../gen/svc/control/v1/transport.js';
import type { Outbound, RuleOrigin, TransportProfile } from '../gen/svc/control/v1/transport.js';
import type { OpenedSecrets } from './secrets.js';

const noBytes = Buffer.alloc(0);

/** The parts of a RuntimeConfigSnapshot that hold configuration. All three are always present. */
export interface WireParts {
  readonly gateway: GatewayConfig;
  readonly l3: L3TunnelConfig;
  readonly node: NodeConfig;
}

/** @throws Error when a secret of the snapshot is not in `secrets` */
export function wireParts(snapshot: compiled.NodeSnapshot, secrets: OpenedSecrets): WireParts {
  return {
    gateway: {
      upstreamClusters: snapshot.upstream_clusters.map(cluster),
      tcpProxyRules: snapshot.tcp_proxy_rules.map(tcpProxyRule),
      httpProxyRules: [],
      tls: undefined,
      quicRules: [],
      udpRules: snapshot.udp_rules.map((rule) => udpRule(rule, secrets)),
      listenerPolicies: [],
    },
    l3: { rules: [] },
    node: { multiplex: snapshot.node.multiplex, multiplexPort: snapshot.node.multiplex_port },
  };
}

function cluster(value: compiled.UpstreamCluster): UpstreamCluster {
  return {
    name: value.name,
    endpoints: value.endpoints,
    serverNames: value.server_names,
    enabled: value.enabled,
    healthCheck: { intervalMs: value.health_check_interval_ms, path: '' },
  };
}

function tcpProxyRule(rule: compiled.TcpProxyRule): TcpProxyRule {
  return {
    ruleId: rule.rule_id,
    origin: origin(rule.origin),
    listenAddr: rule.listen_addr,
    listenPort: rule.listen_port,
    mode: TcpProxyMode[rule.mode],
    transportProfile: profile(rule.transport_profile),
    serverNames: rule.server_names,
    reality: undefined,
    tlsCredentialId: '',
    outbound: outbound(rule.outbound),
    upstreamTlsSpkiPinsSha256: rule.upstream_tls_spki_pins_sha256,
  };
}

function udpRule(rule: compiled.UdpRule, secrets: OpenedSecrets): UdpRule {
  return {
    ruleId: rule.rule_id,
    origin: origin(rule.origin),
    listenAddr: rule.listen_addr,
    listenPort: rule.listen_port,
    mode: UdpMode[rule.mode],
    transportProfile: profile(rule.transport_profile),
    noisePrivateKey: secretBytes(rule.noise_private_key, secrets),
    noisePublicKey: noBytes,
    outbound: outbound(rule.outbound),
  };
}

function secretBytes(placeholder: compiled.SecretPlaceholder | null, secrets: OpenedSecrets): Buffer {
  if (placeholder === null) return noBytes;
  const bytes = secrets.get(placeholder);
  if (bytes === undefined)
    throw new Error(`the secret ${placeholder.field} of ${placeholder.resource_id} was not opened`);
  return Buffer.from(bytes);
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
    reality: undefined,
    quicReality: undefined,
    tls: value.tls,
    tlsServerName: value.tls_server_name,
    noisePublicKey: noBytes,
  };
}
