/** A TCP server as the target of REALITY, whose side of each connection the test holds. */
import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';

export interface PlainTarget {
  readonly port: number;
  /** Its side of every connection so far, in their order; each may be half-open. */
  readonly sockets: readonly Socket[];
  close(): Promise<void>;
}

/** @param serve is given each connection, which is not read before it says so */
export async function startPlainTarget(serve: (socket: Socket) => void = () => undefined): Promise<PlainTarget> {
  const sockets: Socket[] = [];
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.push(socket);
    socket.on('error', () => undefined);
    serve(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    sockets,
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
