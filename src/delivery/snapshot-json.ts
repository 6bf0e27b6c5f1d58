/**
 * A node's snapshot as operators see it: proto3 JSON with the proto's field names and `"***"` for every secret. Earlier ones
 * are compiled elsewhere (`src/projections/history/`).
 * The mapper is explicit, so that a new field appears only after somebody has decided whether it is secret.
 * Implements `docs/contract/rest.md#nodes`.
 */
import { compileNode } from '../domain/compile/compile-node.js';
import type { Fleet } from '../domain/fleet/fleet.js';
import type { NodeSnapshot } from '../domain/snapshot/snapshot.js';
import type * as compiled from '../domain/snapshot/snapshot.js';
import { ServiceError } from '../kernel/errors.js';
import type { CompilerCheck, NewestSnapshots } from './newest.js';
import { encodeSnapshot } from './encode.js';
import type { SnapshotJson } from './port.js';
import type { SecretOpener } from './secrets.js';
import { stampOf } from './target.js';

const masked = '***';

export interface SnapshotJsonDeps {
  fleet(): Fleet;
  readonly newest: Pick<NewestSnapshots, 'stamp'> & CompilerCheck;
  /** Compiles the snapshot at the newest generation not above one, secrets sealed; undefined when there is none. */
  compileEarlier(nodeId: string, generation: number): Promise<NodeSnapshot | undefined>;
  readonly openSecret: SecretOpener;
}

/**
 * @returns a function that gives a node's snapshot JSON, the newest or the one at the newest generation not above the given
 *   one; undefined for an unknown node and before its first generation; it throws ServiceError
 */
export function createSnapshotJson(
  deps: SnapshotJsonDeps,
): (nodeId: string, generation?: number) => Promise<SnapshotJson | undefined> {
  return async (nodeId, wanted = Number.POSITIVE_INFINITY) => {
    const now = deps.fleet().generationOf(nodeId);
    if (now !== undefined && wanted < now) {
      deps.newest.checkCompilerVersion();
      const snapshot = await deps.compileEarlier(nodeId, wanted);
      return snapshot === undefined ? undefined : earlierJson(snapshot, deps.openSecret);
    }
    const newest = deps.newest.stamp(nodeId);
    if (newest.kind === 'unknown_node') return undefined;
    if (newest.kind === 'withheld') {
      throw new ServiceError(
        'internal',
        'the configuration of this node cannot be compiled; the log of the service says why',
      );
    }
    const { generation, checksum } = newest.stamp;
    const snapshot = snapshotToJson(compileNode(deps.fleet(), nodeId), Buffer.from(checksum, 'hex'));
    return { generation, checksum, snapshot };
  };
}

/** The secrets of an earlier snapshot are opened only to compute the checksum of the bytes that an agent would get. */
function earlierJson(snapshot: NodeSnapshot, openSecret: SecretOpener): SnapshotJson {
  const push = encodeSnapshot(snapshot, openSecret);
  return { ...stampOf(push), snapshot: snapshotToJson(snapshot, push.checksum) };
}

/**
 * Scalars and lists are always present, even with their default; a message that is not set is left out.
 * @internal exported for tests
 */
export function snapshotToJson(snapshot: compiled.NodeSnapshot, checksum: Uint8Array): object {
  return {
    node_id: snapshot.node_id,
    // proto3 JSON: 64-bit integers are strings.
    generation: String(snapshot.generation),
    checksum: Buffer.from(checksum).toString('base64'),
    gateway: {
      upstream_clusters: snapshot.upstream_clusters.map(cluster),
      tcp_proxy_rules: snapshot.tcp_proxy_rules.map(tcpProxyRule),
      http_proxy_rules: snapshot.http_proxy_rules.map(httpProxyRule),
      ...(snapshot.tls_certificates.length === 0
        ? {}
        : { tls: { certificates: snapshot.tls_certificates.map(tlsCertificate) } }),
      quic_rules: snapshot.quic_rules.map(quicRule),
      udp_rules: snapshot.udp_rules.map(udpRule),
      listener_policies: snapshot.listener_policies.map((policy) => ({ ...policy })),
    },
    l3: { rules: snapshot.l3_rules.map(l3TunnelRule) },
    node: { multiplex: snapshot.node.multiplex, multiplex_port: snapshot.node.multiplex_port },
  };
}

function cluster(value: compiled.UpstreamCluster): object {
  return {
    name: value.name,
    endpoints: value.endpoints,
    server_names: value.server_names,
    enabled: value.enabled,
    ...(value.health_check_interval_ms === null
      ? {}
      : { health_check: { interval_ms: value.health_check_interval_ms, path: '' } }),
  };
}

