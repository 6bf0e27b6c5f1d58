/** The floor of a relay: a pipe of `node:net` from each port to the next hop, or datagrams copied by a socket for each client. Nothing is counted or bounded. */
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo } from 'node:net';
import { pipeline } from 'node:stream';
import { answerParent } from '../child.js';

export interface BareHop {
  readonly transport: 'tcp' | 'udp';
  /** Of the next hop, on 127.0.0.1. */
  readonly next: number;
}

const idleMs = 60_000;

async function overTcp(next: number): Promise<number> {
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    const upstream = connect({ host: '127.0.0.1', port: next, allowHalfOpen: true, noDelay: true });
    pipeline(client, upstream, () => undefined);
    pipeline(upstream, client, () => undefined);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
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
  relay: ({ transport, next }: BareHop): Promise<number> => (transport === 'tcp' ? overTcp(next) : overUdp(next)),
});
