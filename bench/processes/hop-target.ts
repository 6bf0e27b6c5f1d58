/** Where chains lead: echoes over TCP and UDP, and a server of HTTP that sends as many bytes as it is asked for. */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { pipeline, Readable } from 'node:stream';
import { answerParent } from '../child.js';

export interface HopTargets {
  readonly tcp: number;
  readonly udp: number;
  readonly http: number;
}

const piece = Buffer.alloc(64 * 1024, 'x');

function* pieces(bytes: number): Generator<Buffer> {
  for (let sent = 0; sent < bytes; sent += piece.length) yield piece.subarray(0, bytes - sent);
}

async function listening(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

answerParent({
  async start(): Promise<HopTargets> {
    const tcp = createServer({ allowHalfOpen: true, noDelay: true }, (socket) =>
      pipeline(socket, socket, () => undefined),
    );
    const http = createHttpServer((request, response) => {
      pipeline(Readable.from(pieces(Number(request.url?.slice(1)))), response, () => undefined);
    });
    const udp = createSocket({ type: 'udp4', recvBufferSize: 4 * 1024 * 1024 });
    udp.on('message', (datagram, from) => udp.send(datagram, from.port, from.address));
    udp.bind(0, '127.0.0.1');
    await once(udp, 'listening');
    return { tcp: await listening(tcp), http: await listening(http), udp: udp.address().port };
  },
});
