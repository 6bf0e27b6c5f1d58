/**
 * The rule that a deployed chain adds to the snapshot of one of its nodes, with the upstream cluster and the certificate
 * that it needs, and an upper bound of their size. The outbound leads to the next hop or to the chain's target. Implements
 * `docs/contract/domain.md#l4-chain`, `#scale-the-model-is-built-for` and `docs/contract/wire.md#configuration`.
 */
import { unreachable } from '../../kernel/errors.js';
import { limits } from '../../kernel/limits.js';
import { credentialKey } from '../credential/credential.js';
import { realityInbound, tlsCertificate, x25519Material, realityOutbound, spkiPins } from '../credential/material.js';
import type { FleetView } from '../resource/fleet-view.js';
import { listBound, ruleBytes, textBound } from '../snapshot/bound.js';
import {
  noRules,
  type NodeRules,
  type Outbound,
  type TcpProxyRule,
  type UpstreamCluster,
  type TransportProfile,
} from '../snapshot/snapshot.js';
import { upstreamKey, type UpstreamReality, type UpstreamState, type UpstreamTls } from '../upstream/upstream.js';
import { upstreamOf, type ChainState, type Hop, type ChainDefinition, type Payload } from './chain.js';
import { effectiveNames, firstExactName } from './names.js';
import { dialEndpoint } from '../node/hops.js';

const payloads = { tcp: 'TCP', udp: 'UDP' } as const;
const outers = { tcp: 'TCP', udp: 'UDP', quic: 'QUIC', fake_tcp: 'FAKE_TCP' } as const;
const securities = { raw: 'RAW', tls: 'TLS', reality: 'REALITY', noise: 'NOISE' } as const;

function hopProfile(payload: Payload, hop: Hop): TransportProfile {
  return { payload: payloads[payload], outer: outers[hop.outer], security: securities[hop.security] };
}

interface Dialled {
  readonly outbound: Outbound;
  /** The pins that the other side must match when it is dialled with TLS. */
  readonly pins: readonly string[];
}

const plain = { reality: null, quic_reality: null, tls: false, tls_server_name: '', noise_public_key: null } as const;

const noPins: readonly string[] = [];

/** Undefined while the address of the hop, its credential or its name is unknown. */
function outboundToHop(fleet: FleetView, payload: Payload, hop: Hop): Dialled | undefined {
  const endpoint = dialEndpoint(fleet, hop);
  if (endpoint === '') return undefined;
  const raw: Outbound = { next: { kind: 'endpoint', endpoint }, transport_profile: hopProfile(payload, hop), ...plain };
  switch (hop.security) {
    case 'raw':
      return { outbound: raw, pins: [] };
    case 'tls': {
      const [name, pins] = [firstExactName(effectiveNames(fleet, hop)), spkiPins(fleet, hop.credential_id)];
      if (name === undefined || pins.length === 0) return undefined;
      return { outbound: { ...raw, tls: true, tls_server_name: name }, pins };
    }
    case 'reality': {
      const name = firstExactName(effectiveNames(fleet, hop));
      const reality = name === undefined ? undefined : realityOutbound(fleet, hop.credential_id, name);
      if (reality === undefined) return undefined;
      return { outbound: hop.outer === 'quic' ? { ...raw, quic_reality: reality } : { ...raw, reality }, pins: [] };
    }
    case 'noise': {
      const keys = x25519Material(fleet, hop.credential_id);
      return keys === undefined ? undefined : { outbound: { ...raw, noise_public_key: keys.public_key }, pins: [] };
    }
    default:
      return unreachable(hop.security);
  }
}