function tcpProxyRule(rule: compiled.TcpProxyRule): object {
  return {
    ...ruleHead(rule),
    mode: `TCP_PROXY_MODE_${rule.mode}`,
    transport_profile: profile(rule.transport_profile),
    server_names: rule.server_names,
    ...(rule.reality === null ? {} : { reality: realityInbound(rule.reality) }),
    tls_credential_id: rule.tls_credential_id,
    outbound: outbound(rule.outbound),
    upstream_tls_spki_pins_sha256: rule.upstream_tls_spki_pins_sha256,
  };
}

function udpRule(rule: compiled.UdpRule): object {
  return {
    ...ruleHead(rule),
    mode: `UDP_MODE_${rule.mode}`,
    transport_profile: profile(rule.transport_profile),
    noise_private_key: rule.noise_private_key === null ? '' : masked,
    noise_public_key: bytes(rule.noise_public_key),
    outbound: outbound(rule.outbound),
  };
}

function quicRule(rule: compiled.QuicRule): object {
  return {
    ...ruleHead(rule),
    transport_profile: profile(rule.transport_profile),
    reality: realityInbound(rule.reality),
    max_streams_per_connection: rule.max_streams_per_connection,
    outbound: outbound(rule.outbound),
    upstream_tls_spki_pins_sha256: rule.upstream_tls_spki_pins_sha256,
  };
}

function httpProxyRule(rule: compiled.HttpProxyRule): object {
  const { host, path_prefix, upstream_cluster } = rule;
  return { ...ruleHead(rule), host, path_prefix, upstream_cluster };
}

function l3TunnelRule(rule: compiled.L3TunnelRule): object {
  return {
    rule_id: rule.rule_id,
    origin: { ...rule.origin },
    network_id: rule.network_id,
    network_name: rule.network_name,
    enabled: true,
    local_endpoint: rule.local_endpoint,
    peer_endpoint: rule.peer_endpoint,
    routes: rule.routes,
    allowed_sources: rule.allowed_sources,
    tun: { ...rule.tun, address_family: `ADDRESS_FAMILY_${rule.tun.address_family}` },
    ...(rule.reality_inbound === null ? {} : { reality_inbound: realityInbound(rule.reality_inbound) }),
    ...(rule.reality_outbound === null ? {} : { reality_outbound: realityOutbound(rule.reality_outbound) }),
    datagram_context_id: rule.datagram_context_id,
    role: `L3_ROLE_${rule.role}`,
    transport_profile: profile(rule.transport_profile),
  };
}

function tlsCertificate(value: compiled.TlsCertificate): object {
  const { credential_id, certificate_pem, server_names } = value;
  return { credential_id, certificate_pem, private_key_pem: masked, server_names };
}

function realityInbound(value: compiled.RealityInbound): object {
  const { server_names, short_ids, target_host, target_port } = value;
  return { private_key: masked, server_names, short_ids, target_host, target_port };
}

function realityOutbound({ public_key, server_name, short_id }: compiled.RealityOutbound): object {
  return { public_key: bytes(public_key), server_name, short_id };
}

/** proto3 JSON has bytes in base64. */
function bytes(base64url: string | null): string {
  return base64url === null ? '' : Buffer.from(base64url, 'base64url').toString('base64');
}

function ruleHead(rule: compiled.ListenerRule): object {
  return {
    rule_id: rule.rule_id,
    origin: { ...rule.origin },
    listen_addr: rule.listen_addr,
    listen_port: rule.listen_port,
  };
}

function profile(value: compiled.TransportProfile): object {
  return {
    payload: `PAYLOAD_PROTOCOL_${value.payload}`,
    outer: `OUTER_TRANSPORT_${value.outer}`,
    security: `SECURITY_LAYER_${value.security}`,
  };
}

function outbound(value: compiled.Outbound): object {
  return {
    ...(value.next.kind === 'upstream_cluster'
      ? { upstream_cluster: value.next.name }
      : { endpoint: value.next.endpoint }),
    transport_profile: profile(value.transport_profile),
    ...(value.reality === null ? {} : { reality: realityOutbound(value.reality) }),
    ...(value.quic_reality === null ? {} : { quic_reality: realityOutbound(value.quic_reality) }),
    tls: value.tls,
    tls_server_name: value.tls_server_name,
    noise_public_key: bytes(value.noise_public_key),
  };
}
