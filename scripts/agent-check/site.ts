/** What the kit needs besides the session: an upstream that echoes, free ports, snapshots, traffic. */
import { randomBytes } from 'node:crypto';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { RuntimeConfigSnapshot } from '../../src/gen/svc/control/v1/config.js';
import { TcpProxyMode, type TcpProxyRule } from '../../src/gen/svc/control/v1/rules.js';
import { OuterTransport, PayloadProtocol, SecurityLayer } from '../../src/gen/svc/control/v1/transport.js';
import { freePorts } from '../stack/process.js';
import type { PlayedNode } from './node.js';

const loopback = '127.0.0.1';

export interface Site {
  /** The address of the upstream, which echoes. */
  readonly upstream: string;
  close(): Promise<void>;
}

/** The endpoint of a snapshot's rules. */
type NextHop = Pick<Site, 'upstream'>;

export async function openSite(): Promise<Site> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => sockets.delete(socket));
    socket.pipe(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, loopback, resolve));
  return {
    upstream: `${loopback}:${(server.address() as AddressInfo).port}`,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

/** A loopback port on which nothing listens. */
export const freePort = async (): Promise<number> => (await freePorts(1))[0] ?? 0;

export interface Content {
  /** Ports that relay raw TCP to the upstream. */
  readonly ports?: readonly number[];
  /** TLS rules, by port, with an invalid certificate: no agent can run them. */
  readonly broken?: readonly number[];
  readonly generation?: bigint;
}

/** The credential that broken rules name. */
const credential = '0b2f8a30-6d5e-4c1f-9a7b-3c4d5e6f7a8b';

/** A snapshot for a node, of a new generation unless one is given. */
export function makeSnapshot(node: PlayedNode, site: NextHop, content: Content = {}): RuntimeConfigSnapshot {
  const broken = content.broken ?? [];
  const raw = (content.ports ?? []).map((port) => rule(port, site));
  const tls = broken.map((port): TcpProxyRule => {
    const transportProfile = { ...tcp, security: SecurityLayer.TLS };
    return { ...rule(port, site), mode: TcpProxyMode.TLS, transportProfile, tlsCredentialId: credential };
  });
  const certificate = {
    credentialId: credential,
    certificatePem: 'no certificate',
    privateKeyPem: 'no key',
    serverNames: [],
  };
  return RuntimeConfigSnapshot.fromPartial({
    nodeId: node.nodeId,
    generation: content.generation ?? node.nextGeneration(),
    checksum: randomBytes(32),
    gateway: { tcpProxyRules: [...raw, ...tls], tls: { certificates: broken.length === 0 ? [] : [certificate] } },
    l3: { rules: [] },
    node: { multiplex: false, multiplexPort: 0 },
  });
}

const tcp = { payload: PayloadProtocol.TCP, outer: OuterTransport.TCP, security: SecurityLayer.RAW };

function rule(port: number, { upstream }: NextHop): TcpProxyRule {
  return {
    ruleId: `chain-${port}/1`,
    origin: { resourceType: 'l4_chain', resourceId: `chain-${port}`, resourceName: `Chain of ${port}`, hopIndex: 1 },
    listenAddr: loopback,
    listenPort: port,
    mode: TcpProxyMode.RAW,
    transportProfile: tcp,
    serverNames: [],
    reality: undefined,
    tlsCredentialId: '',
    outbound: {
      next: { $case: 'endpoint', value: upstream },
      transportProfile: tcp,
      reality: undefined,
      quicReality: undefined,
      tls: false,
      tlsServerName: '',
      noisePublicKey: Buffer.alloc(0),
    },
    upstreamTlsSpkiPinsSha256: [],
  };
}

/** A client of the agent. */
export interface Client {
  /** Whether sent bytes come back. */
  echoes(): Promise<boolean>;
  close(): void;
}

/** A byte comes back within this time, or never. */
const echoWithinMs = 5_000;

/** @returns a client whose connection was accepted, or undefined */
export async function openClient(port: number): Promise<Client | undefined> {
  const socket = connect({ host: loopback, port });
  socket.on('error', () => undefined);
  const isOpen = await new Promise<boolean>((resolve) => {
    socket.once('connect', () => resolve(true));
    socket.once('close', () => resolve(false));
    socket.setTimeout(echoWithinMs, () => resolve(false));
  });
  socket.setTimeout(0);
  if (!isOpen) {
    socket.destroy();
    return undefined;
  }
  return {
    echoes() {
      const token = randomBytes(16);
      let got = Buffer.alloc(0);
      return new Promise((resolve) => {
        const settle = (echoed: boolean): void => {
          clearTimeout(timer);
          socket.off('data', take);
          socket.off('close', lost);
          resolve(echoed);
        };
        const take = (data: Buffer): void => {
          got = Buffer.concat([got, data]);
          if (got.length >= token.length) settle(got.equals(token));
        };
        const lost = (): void => settle(false);
        const timer = setTimeout(() => settle(false), echoWithinMs);
        socket.on('data', take);
        socket.once('close', lost);
        if (socket.destroyed) return settle(false);
        socket.write(token);
      });
    },
    close: () => void socket.destroy(),
  };
}

/** Whether the agent relays a connection to a port. */
export async function relays(port: number): Promise<boolean> {
  const client = await openClient(port);
  const echoed = (await client?.echoes()) ?? false;
  client?.close();
  return echoed;
}
