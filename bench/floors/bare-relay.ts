/**
 * The floor of a relay: a pipe of `node:net`, or of `node:tls` on one side, from each port to the next hop, or datagrams
 * copied by a socket for each client. Nothing is counted, bounded or verified.
 */
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket as TcpSocket } from 'node:net';
import { pipeline } from 'node:stream';
import { connect as connectTls, createSecureContext, createServer as createTlsServer } from 'node:tls';
import { createSelfSigned } from '../../src/security/self-signed.js';
import { answerParent } from '../child.js';

export interface BareHop {
  /** TLS reaches the next hop with `to_tls`, and comes from the client with `from_tls`. */
  readonly transport: 'tcp' | 'to_tls' | 'from_tls' | 'udp';
  /** Of the next hop, on 127.0.0.1. */
  readonly next: number;
}

const idleMs = 60_000;

async function overTcp({ transport, next }: BareHop): Promise<number> {
  const to = { host: '127.0.0.1', port: next, allowHalfOpen: true, noDelay: true };
  const secureContext = createSecureContext();
  const relay = (client: TcpSocket): void => {
    const upstream =
      transport === 'to_tls' ? connectTls({ ...to, secureContext, rejectUnauthorized: false }) : connect(to);
    pipeline(client, upstream, () => undefined);
    pipeline(upstream, client, () => undefined);
  };
  const options = { allowHalfOpen: true, noDelay: true };
  const server =
    transport === 'from_tls'
      ? createTlsServer({ ...options, ...(await ofHop()) }, relay)
      : createServer(options, relay);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

async function ofHop(): Promise<{ readonly key: string; readonly cert: string }> {
  const { certificatePem, privateKeyPem } = await createSelfSigned({
    commonName: 'exit.internal',
    subjectAltNames: ['exit.internal'],
    notBefore: Date.now() - 60_000,
    notAfter: Date.now() + 3_600_000,
  });
  return { key: privateKeyPem, cert: certificatePem };
}

async function overUdp(next: number): Promise<number> {
  const listening = createSocket('udp4');
  const flows = new Map<string, Socket>();
  listening.on('message', (datagram, { address, port }) => {
    const key = `${address} ${port}`;
    const existing = flows.get(key);
    if (existing !== undefined) return existing.send(datagram);
    const socket = createSocket('udp4');
    flows.set(key, socket);
    socket.on('error', () => undefined);
    socket.on('message', (answer) => listening.send(answer, port, address));
    socket.connect(next, '127.0.0.1', () => socket.send(datagram));
    const end = setTimeout(() => {
      flows.delete(key);
      socket.close();
    }, idleMs);
    end.unref();
    return undefined;
  });
  listening.bind(0, '127.0.0.1');
  await once(listening, 'listening');
  return listening.address().port;
}

process.on('SIGUSR2', () => globalThis.gc?.());
answerParent({
  /** @returns the port */
  relay: (hop: BareHop): Promise<number> => (hop.transport === 'udp' ? overUdp(hop.next) : overTcp(hop)),
});
