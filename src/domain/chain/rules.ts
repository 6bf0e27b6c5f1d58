/**
 * The rule and the upstream cluster that a deployed chain adds to the snapshot of one of its nodes.
 * Implements `docs/contract/domain.md#l4-chain` and `docs/contract/wire.md#configuration`.
 */
import { dialEndpoint } from '../node/hops.js';
import type { FleetView } from '../resource/fleet-view.js';
import type { NodeRules, Outbound, TcpProxyRule, TransportProfile, UpstreamCluster } from '../snapshot/snapshot.js';
import { noRules } from '../snapshot/snapshot.js';
import type { UpstreamState } from '../upstream/upstream.js';
import { upstreamAt } from '../upstream/upstream.js';
import type { ChainState, DeployedDefinition, Hop, Payload } from './chain.js';
import { upstreamOf } from './chain.js';

const payloads = { tcp: 'TCP', udp: 'UDP' } as const;
const outers = { tcp: 'TCP', udp: 'UDP', quic: 'QUIC', fake_tcp: 'FAKE_TCP' } as const;
const securities = { raw: 'RAW', tls: 'TLS', reality: 'REALITY', noise: 'NOISE' } as const;

function hopProfile(payload: Payload, hop: Hop): TransportProfile {
  return { payload: payloads[payload], outer: outers[hop.outer], security: securities[hop.security] };
}

/**
 * What a chain adds to a node's snapshot: nothing unless it is enabled, deployed and has a hop there, and nothing while no
 * address of the next hop is known. A rule without a next hop would have the agent reject the snapshot and go on with its
 * last one.
 */
export function chainRulesOn(fleet: FleetView, chain: ChainState, nodeId: string): NodeRules {
  const { deployed } = chain;
  if (!chain.enabled || deployed === null) return noRules;
  const index = deployed.hops.findIndex((hop) => hop.node_id === nodeId);
  const hop = deployed.hops[index];
  if (hop === undefined) return noRules;
  const next = deployed.hops[index + 1];
  if (next !== undefined && dialEndpoint(fleet, next) === '') return noRules;
  const upstream = next === undefined ? upstreamAt(fleet, upstreamOf(deployed)) : undefined;
  const { outbound, pins } = next === undefined ? toTarget(deployed, upstream) : toHop(fleet, deployed.payload, next);
  const base = {
    rule_id: `${chain.id}/${index}`,
    origin: { resource_type: 'l4_chain', resource_id: chain.id, resource_name: chain.name, hop_index: index },
    listen_addr: hop.listen_addr,
    listen_port: hop.listen_port,
    transport_profile: hopProfile(deployed.payload, hop),
    outbound,
  } as const;
  const clusters = upstream === undefined ? [] : [clusterOf(upstream)];
  if (deployed.payload === 'udp') {
    return { udp: [{ ...base, mode: 'RAW', noise_private_key: null, noise_public_key: null }], clusters };
  }
  const rule: TcpProxyRule = {
    ...base,
    mode: 'RAW',
    server_names: hop.server_names ?? [],
    reality: null,
    tls_credential_id: '',
    upstream_tls_spki_pins_sha256: pins,
  };
  return { tcp: [rule], clusters };
}

interface Dialled {
  readonly outbound: Outbound;
  readonly pins: readonly string[];
}

function toHop(fleet: FleetView, payload: Payload, next: Hop): Dialled {
  const outbound: Outbound = {
    next: { kind: 'endpoint', endpoint: dialEndpoint(fleet, next) },
    transport_profile: hopProfile(payload, next),
    reality: null,
    quic_reality: null,
    tls: false,
    tls_server_name: '',
    noise_public_key: null,
  };
  return { outbound, pins: [] };
}

/** The last hop's outbound: outer is the payload's own transport, security is tls when the target has it, else raw. */
function toTarget({ target, payload }: DeployedDefinition, upstream: UpstreamState | undefined): Dialled {
  const tls = 'endpoint' in target ? target.tls : (upstream?.tls ?? undefined);
  const outbound: Outbound = {
    next:
      'endpoint' in target
        ? { kind: 'endpoint', endpoint: target.endpoint }
        : { kind: 'upstream_cluster', name: target.upstream_id },
    transport_profile: {
      payload: payloads[payload],
      outer: outers[payload],
      security: tls === undefined ? 'RAW' : 'TLS',
    },
    reality: null,
    quic_reality: null,
    tls: tls !== undefined,
    tls_server_name: tls?.server_name ?? '',
    noise_public_key: null,
  };
  return { outbound, pins: tls?.spki_pins_sha256 ?? [] };
}

function clusterOf(upstream: UpstreamState): UpstreamCluster {
  return {
    name: upstream.id,
    endpoints: [upstream.endpoint],
    server_names: upstream.server_names,
    enabled: upstream.enabled,
    health_check_interval_ms: upstream.health_check_interval_ms,
  };
}