/** How the last hop reaches the target: with its TLS or REALITY, else raw. */
function outboundToTarget({ target, payload }: ChainDefinition, upstream: UpstreamState | undefined): Dialled {
  const { tls, reality } = 'endpoint' in target ? target : (upstream ?? {});
  const raw: Outbound = {
    next:
      'endpoint' in target
        ? { kind: 'endpoint', endpoint: target.endpoint }
        : { kind: 'upstream_cluster', name: target.upstream_id },
    transport_profile: { payload: payloads[payload], outer: outers[reality?.outer ?? payload], security: 'RAW' },
    ...plain,
  };
  const secured = (security: 'TLS' | 'REALITY') => ({ ...raw.transport_profile, security });
  if (tls) {
    const outbound = { ...raw, transport_profile: secured('TLS'), tls: true, tls_server_name: tls.server_name };
    return { outbound, pins: tls.spki_pins_sha256 };
  }
  if (reality) {
    const { outer, ...server } = reality;
    const transport_profile = secured('REALITY');
    return {
      outbound: { ...raw, transport_profile, ...(outer === 'quic' ? { quic_reality: server } : { reality: server }) },
      pins: noPins,
    };
  }
  return { outbound: raw, pins: noPins };
}

/**
 * The rules of a chain in a node's snapshot. None while the address of the next hop is unknown, because the agent would
 * reject a snapshot with a rule that leads nowhere.
 */
export function chainRulesOn(fleet: FleetView, chain: ChainState, nodeId: string): NodeRules {
  const { deployed } = chain;
  if (!chain.enabled || deployed === null) return noRules;
  const index = deployed.hops.findIndex((hop) => hop.node_id === nodeId);
  const hop = deployed.hops[index];
  if (hop === undefined) return noRules;
  const next = deployed.hops[index + 1];
  const upstream = next === undefined ? fleet.get(upstreamKey, upstreamOf(deployed)) : undefined;
  const dialled =
    next === undefined ? outboundToTarget(deployed, upstream) : outboundToHop(fleet, deployed.payload, next);
  if (dialled === undefined) return noRules;
  const base = {
    rule_id: `${chain.id}/${index}`,
    origin: { resource_type: 'l4_chain', resource_id: chain.id, resource_name: chain.name, hop_index: index },
    listen_addr: hop.listen_addr,
    listen_port: hop.listen_port,
    transport_profile: hopProfile(deployed.payload, hop),
    outbound: dialled.outbound,
  } as const;
  const rules = ruleOf(fleet, hop, base, dialled.pins) ?? noRules;
  return upstream === undefined || rules === noRules ? rules : { ...rules, clusters: [clusterOf(upstream)] };
}

/** The fields of every rule of a chain. */
type RuleBase = Pick<
  TcpProxyRule,
  'rule_id' | 'origin' | 'listen_addr' | 'listen_port' | 'transport_profile' | 'outbound'
> & { readonly outbound: Outbound };

/** The rule of a hop by its row in the transport table; undefined while its credential is missing. */
function ruleOf(fleet: FleetView, hop: Hop, base: RuleBase, pins: readonly string[]): NodeRules | undefined {
  switch (hop.outer) {
    case 'tcp':
      return tcpRule(fleet, hop, base, pins);
    case 'quic': {
      const reality = realityInbound(fleet, hop.credential_id, effectiveNames(fleet, hop));
      if (reality === undefined) return undefined;
      const max_streams_per_connection = hop.max_streams ?? limits.fleet.maxStreams.default;
      const quic_rules = [{ ...base, reality, max_streams_per_connection, upstream_tls_spki_pins_sha256: pins }];
      return { quic_rules };
    }
    case 'udp':
    case 'fake_tcp':
      return udpRule(fleet, hop, base);
    default:
      return unreachable(hop.outer);
  }
}

function tcpRule(fleet: FleetView, hop: Hop, base: RuleBase, pins: readonly string[]): NodeRules | undefined {
  const server_names = effectiveNames(fleet, hop);
  switch (hop.security) {
    case 'tls': {
      const certificate = tlsCertificate(fleet, hop.credential_id);
      if (certificate === undefined) return undefined;
      const rule = proxyRule(base, server_names, pins, 'TLS', null, certificate.credential_id);
      return { tcp_proxy_rules: [rule], certificates: [certificate] };
    }
    case 'reality': {
      const reality = realityInbound(fleet, hop.credential_id, server_names);
      if (reality === undefined) return undefined;
      return { tcp_proxy_rules: [proxyRule(base, server_names, pins, 'REALITY', reality, '')] };
    }
    default:
      return { tcp_proxy_rules: [proxyRule(base, server_names, pins, 'RAW', null, '')] };
  }
}

