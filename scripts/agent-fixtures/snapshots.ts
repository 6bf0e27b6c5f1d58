/**
 * One snapshot for each kind of rule, as the service sends it (`docs/contract/wire.md#configuration`): for authors of
 * agents, as files in `examples/fixtures/snapshots/`, and for the conformance kit, which sends them to an agent.
 */
import { X509Certificate } from 'node:crypto';
import { spkiPin } from '../../src/channel/tls/spki-pin.js';
import { RuntimeConfigSnapshot } from '../../src/gen/svc/control/v1/config.js';
import type { UpstreamCluster } from '../../src/gen/svc/control/v1/gateway.js';
import {
  AddressFamily,
  L3Role,
  TcpProxyMode,
  UdpMode,
  type HttpProxyRule,
  type L3TunnelRule,
  type QuicRule,
  type TcpProxyRule,
  type UdpRule,
} from '../../src/gen/svc/control/v1/rules.js';
import {
  OuterTransport as Outer,
  PayloadProtocol as Payload,
  SecurityLayer as Security,
  type Outbound,
  type RealityInbound,
  type RuleOrigin,
  type TransportProfile,
} from '../../src/gen/svc/control/v1/transport.js';
import { sha256, x25519PairOf } from '../../src/kernel/crypto/crypto.js';
import { certificatePem, privateKeyPem } from './certificate.js';

/** The node and address that a snapshot is made for. */
export interface SnapshotPlace {
  readonly nodeId: string;
  readonly generation: bigint;
  /** The address of its listeners. */
  readonly address: string;
  readonly port: number;
}

export interface SnapshotFixture {
  readonly name: string;
  readonly about: string;
  snapshot(place: SnapshotPlace): RuntimeConfigSnapshot;
}

const credential = '0190b0c5-7d00-7000-8000-000000000c01';
const upstream = '0190b0c5-7d00-7000-8000-000000000a01';
const chain = '0190b0c5-7d00-7000-8000-000000000001';
const pin = spkiPin(new X509Certificate(certificatePem).raw) ?? '';
const none = Buffer.alloc(0);
const pair = x25519PairOf(Buffer.alloc(32, 0x42));
const peer = x25519PairOf(Buffer.alloc(32, 0x43));
const peerKey = Buffer.from(peer.publicKey);

const profile = (payload: Payload, outer: Outer, security: Security): TransportProfile => ({
  payload,
  outer,
  security,
});
const rawTcp = profile(Payload.TCP, Outer.TCP, Security.RAW);
const rawUdp = profile(Payload.UDP, Outer.UDP, Security.RAW);

const origin = (type = 'l4_chain', id = chain, hopIndex = 1): RuleOrigin => ({
  resourceType: type,
  resourceId: id,
  resourceName: 'Example',
  hopIndex,
});
const inbound: RealityInbound = {
  privateKey: Buffer.from(pair.privateKey),
  serverNames: ['www.example.com'],
  shortIds: ['0a1b2c3d'],
  targetHost: 'www.example.com',
  targetPort: 443,
};
const dialled = { publicKey: peerKey, serverName: 'www.example.com', shortId: '0a1b2c3d' };
const outbound = (change: Partial<Outbound> = {}): Outbound => ({
  next: { $case: 'endpoint', value: '192.0.2.10:8443' },
  transportProfile: rawTcp,
  reality: undefined,
  quicReality: undefined,
  tls: false,
  tlsServerName: '',
  noisePublicKey: none,
  ...change,
});
const toUpstream = outbound({ next: { $case: 'upstreamCluster', value: upstream } });
const cluster = (change: Partial<UpstreamCluster> = {}): UpstreamCluster => ({
  name: upstream,
  endpoints: ['192.0.2.20:443', '[2001:db8::20]:443'],
  serverNames: ['app.example'],
  enabled: true,
  healthCheck: { intervalMs: 10_000, path: '' },
  ...change,
});

interface Parts {
  readonly clusters?: readonly UpstreamCluster[];
  readonly tcp?: readonly Partial<TcpProxyRule>[];
  readonly http?: readonly Partial<HttpProxyRule>[];
  readonly udp?: readonly Partial<UdpRule>[];
  readonly quic?: readonly Partial<QuicRule>[];
  readonly l3?: readonly Partial<L3TunnelRule>[];
  readonly certificate?: boolean;
  readonly priority?: readonly string[];
  readonly multiplexPort?: number;
}

