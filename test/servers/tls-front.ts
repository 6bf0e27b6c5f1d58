/** Terminates TLS in front of a test server that speaks without it. */
import { connect, type AddressInfo, type Socket } from 'node:net';
import { createServer } from 'node:tls';
import type { Certificate } from '../support/certificate.js';

export interface TlsFront {
  readonly port: number;
  close(): Promise<void>;
}

/** @param port where the server listens on 127.0.0.1 */
export async function startTlsFront(port: number, certificate: Certificate): Promise<TlsFront> {
  const sockets = new Set<Socket>();
  const server = createServer({ ...certificate, ALPNProtocols: ['h2'] }, (secure) => {
    const plain = connect(port, '127.0.0.1');
    for (const socket of [secure, plain]) {
      sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        sockets.delete(socket);
        secure.destroy();
        plain.destroy();
      });
    }
    secure.pipe(plain).pipe(secure);
  });
  server.on('tlsClientError', () => undefined);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