/** Field by field, because this is by far the most frequent rule, and a spread takes ten times as long. */
function proxyRule(
  { rule_id, origin, listen_addr, listen_port, transport_profile, outbound }: RuleBase,
  server_names: readonly string[],
  pins: readonly string[],
  mode: TcpProxyRule['mode'],
  reality: TcpProxyRule['reality'],
  tls_credential_id: string,
): TcpProxyRule {
  return {
    rule_id,
    origin,
    listen_addr,
    listen_port,
    transport_profile,
    outbound,
    mode,
    server_names,
    reality,
    tls_credential_id,
    upstream_tls_spki_pins_sha256: pins,
  };
}

function udpRule(fleet: FleetView, hop: Hop, base: RuleBase): NodeRules | undefined {
  if (hop.security !== 'noise') {
    return { udp_rules: [{ ...base, mode: 'RAW', noise_private_key: null, noise_public_key: null }] };
  }
  const keys = x25519Material(fleet, hop.credential_id);
  if (keys === undefined) return undefined;
  const { private_key: noise_private_key, public_key: noise_public_key } = keys;
  return { udp_rules: [{ ...base, mode: 'ENC', noise_private_key, noise_public_key }] };
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

/** An upper bound of a chain's part of a snapshot, in bytes. */
export function rulesBound(fleet: FleetView, chain: ChainState, nodeId: string): number {
  const { deployed } = chain;
  if (!chain.enabled || deployed === null) return 0;
  const index = deployed.hops.findIndex((candidate) => candidate.node_id === nodeId);
  const upstream = fleet.get(upstreamKey, upstreamOf(deployed));
  const target = 'endpoint' in deployed.target ? deployed.target : undefined;
  return (
    ruleBytes +
    textBound(chain.name) +
    listeningBound(fleet, deployed.hops[index]) +
    diallingBound(fleet, deployed.hops[index + 1]) +
    listBound(upstream?.server_names) +
    tlsBound(upstream?.tls ?? target?.tls) +
    realityBound(upstream?.reality ?? target?.reality) +
    textBound(upstream?.endpoint) +
    textBound(target?.endpoint)
  );
}

/** Names (a REALITY rule has them twice, a TLS rule has those of its certificate too), short ids, certificate and key. */
function listeningBound(fleet: FleetView, hop: Hop | undefined): number {
  if (hop === undefined) return 0;
  const names = listBound(effectiveNames(fleet, hop));
  const credential = fleet.get(credentialKey, hop.credential_id);
  if (credential === undefined) return names;
  return (
    2 * names +
    listBound(credential.short_ids) +
    textBound(credential.target_host ?? '') +
    textBound(credential.certificate_pem ?? '') +
    listBound(credential.certificate?.subject_alt_names) +
    // Sealed values are longer than what they seal.
    textBound(credential.private_key?.ct)
  );
}

/** The name, key, pins and short id by which the next hop is dialled. */
function diallingBound(fleet: FleetView, next: Hop | undefined): number {
  if (next === undefined) return 0;
  const short = fleet.get(credentialKey, next.credential_id)?.short_ids[0];
  return textBound(firstExactName(effectiveNames(fleet, next))) + textBound(short) + textBound(next.dial_addr);
}

function tlsBound(tls: UpstreamTls | undefined): number {
  return textBound(tls?.server_name) + listBound(tls?.spki_pins_sha256);
}

function realityBound(reality: UpstreamReality | undefined): number {
  return textBound(reality?.server_name) + textBound(reality?.public_key) + textBound(reality?.short_id);
}
