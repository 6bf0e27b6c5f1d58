/**
 * Reads the server name (SNI) of a TLS connection without consuming its first bytes: until there is a ClientHello, the
 * bytes cannot become one, or time is up. Everything read is put back, so that the connection is served from its start.
 * Bounded, and accepts any bytes. `src/channel/tls/client-hello.ts` parses the message itself.
 */
import type { Socket } from 'node:net';
import { isServerName } from '../../channel/reality/text-forms.js';
import { readHelloFields } from '../../channel/tls/client-hello.js';
import { recordType } from '../../channel/tls/codes.js';
import { clientHelloMaxBytes, createHelloCollector } from '../../channel/tls/hello-collector.js';

export interface Peeked {
  /** Undefined unless a whole ClientHello with a name arrived in time. */
  readonly serverName: string | undefined;
  /** Bytes of a client that has already ended its direction: they cannot be put back. Undefined: they were. */
  readonly ended: Buffer | undefined;
}

/**
 * @param socket paused, and paused again afterwards
 * @param waitMs for the whole ClientHello
 * @returns undefined if the connection was lost
 */
export function peek(socket: Socket, waitMs: number): Promise<Peeked | undefined> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let length = 0;
    const collector = createHelloCollector(Infinity);

    const settle = (result: Peeked | undefined): void => {
      clearTimeout(timer);
      socket.removeListener('data', onData);
      socket.removeListener('end', onEnd);
      socket.removeListener('close', onClose);
      resolve(result);
    };
    const putBack = (serverName: string | undefined): void => {
      socket.pause();
      if (length > 0) socket.unshift(Buffer.concat(chunks));
      settle({ serverName, ended: undefined });
    };
    const onData = (chunk: Buffer): void => {
      // The first byte reveals another protocol, even if its client waits after a few.
      const hello = length === 0 && chunk[0] !== recordType.handshake ? 'other' : collector.push(chunk);
      chunks.push(chunk);
      length += chunk.length;
      if (hello === 'incomplete' && length <= clientHelloMaxBytes) return;
      putBack(typeof hello === 'string' ? undefined : serverNameIn(hello.message));
    };
    const onEnd = (): void => settle({ serverName: undefined, ended: Buffer.concat(chunks) });
    const onClose = (): void => settle(undefined);
    const timer = setTimeout(() => putBack(undefined), waitMs);

    if (socket.destroyed) return settle(undefined);
    socket.on('data', onData);
    socket.once('end', onEnd);
    socket.once('close', onClose);
    socket.resume();
  });
}

/**
 * @internal
 * @param message a ClientHello
 * @returns its server name in lower case, without a final dot; undefined also if the message is malformed
 */
export function serverNameIn(message: Buffer): string | undefined {
  const name = readHelloFields(message)?.serverName?.toLowerCase().replace(/\.$/, '');
  // An invalid name matches no rule, just like a missing name.
  return name !== undefined && isServerName(name) ? name : undefined;
}
