/**
 * TLS with a client, terminated here, and with a next hop. A next hop is trusted by pins alone: the key of its leaf
 * certificate must be pinned, and the handshake proves that the peer has that key. Issuer, names and dates do not
 * matter, and there is no mode without pins.
 */
import { isIP, type Socket } from 'node:net';
import { TLSSocket, connect, createSecureContext, type SecureContext } from 'node:tls';
import { spkiPin } from '../../channel/tls/spki-pin.js';
import { reset } from '../../transport/listener/reality/splice.js';
import type { UpstreamTls } from '../plan/plan.js';
import { relayLimits } from './limits.js';
import { tlsSide, type Side } from './splice.js';
import { createTlsCarrier } from './tls-ends.js';

/**
 * @param socket whose first bytes are still unread
 * @returns undefined if the handshake failed or took too long; the connection is then closed
 */
export function acceptTls(socket: Socket, secureContext: SecureContext): Promise<Side | undefined> {
  return new Promise((resolve) => {
    if (socket.destroyed) return resolve(undefined);
    const carrier = createTlsCarrier(socket);
    const stream = new TLSSocket(carrier.stream, { isServer: true, secureContext });
    carrier.watch(stream);
    const timer = setTimeout(() => stream.destroy(), relayLimits.tlsHandshakeMs);
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

export type TlsOutcome =
  | { readonly kind: 'connected'; readonly side: Side }
  /** The peer's pin is not one of the rule's; undefined if the peer sent no readable certificate. */
  | { readonly kind: 'wrong_pin'; readonly pin: string | undefined }
  | { readonly kind: 'failed'; readonly reason: string };

let context: SecureContext | undefined;
/** Knows no authority, so that no certificate is trusted because of its issuer. */
const sharedContext = (): SecureContext => (context ??= createSecureContext({ ca: [], minVersion: 'TLSv1.2' }));

/** @param socket connected; it is closed unless the outcome is `connected` */
export function connectTls(socket: Socket, { serverName, pins }: UpstreamTls): Promise<TlsOutcome> {
  return new Promise((resolve) => {
    if (socket.destroyed) return resolve({ kind: 'failed', reason: 'the connection was lost' });
    const carrier = createTlsCarrier(socket);
    const stream = connect({
      socket: carrier.stream,
      secureContext: sharedContext(),
      // The pins decide.
      rejectUnauthorized: false,
      // RFC 6066 allows no addresses in SNI.
      ...(serverName === '' || isIP(serverName) !== 0 ? {} : { servername: serverName }),
    });
    carrier.watch(stream);
    let failure = 'the connection was closed during the handshake';
    const settle = (outcome: TlsOutcome): void => {
      clearTimeout(timer);
      stream.removeListener('close', onClose);
      if (outcome.kind !== 'connected') stream.destroy();
      resolve(outcome);
    };
    const onClose = (): void => settle({ kind: 'failed', reason: failure });
    const timer = setTimeout(
      () => settle({ kind: 'failed', reason: 'no handshake in time' }),
      relayLimits.tlsHandshakeMs,
    );
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
