/** Terminates TLS on a connection: the handshake as a server, within a time limit. */
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { SecureContext } from 'node:tls';
import { reset, tlsSide } from './side.js';
import type { Side } from './side.js';
import { tuning } from './tuning.js';

/**
 * @param socket whose first bytes are still to be read
 * @returns undefined if the handshake failed or took too long; the connection is then closed
 */
export function acceptTls(socket: Socket, secureContext: SecureContext): Promise<Side | undefined> {
  return new Promise((resolve) => {
    if (socket.destroyed) return resolve(undefined);
    const stream = new TLSSocket(socket, { isServer: true, secureContext });
    const timer = setTimeout(() => stream.destroy(), tuning.tlsHandshakeMs);
    const failed = (): void => {
      clearTimeout(timer);
      reset(socket);
      resolve(undefined);
    };
    // Never removed: an error without a listener would end the process.
    stream.on('error', () => undefined);
    stream.once('secure', () => {
      clearTimeout(timer);
      stream.removeListener('close', failed);
      stream.pause();
      resolve(tlsSide(stream, socket));
    });
    stream.once('close', failed);
  });
}
