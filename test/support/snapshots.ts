/** Snapshots as the service compiles them, and sockets for tests that apply them. */
import { createSocket } from 'node:dgram';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { freePorts } from '../../scripts/stack/process.js';
import type { RuntimeConfigSnapshot } from '../../src/gen/svc/control/v1/config.js';
import type { ListenerPolicy, UpstreamCluster } from '../../src/gen/svc/control/v1/gateway.js';
import {
  TcpProxyMode,
  UdpMode,
  type HttpProxyRule,
  type TcpProxyRule,
  type UdpRule,
} from '../../src/gen/svc/control/v1/rules.js';
import {
  OuterTransport,
  PayloadProtocol,
  SecurityLayer,
  type Outbound,
  type TransportProfile,
} from '../../src/gen/svc/control/v1/transport.js';
import type { X25519KeyPair } from '../../src/kernel/crypto/crypto.js';
import type { Certificate } from './certificate.js';

const none = Buffer.alloc(0);
const rawTcp = { payload: PayloadProtocol.TCP, outer: OuterTransport.TCP, security: SecurityLayer.RAW };
const rawUdp = { payload: PayloadProtocol.UDP, outer: OuterTransport.UDP, security: SecurityLayer.RAW };

/** @param next `cluster:<name>` or `host:port` */
function outbound(next: string, profile: TransportProfile): Outbound {
  return {
    next: next.startsWith('cluster:')
      ? { $case: 'upstreamCluster', value: next.slice('cluster:'.length) }
      : { $case: 'endpoint', value: next },
    transportProfile: profile,
    reality: undefined,
    quicReality: undefined,
    tls: false,
    tlsServerName: '',
    noisePublicKey: none,
  };
}

export function tcpRule(
  port: number,
  next: string,
  change: Partial<TcpProxyRule> = {},
  chain = `chain-${port}`,
): TcpProxyRule {
  return {
    ruleId: `${chain}/0`,
    origin: { resourceType: 'l4_chain', resourceId: chain, resourceName: `name of ${chain}`, hopIndex: 0 },
    listenAddr: '127.0.0.1',
    listenPort: port,
    mode: TcpProxyMode.RAW,
    transportProfile: rawTcp,
    serverNames: [],
    reality: undefined,
    tlsCredentialId: '',
    outbound: outbound(next, rawTcp),
    upstreamTlsSpkiPinsSha256: [],
    ...change,
  };
}

/** A rule that terminates TLS for names, with the certificate of a credential. */
export function tlsRule(
  port: number,
  next: string,
  names: readonly string[],
  credential: string,
  chain?: string,
): TcpProxyRule {
  const profile = { ...rawTcp, security: SecurityLayer.TLS };
  return tcpRule(
    port,
    next,
    { mode: TcpProxyMode.TLS, transportProfile: profile, serverNames: names, tlsCredentialId: credential },
    chain,
  );
}

/** What makes a TCP rule dial with TLS. */
export function overTls(next: string, pins: readonly string[], serverName = ''): Partial<TcpProxyRule> {
  const made = outbound(next, { ...rawTcp, security: SecurityLayer.TLS });
  return { outbound: { ...made, tls: true, tlsServerName: serverName }, upstreamTlsSpkiPinsSha256: pins };
}

export interface RealityOfHop {
  readonly keys: X25519KeyPair;
  readonly serverNames: readonly string[];
  /** On loopback. */
  readonly targetPort: number;
}

/** A rule that takes clients by REALITY, with the short id `0a`. */
export function realityRule(port: number, next: string, of: RealityOfHop, chain?: string): TcpProxyRule {
  const { keys, serverNames, targetPort } = of;
  const privateKey = Buffer.from(keys.privateKey);
  const reality = { privateKey, serverNames, shortIds: ['0a'], targetHost: '127.0.0.1', targetPort };
  const transportProfile = { ...rawTcp, security: SecurityLayer.REALITY };
  return tcpRule(port, next, { mode: TcpProxyMode.REALITY, transportProfile, serverNames, reality }, chain);
}

/** What makes a TCP rule dial with REALITY. */
export function overReality(next: string, publicKey: Uint8Array, serverName: string): Pick<TcpProxyRule, 'outbound'> {
  const made = outbound(next, { ...rawTcp, security: SecurityLayer.REALITY });
  return { outbound: { ...made, reality: { publicKey: Buffer.from(publicKey), serverName, shortId: '0a' } } };
}

