/** A compiled snapshot with every kind of rule, each with and without what it may lack, and its parts. */
import type { NodeSnapshot, Outbound, RealityInbound, RuleOrigin } from '../../src/domain/snapshot/snapshot.js';
import * as f from './fleet.js';

export const secret = { secret: f.sealed, stream: 'svc-fleet', resource_id: 'c', field: 'private_key' };
/** The opener of a snapshot that must have no secret. */
export const noSecrets = (): never => {
  throw new Error('a snapshot without secrets asks for one');
};
export const publicKey = Buffer.alloc(32, 0xfb);
const origin: RuleOrigin = { resource_type: 'l4_chain', resource_id: 'chain', resource_name: 'Edge', hop_index: 1 };
export const head = { rule_id: 'chain/1', origin, listen_addr: '0.0.0.0', listen_port: 443 };
export const reality: RealityInbound = {
  private_key: secret,
  server_names: ['a.example'],
  short_ids: ['0123'],
  target_host: 'target.example',
  target_port: 8443,
};
export const dialled = { public_key: publicKey.toString('base64url'), server_name: 'b.example', short_id: '4567' };
const plain: Outbound = {
  next: { kind: 'endpoint', endpoint: '192.0.2.1:53' },
  transport_profile: { payload: 'UDP', outer: 'UDP', security: 'NOISE' },
  reality: null,
  quic_reality: null,
  noise_public_key: publicKey.toString('base64url'),
  tls: false,
  tls_server_name: '',
};
const covered: Outbound = {
  ...plain,
  next: { kind: 'upstream_cluster', name: 'up' },
  reality: dialled,
  quic_reality: { ...dialled, short_id: '89' },
  noise_public_key: null,
  tls: true,
  tls_server_name: 'c.example',
};
export const empty: NodeSnapshot = {
  node_id: 'n',
  generation: 7,
  upstream_clusters: [],
  tcp_proxy_rules: [],
  http_proxy_rules: [],
  tls_certificates: [],
  quic_rules: [],
  udp_rules: [],
  listener_policies: [],
  l3_rules: [],
  node: { multiplex: false, multiplex_port: 0 },
};
export const cluster = { name: 'up', endpoints: ['192.0.2.1:80'], server_names: ['a.example'], enabled: true };
const tcp = { payload: 'TCP', outer: 'TCP', security: 'REALITY' } as const;
const quic = { payload: 'TCP', outer: 'QUIC', security: 'REALITY' } as const;
const udp = { payload: 'UDP', outer: 'UDP', security: 'NOISE' } as const;
const ip = { payload: 'IP', outer: 'QUIC', security: 'REALITY' } as const;
export const tunnel = {
  rule_id: 'net/1',
  origin: { ...origin, resource_type: 'l3_network' } as const,
  network_id: 'net',
  network_name: 'Net',
  local_endpoint: '0.0.0.0:9',
  peer_endpoint: '192.0.2.9:9',
  routes: ['10.2.0.0/16'],
  allowed_sources: ['10.1.0.0/16'],
  tun: { interface_name: 'svc0', address_family: 'IPV4', prefixes: ['10.1.0.1/32'], mtu: 1300, features: ['x'] },
  datagram_context_id: 3,
  transport_profile: ip,
} as const;
export const policy = {
  transport: 'tcp',
  listen_addr: '::',
  listen_port: 443,
  priority_order: ['tls', 'raw'],
} as const;

export const whole: NodeSnapshot = {
  ...empty,
  upstream_clusters: [
    { ...cluster, health_check_interval_ms: 10_000 },
    { ...cluster, health_check_interval_ms: null },
  ],
  tcp_proxy_rules: [
    {
      ...head,
      mode: 'REALITY',
      transport_profile: tcp,
      server_names: ['a.example'],
      reality,
      tls_credential_id: '',
      outbound: covered,
      upstream_tls_spki_pins_sha256: ['AAAA'],
    },
    {
      ...head,
      mode: 'TLS',
      transport_profile: { ...tcp, security: 'TLS' },
      server_names: [],
      reality: null,
      tls_credential_id: 'cert',
      outbound: plain,
      upstream_tls_spki_pins_sha256: [],
    },
  ],
  http_proxy_rules: [{ ...head, host: 'h.example', path_prefix: '/', upstream_cluster: 'up' }],
  tls_certificates: [
    { credential_id: 'cert', certificate_pem: 'PEM', private_key_pem: secret, server_names: ['a.example'] },
  ],
  quic_rules: [
    {
      ...head,
      transport_profile: quic,
      reality,
      max_streams_per_connection: 100,
      outbound: plain,
      upstream_tls_spki_pins_sha256: ['BBBB'],
    },
  ],
  udp_rules: [
    {
      ...head,
      mode: 'ENC',
      transport_profile: udp,
      noise_private_key: secret,
      noise_public_key: publicKey.toString('base64url'),
      outbound: plain,
    },
    {
      ...head,
      mode: 'RAW',
      transport_profile: { ...udp, security: 'RAW' },
      noise_private_key: null,
      noise_public_key: null,
      outbound: plain,
    },
  ],
  listener_policies: [policy],
  l3_rules: [
    { ...tunnel, role: 'LISTENER', reality_inbound: reality, reality_outbound: null },
    { ...tunnel, role: 'CONNECTOR', reality_inbound: null, reality_outbound: dialled },
  ],
  node: { multiplex: true, multiplex_port: 4443 },
};
