/**
 * A node's newest snapshot as operators see it: proto3 JSON with the proto's field names and `"***"` for every secret.
 * The mapper is explicit, so that a new field appears only after somebody has decided whether it is secret.
 * Implements `docs/contract/rest.md#nodes`.
 */
import { compileNode } from '../domain/compile/compile-node.js';
import type { Fleet } from '../domain/fleet/fleet.js';
import type * as compiled from '../domain/snapshot/snapshot.js';
import { ServiceError } from '../kernel/errors.js';
import type { NewestSnapshots } from './newest.js';
import type { SnapshotJson } from './port.js';

const masked = '***';

export interface SnapshotJsonDeps {
  fleet(): Fleet;
  readonly newest: Pick<NewestSnapshots, 'stamp'>;
}

/** @returns a function that gives a node's snapshot JSON, or undefined for an unknown node; it throws ServiceError */
export function createSnapshotJson(deps: SnapshotJsonDeps): (nodeId: string) => Promise<SnapshotJson | undefined> {
  return async (nodeId) => {
    for (;;) {
      const newest = await deps.newest.stamp(nodeId);
      if (newest.kind === 'unknown_node') return undefined;
      if (newest.kind === 'withheld') {
        throw new ServiceError(
          'internal',
          'the configuration of this node cannot be compiled; the log of the service says why',
        );
      }
      const { generation, checksum } = newest.stamp;
      const fleet = deps.fleet();
      // A command came between: the fold is not the one that the checksum was computed from.
      if (fleet.generationOf(nodeId) !== generation) continue;
      const snapshot = snapshotToJson(compileNode(fleet, nodeId), Buffer.from(checksum, 'hex'));
      return { generation, checksum, snapshot };
    }
  };
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
      http_proxy_rules: [],
      quic_rules: [],
      udp_rules: snapshot.udp_rules.map(udpRule),
      listener_policies: [],
    },
    l3: { rules: [] },
    node: { multiplex: snapshot.node.multiplex, multiplex_port: snapshot.node.multiplex_port },
  };
}

function cluster(value: compiled.UpstreamCluster): object {
  return {
    name: value.name,
    endpoints: value.endpoints,
    server_names: value.server_names,
    enabled: value.enabled,
    health_check: { interval_ms: value.health_check_interval_ms, path: '' },
  };
}

function tcpProxyRule(rule: compiled.TcpProxyRule): object {
  return {
    ...ruleHead(rule),
    mode: `TCP_PROXY_MODE_${rule.mode}`,
    transport_profile: profile(rule.transport_profile),
    server_names: rule.server_names,
    tls_credential_id: '',
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
    noise_public_key: '',
    outbound: outbound(rule.outbound),
  };
}

function ruleHead(rule: compiled.TcpProxyRule | compiled.UdpRule): object {
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
    tls: value.tls,
    tls_server_name: value.tls_server_name,
    noise_public_key: '',
  };
}