/** An HTTP rule of the only hop of a route; its cluster is named by the rule. */
export function httpRule(port: number, host: string, pathPrefix: string, route = `route-${port}`): HttpProxyRule {
  return {
    ruleId: `${route}/0`,
    origin: { resourceType: 'route', resourceId: route, resourceName: `name of ${route}`, hopIndex: 0 },
    listenAddr: '127.0.0.1',
    listenPort: port,
    host,
    pathPrefix,
    upstreamCluster: `${route}/0`,
  };
}

export function udpRule(port: number, next: string, change: Partial<UdpRule> = {}, chain = `udp-${port}`): UdpRule {
  return {
    ruleId: `${chain}/0`,
    origin: { resourceType: 'l4_chain', resourceId: chain, resourceName: `name of ${chain}`, hopIndex: 0 },
    listenAddr: '127.0.0.1',
    listenPort: port,
    mode: UdpMode.RAW,
    transportProfile: rawUdp,
    noisePrivateKey: none,
    noisePublicKey: none,
    outbound: outbound(next, rawUdp),
    ...change,
  };
}

/** A rule that takes ENC with these keys. */
export function encRule(port: number, keys: X25519KeyPair, next: string, chain?: string): UdpRule {
  const [noisePrivateKey, noisePublicKey] = [Buffer.from(keys.privateKey), Buffer.from(keys.publicKey)];
  const transportProfile = { ...rawUdp, security: SecurityLayer.NOISE };
  return udpRule(port, next, { mode: UdpMode.ENC, transportProfile, noisePrivateKey, noisePublicKey }, chain);
}

/** What makes a UDP rule dial with ENC. */
export function overEnc(next: string, publicKey: Uint8Array): Pick<UdpRule, 'outbound'> {
  const made = outbound(next, { ...rawUdp, security: SecurityLayer.NOISE });
  return { outbound: { ...made, noisePublicKey: Buffer.from(publicKey) } };
}

export function cluster(name: string, endpoints: readonly string[], enabled = true): UpstreamCluster {
  return { name, endpoints, serverNames: [], enabled, healthCheck: undefined };
}

export function snapshot(
  generation: number,
  parts: {
    tcp?: readonly TcpProxyRule[];
    udp?: readonly UdpRule[];
    http?: readonly HttpProxyRule[];
    clusters?: readonly UpstreamCluster[];
    /** By credential id. */
    certificates?: Readonly<Record<string, Certificate>>;
    policies?: readonly ListenerPolicy[];
  } = {},
): RuntimeConfigSnapshot {
  return {
    nodeId: 'node-1',
    generation: BigInt(generation),
    checksum: Buffer.alloc(32, generation % 256),
    gateway: {
      upstreamClusters: parts.clusters ?? [],
      tcpProxyRules: parts.tcp ?? [],
      httpProxyRules: parts.http ?? [],
      tls: {
        certificates: Object.entries(parts.certificates ?? {}).map(([credentialId, { cert, key }]) => ({
          credentialId,
          certificatePem: cert,
          privateKeyPem: key,
          serverNames: [],
        })),
      },
      quicRules: [],
      udpRules: parts.udp ?? [],
      listenerPolicies: parts.policies ?? [],
    },
    l3: { rules: [] },
    node: { multiplex: false, multiplexPort: 0 },
  };
}

interface TestServer {
  readonly port: number;
  close(): Promise<void>;
}

/** A TCP server on a free loopback port. Closing it closes its connections. */
export async function tcpServer(
  onConnection: (socket: Socket) => void,
): Promise<TestServer & { readonly server: Server }> {
  const sockets = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => sockets.delete(socket));
    onConnection(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    server,
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}

/** A UDP server that echoes each datagram with `tag:` before it. */
export async function udpEcho(tag: string): Promise<TestServer> {
  const socket = createSocket('udp4');
  socket.on('message', (datagram, from) => socket.send(`${tag}:${datagram.toString()}`, from.port, from.address));
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve));
  return { port: socket.address().port, close: () => new Promise((resolve) => socket.close(() => resolve())) };
}

/** A loopback port on which nothing listens at the moment, for TCP or UDP. */
export async function freePort(): Promise<number> {
  const [port = 0] = await freePorts(1);
  return port;
}
