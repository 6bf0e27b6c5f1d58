/**
 * Looks at the first bytes of a connection without consuming them: until there is a ClientHello, or the bytes cannot be
 * one, or the time is over. What was read is put back, so that whoever serves the connection reads it from its start.
 */
import type { Socket } from 'node:net';
import { readClientHello } from './client-hello.js';
import { tuning } from './tuning.js';

export interface Peeked {
  /** Undefined: no ClientHello, one without a name, or not a whole one in time. */
  readonly serverName: string | undefined;
  /** True if a whole ClientHello came, with or without a name. */
  readonly hello: boolean;
  /**
   * What the client sent if it has already ended its direction, in which case nothing can be put back. Undefined: the
   * bytes are in the socket again.
   */
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
    let needed = 1;

    const settle = (result: Peeked | undefined): void => {
      clearTimeout(timer);
      socket.removeListener('data', onData);
      socket.removeListener('end', onEnd);
      socket.removeListener('close', onClose);
      resolve(result);
    };
    const putBack = (hello: boolean, serverName: string | undefined): void => {
      socket.pause();
      if (length > 0) socket.unshift(Buffer.concat(chunks));
      settle({ hello, serverName, ended: undefined });
    };
    const onData = (chunk: Buffer): void => {
      chunks.push(chunk);
      length += chunk.length;
      if (length < needed) return;
      const bytes = Buffer.concat(chunks.splice(0));
      chunks.push(bytes);
      const first = readClientHello(bytes, tuning.clientHelloBytes);
      switch (first.kind) {
        case 'more':
          needed = first.total;
          return;
        case 'hello':
          return putBack(true, first.serverName);
        case 'other':
          return putBack(false, undefined);
        default:
          first satisfies never;
      }
    };
    const onEnd = (): void => settle({ hello: false, serverName: undefined, ended: Buffer.concat(chunks) });
    const onClose = (): void => settle(undefined);
    const timer = setTimeout(() => putBack(false, undefined), waitMs);

    if (socket.destroyed) return settle(undefined);
    socket.on('data', onData);
    socket.once('end', onEnd);
    socket.once('close', onClose);
    socket.resume();
  });
}