/** The checksum is opaque to agents; the service's is a hash of the encoded snapshot. */
function snapshotOf(place: SnapshotPlace, name: string, parts: Parts): RuntimeConfigSnapshot {
  const at = { listenAddr: place.address, listenPort: place.port };
  const rule = (number: number) => ({ ruleId: `${chain}/${number}`, origin: origin(), ...at });
  const certificate = {
    credentialId: credential,
    certificatePem,
    privateKeyPem,
    serverNames: ['edge.example', '*.edge.example'],
  };
  return RuntimeConfigSnapshot.fromPartial({
    nodeId: place.nodeId,
    generation: place.generation,
    checksum: Buffer.from(sha256(Buffer.from(`${name} ${place.generation}`))),
    gateway: {
      upstreamClusters: [...(parts.clusters ?? [])],
      tcpProxyRules: (parts.tcp ?? []).map((change, index) => ({
        ...rule(index + 1),
        mode: TcpProxyMode.RAW,
        transportProfile: rawTcp,
        outbound: outbound(),
        ...change,
      })),
      httpProxyRules: (parts.http ?? []).map((change, index) => {
        const id = `0190b0c5-7d00-7000-8000-00000000010${index}`;
        return { ...rule(1), ruleId: `${id}/0`, origin: origin('route', id, 0), upstreamCluster: `${id}/0`, ...change };
      }),
      tls: { certificates: parts.certificate === true ? [certificate] : [] },
      quicRules: (parts.quic ?? []).map((change) => ({
        ...rule(1),
        transportProfile: profile(Payload.TCP, Outer.QUIC, Security.REALITY),
        reality: inbound,
        maxStreamsPerConnection: 100,
        outbound: outbound(),
        ...change,
      })),
      udpRules: (parts.udp ?? []).map((change) => ({
        ...rule(1),
        mode: UdpMode.RAW,
        transportProfile: rawUdp,
        outbound: outbound({ transportProfile: rawUdp }),
        ...change,
      })),
      listenerPolicies:
        parts.priority === undefined ? [] : [{ transport: 'tcp', ...at, priorityOrder: parts.priority }],
    },
    l3: { rules: (parts.l3 ?? []).map((change) => ({ ...tunnel(place), ...change })) },
    node: { multiplex: parts.multiplexPort !== undefined, multiplexPort: parts.multiplexPort ?? 0 },
  });
}

const network = '7';
const tunnel = ({ address, port }: SnapshotPlace) => ({
  ruleId: `${network}/3/listener`,
  origin: origin('l3_network', network, 0),
  networkId: network,
  networkName: 'Example',
  enabled: true,
  localEndpoint: `${address}:${port}`,
  peerEndpoint: '192.0.2.30:4443',
  routes: ['10.2.0.0/16'],
  allowedSources: ['10.2.0.0/16'],
  tun: {
    interfaceName: 'svc7',
    addressFamily: AddressFamily.IPV4,
    prefixes: ['10.1.0.1/32'],
    mtu: 1_300,
    features: [],
  },
  realityInbound: inbound,
  datagramContextId: 3,
  role: L3Role.LISTENER,
  transportProfile: profile(Payload.IP, Outer.QUIC, Security.REALITY),
});

const fixture = (name: string, about: string, parts: Parts | ((place: SnapshotPlace) => Parts)): SnapshotFixture => ({
  name,
  about,
  snapshot: (place) => snapshotOf(place, name, typeof parts === 'function' ? parts(place) : parts),
});

const realityTcp = profile(Payload.TCP, Outer.TCP, Security.REALITY);
const noiseUdp = profile(Payload.UDP, Outer.UDP, Security.NOISE);
const noise = { noisePrivateKey: Buffer.from(pair.privateKey), noisePublicKey: Buffer.from(pair.publicKey) };
const terminates = {
  mode: TcpProxyMode.TLS,
  transportProfile: profile(Payload.TCP, Outer.TCP, Security.TLS),
  serverNames: ['edge.example', '*.edge.example'],
  tlsCredentialId: credential,
};
const takesReality = {
  mode: TcpProxyMode.REALITY,
  transportProfile: realityTcp,
  serverNames: inbound.serverNames,
  reality: inbound,
};
const overTls = outbound({
  transportProfile: profile(Payload.TCP, Outer.TCP, Security.TLS),
  tls: true,
  tlsServerName: 'edge.example',
});

