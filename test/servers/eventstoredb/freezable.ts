/**
 * A connection that can be frozen with its server, as the operating system does it to a stopped process: it stays open,
 * takes bytes without reading them, and sends nothing until it is thawed. Only for a server that is told to use it:
 * HTTP/2 takes a bare socket away from JavaScript, which is faster.
 */
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';

export interface Freezer {
  /** The connection as the server sees it. */
  wrap(socket: Socket): Duplex;
  freeze(): void;
  thaw(): void;
}

export function createFreezer(): Freezer {
  let frozen = false;
  const sockets = new Set<Socket>();
  /** What the server does meanwhile. */
  const held: (() => void)[] = [];
  const whenThawed = (work: () => void): void => {
    if (frozen) held.push(work);
    else work();
  };
  return {
    wrap(socket) {
      sockets.add(socket);
      if (frozen) socket.pause();
      const seen = new Duplex({
        read: () => void (frozen || socket.resume()),
        write: (chunk: Buffer, _, done) => whenThawed(() => void socket.write(chunk, () => done())),
        final: (done) => whenThawed(() => void socket.end(() => done())),
        destroy(error, done) {
          whenThawed(() => socket.destroy());
          done(error);
        },
      });
      socket.on('data', (chunk: Buffer) => {
        if (!seen.push(chunk)) socket.pause();
      });
      socket.on('end', () => whenThawed(() => void seen.push(null)));
      socket.on('close', () => {
        sockets.delete(socket);
        whenThawed(() => void seen.destroy());
      });
      seen.on('error', () => undefined);
      return seen;
    },
    freeze() {
      frozen = true;
      for (const socket of sockets) socket.pause();
    },
    thaw() {
      frozen = false;
      for (const work of held.splice(0)) work();
      for (const socket of sockets) socket.resume();
    },
  };
}
