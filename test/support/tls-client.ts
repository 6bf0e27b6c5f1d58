/** A TLS client and a TLS server for tests, which trust nobody and say whom they met. */
import { createHash, X509Certificate } from 'node:crypto';
import { connect as connectTcp } from 'node:net';
import { connect, type TLSSocket } from 'node:tls';
import type { Certificate } from './certificate.js';

/** As in `upstream_tls_spki_pins_sha256`, by way of Node's own reading of the key. */
export function pinOf({ cert }: Certificate): string {
  const key = new X509Certificate(cert).publicKey.export({ type: 'spki', format: 'der' });
  return createHash('sha256').update(key).digest('base64');
}

/** Connects and waits for the handshake; rejects if there is none. */
export function tlsClient(port: number, servername: string): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const below = connectTcp({ host: '127.0.0.1', port, allowHalfOpen: true });
    const socket = connect({ socket: below, servername, rejectUnauthorized: false }, () => resolve(socket));
    socket.on('error', reject);
    socket.once('close', () => reject(new Error('closed')));
  });
}

/** The pin of the certificate that the server has shown. */
export function pinShown(socket: TLSSocket): string {
  const certificate = socket.getPeerX509Certificate();
  if (certificate === undefined) return 'none';
  return pinOf({ cert: certificate.toString(), key: '' });
}