export const snapshotFixtures: readonly SnapshotFixture[] = [
  fixture('empty', 'nothing: every listener closes', {}),
  fixture('tcp-raw', 'RAW TCP to an endpoint', { tcp: [{}] }),
  fixture('tcp-raw-to-upstream', 'RAW TCP to an upstream with two endpoints and a health check', {
    clusters: [cluster()],
    tcp: [{ outbound: toUpstream }],
  }),
  fixture('tcp-raw-to-disabled-upstream', 'the same, and the upstream takes no new connections', {
    clusters: [cluster({ enabled: false, healthCheck: undefined })],
    tcp: [{ outbound: toUpstream }],
  }),
  fixture(
    'tcp-server-names',
    'one socket: two rules chosen by server name, and one for the rest, which may not wait long',
    {
      tcp: [{ serverNames: ['a.example'] }, { serverNames: ['*.b.example', 'b.example'] }, {}],
      priority: ['raw', 'reality', 'tls', 'noise'],
    },
  ),
  fixture('tcp-tls', 'terminates TLS with a certificate', { tcp: [terminates], certificate: true }),
  fixture('tcp-to-tls', 'dials TLS, and accepts one pinned key alone', {
    tcp: [{ outbound: overTls, upstreamTlsSpkiPinsSha256: [pin] }],
  }),
  fixture('tcp-reality', 'terminates REALITY', { tcp: [takesReality] }),
  fixture('tcp-to-reality', 'dials REALITY over TCP', {
    tcp: [{ outbound: outbound({ transportProfile: realityTcp, reality: dialled }) }],
  }),
  fixture('tcp-to-quic', 'dials REALITY over QUIC', {
    tcp: [
      {
        outbound: outbound({
          transportProfile: profile(Payload.TCP, Outer.QUIC, Security.REALITY),
          quicReality: dialled,
        }),
      },
    ],
  }),
  fixture('tcp-shared', 'one socket: REALITY, TLS, a server name and RAW', {
    tcp: [takesReality, terminates, { serverNames: ['a.example'] }, {}],
    certificate: true,
  }),
  fixture('http', 'two routes on one socket: a host, and a longer path of it', {
    clusters: ['0190b0c5-7d00-7000-8000-000000000100/0', '0190b0c5-7d00-7000-8000-000000000101/0'].map((name) =>
      cluster({ name, endpoints: ['192.0.2.40:8080'], serverNames: [], healthCheck: undefined }),
    ),
    http: [
      { host: 'app.example', pathPrefix: '/' },
      { host: 'app.example', pathPrefix: '/api' },
    ],
  }),
  fixture('udp-raw', 'RAW UDP', { udp: [{}] }),
  fixture('udp-enc', 'takes ENC (Noise over UDP)', {
    udp: [{ mode: UdpMode.ENC, transportProfile: noiseUdp, ...noise }],
  }),
  fixture('udp-to-enc', 'dials ENC', {
    udp: [{ outbound: outbound({ transportProfile: noiseUdp, noisePublicKey: peerKey }) }],
  }),
  fixture('udp-fake-tcp', 'takes ENC inside FAKE_TCP', {
    udp: [{ mode: UdpMode.ENC, transportProfile: profile(Payload.UDP, Outer.FAKE_TCP, Security.NOISE), ...noise }],
  }),
  fixture('quic-streams', 'terminates QUIC REALITY; each stream is a TCP connection', { quic: [{}] }),
  fixture('quic-datagrams', 'terminates QUIC REALITY; UDP in DATAGRAM frames', {
    quic: [
      {
        transportProfile: profile(Payload.UDP, Outer.QUIC, Security.REALITY),
        outbound: outbound({ transportProfile: rawUdp }),
      },
    ],
  }),
  fixture('l3-listener', 'the waiting end of an L3 tunnel', { l3: [{}] }),
  fixture('l3-connector', 'the dialling end of an L3 tunnel', {
    l3: [
      {
        ruleId: `${network}/3/connector`,
        role: L3Role.CONNECTOR,
        localEndpoint: '',
        realityInbound: undefined,
        realityOutbound: dialled,
      },
    ],
  }),
  fixture('multiplex', 'RAW TCP on a node that multiplexes on the next port', ({ port }) => ({
    tcp: [{}],
    multiplexPort: port + 1,
  })),
];
