/** The real agent listener with REALITY, before a target that is a TLS server of Node, and the agent's own client. */
import { once } from 'node:events';
import { connect, type AddressInfo, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { createServer, type Server, type TLSSocket, type TlsOptions } from 'node:tls';
import { buildBrowserHello } from '../../src/agent/reality/browser-hello.js';
import type { RealityAccess } from '../../src/channel/reality/endpoint.js';
import { openReality } from '../../src/agent/reality/handshake.js';
import type { Clock } from '../../src/kernel/clock.js';
import { generateX25519 } from '../../src/kernel/crypto/crypto.js';
import type { Result } from '../../src/kernel/result.js';
import { authKeyOf, sealClaim, shortIdFromHex } from '../../src/channel/reality/auth.js';
import { createSelfSigned } from '../../src/security/self-signed.js';
import { createClientShares } from '../../src/channel/tls/key-exchange.js';
import { uint, vector } from '../../src/channel/tls/vectors.js';
import type { AgentConnection } from '../../src/transport/listener/connection.js';
import type { SharedHellos } from '../../src/transport/listener/reality/reality.js';
import type { RealitySettings } from '../../src/transport/listener/reality/settings.js';
import { eventually } from './eventually.js';
import { startListenerFixture, type ListenerFixture } from './listener-fixture.js';

export const targetName = 'target.example';

export interface TlsTarget {
  readonly port: number;
  /** In PEM. */
  readonly certificate: string;
  /** How many connections were made so far. */
  readonly accepted: () => number;
  /** How many connections are open. */
  readonly open: () => number;
  close(): Promise<void>;
}

/** A TLS server with a certificate of its own that answers each chunk with `target: ` and the chunk. */
export async function startTlsTarget(options: TlsOptions = {}, atPort = 0): Promise<TlsTarget> {
  const now = Date.now();
  const { certificatePem, privateKeyPem } = await createSelfSigned({
    commonName: targetName,
    subjectAltNames: [targetName],
    notBefore: now - 86_400_000,
    notAfter: now + 86_400_000,
  });
  const sockets = new Set<Socket>();
  let accepted = 0;
  const server: Server = createServer({ cert: certificatePem, key: privateKeyPem, ...options }, (socket: TLSSocket) => {
    socket.on('error', () => undefined);
    socket.on('data', (bytes: Buffer) => socket.write(`target: ${bytes.toString('latin1')}`));
  });
  server.on('connection', (socket: Socket) => {
    accepted += 1;
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  server.on('tlsClientError', () => undefined);
  server.listen(atPort, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    certificate: certificatePem,
    accepted: () => accepted,
    open: () => sockets.size,
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

const shares = createClientShares();

export interface RealityFixture {
  readonly listener: ListenerFixture;
  readonly port: number;
  readonly access: RealityAccess;
  /** The handshake of the agent's own client. */
  open(access?: Partial<RealityAccess>): Promise<Result<Duplex, string>>;
  /** An agent's stream, and the connection that the listener has handed over for it. */
  agent(): Promise<{ readonly stream: Duplex; readonly connection: AgentConnection }>;
  /** The record with a new ClientHello of an agent. */
  hello(): Buffer;
  /** A TCP connection to the listener, or to another port. */
  dial(port?: number): Promise<Socket>;
  close(): Promise<void>;
}

export async function startRealityFixture(
  targetPort: number,
  settings: Partial<RealitySettings> = {},
  clock?: Clock,
  proxyFrom: readonly string[] = [],
  sharedHellos?: SharedHellos,
): Promise<RealityFixture> {
  const keys = settings.keys ?? generateX25519();
  const listener = await startListenerFixture({
    proxyFrom,
    reality: {
      keys,
      serverNames: [targetName],
      shortIds: ['0123ab', 'ff'],
      target: { host: '127.0.0.1', port: targetPort },
      maxTimeDiffMs: 60_000,
      allowH2c: false,
      probeMs: 200,
      ...settings,
    },
    ...(clock === undefined ? {} : { clock }),
    ...(sharedHellos === undefined ? {} : { sharedHellos }),
  });
  const port = Number(listener.listener.address.split(':')[1]);
  const access = { publicKey: Buffer.from(keys.publicKey), shortId: '0123ab', serverName: targetName };
  const sockets: Socket[] = [];
  const dial = async (to = port): Promise<Socket> => {
    const socket = connect({ host: '127.0.0.1', port: to, noDelay: true, allowHalfOpen: true });
    sockets.push(socket);
    socket.on('error', () => undefined);
    await once(socket, 'connect');
    return socket;
  };
  const open: RealityFixture['open'] = async (changed = {}) =>
    openReality(await dial(), { ...access, ...changed }, clock ?? listener.clock, 5_000);
  return {
    listener,
    port,
    access,
    open,
    async agent() {
      const before = listener.accepted.length;
      const opened = await open();
      if (!opened.ok) throw new Error(opened.error);
      await eventually(() => listener.accepted.length).toBeGreaterThan(before);
      const connection = listener.accepted[before];
      if (connection === undefined) throw new Error('no connection was handed over');
      return { stream: opened.value, connection };
    },
    hello() {
      const hello = buildBrowserHello(targetName, shares);
      const authKey = authKeyOf(shares.x25519, access.publicKey, hello.random);
      if (authKey === undefined) throw new Error('no key');
      const seconds = Math.floor((clock ?? listener.clock).now() / 1000);
      const claim = { version: [1, 0, 0], seconds, shortId: shortIdFromHex(access.shortId) } as const;
      hello.bytes.set(sealClaim(authKey, hello.random, hello.bytes, claim), hello.sessionIdAt);
      return Buffer.concat([uint(1, 22), uint(2, 0x0301), vector(2, hello.bytes)]);
    },
    dial,
    async close() {
      for (const socket of sockets) socket.destroy();
      await listener.close();
    },
  };
}
