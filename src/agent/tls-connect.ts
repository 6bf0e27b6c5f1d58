/**
 * TLS to a next hop. Trust comes from pins alone: the leaf certificate's key must be one of them, and the handshake
 * proves that the peer has that key. Issuer, names and dates are not looked at, and there is no mode without pins.
 */
import { isIP } from 'node:net';
import type { Socket } from 'node:net';
import { connect, createSecureContext } from 'node:tls';
import type { SecureContext } from 'node:tls';
import type { UpstreamTls } from './plan.js';
import { tlsSide } from './side.js';
import type { Side } from './side.js';
import { spkiPin } from '../channel/tls/spki-pin.js';
import { tuning } from './tuning.js';

export type TlsOutcome =
  | { readonly kind: 'connected'; readonly side: Side }
  /** The peer's pin is none of the rule's; undefined if it has sent no certificate that can be read. */
  | { readonly kind: 'wrong_pin'; readonly pin: string | undefined }
  | { readonly kind: 'failed'; readonly reason: string };

let context: SecureContext | undefined;
/** Without any authority: no certificate is trusted for who has issued it. */
const sharedContext = (): SecureContext => (context ??= createSecureContext({ ca: [], minVersion: 'TLSv1.2' }));

/** @param socket connected; it is closed unless the outcome is `connected` */
export function connectTls(socket: Socket, { serverName, pins }: UpstreamTls): Promise<TlsOutcome> {
  return new Promise((resolve) => {
    if (socket.destroyed) return resolve({ kind: 'failed', reason: 'the connection was lost' });
    const stream = connect({
      socket,
      secureContext: sharedContext(),
      // Replaced by the pins.
      rejectUnauthorized: false,
      // RFC 6066 allows no addresses here.
      ...(serverName === '' || isIP(serverName) !== 0 ? {} : { servername: serverName }),
    });
    let failure = 'the connection was closed during the handshake';
    const settle = (outcome: TlsOutcome): void => {
      clearTimeout(timer);
      stream.removeListener('close', onClose);
      if (outcome.kind !== 'connected') stream.destroy();
      resolve(outcome);
    };
    const onClose = (): void => settle({ kind: 'failed', reason: failure });
    const timer = setTimeout(() => settle({ kind: 'failed', reason: 'no handshake in time' }), tuning.tlsHandshakeMs);
    // Never removed: an error without a listener would end the process.
    stream.on('error', (error) => (failure = error.message));
    stream.once('close', onClose);
    stream.once('secureConnect', () => {
      stream.pause();
      const certificate = stream.getPeerX509Certificate();
      const pin = certificate && spkiPin(certificate.raw);
      if (pin !== undefined && pins.has(pin)) settle({ kind: 'connected', side: tlsSide(stream, socket) });
      else settle({ kind: 'wrong_pin', pin });
    });
  });
}
