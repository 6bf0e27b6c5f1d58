/**
 * Tells a TLS connection that was cut from one that ended with close_notify. `node:tls` reports both as an end. So it
 * is never told that the socket has ended: any end that it still reports is a close_notify. Implements
 * `docs/data-plane.md#tls`.
 */
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import type { TLSSocket } from 'node:tls';

export interface TlsCarrier {
  /** What TLS runs on instead of the socket. */
  readonly stream: Duplex;
  /** Destroys the TLS connection with an error once everything received has been read, unless it has ended by then. */
  watch(tls: TLSSocket): void;
}

/** @param socket owned by the carrier from now on */
export function createTlsCarrier(socket: Socket): TlsCarrier {
  let watched: TLSSocket | undefined;
  let ended = false;

  const isRead = (tls: TLSSocket): boolean => stream.readableLength === 0 && tls.readableLength === 0;
  const check = (): void => {
    if (watched === undefined || !isRead(watched)) return;
    const tls = watched;
    // TLS reports an end that it has read a moment after the last byte.
    setImmediate(() => {
      if (isRead(tls) && !tls.readableEnded)
        tls.destroy(new Error('no close_notify came before the end of the connection'));
    });
  };

  const stream = new Duplex({
    allowHalfOpen: true,
    read() {
      if (ended) check();
      else socket.resume();
    },
    write(chunk: Buffer, _encoding, done) {
      socket.write(chunk, done);
    },
    // TLS writes several records at once: one system call sends them all.
    writev(chunks, done) {
      socket.cork();
      for (const [index, { chunk }] of chunks.entries()) {
        socket.write(chunk as Buffer, index === chunks.length - 1 ? done : undefined);
      }
      socket.uncork();
    },
    final(done) {
      socket.end(done);
    },
    destroy(error, done) {
      socket.destroy();
      done(error);
    },
  });
  socket.on('data', (chunk: Buffer) => {
    if (!stream.push(chunk)) socket.pause();
  });
  socket.on('end', () => {
    ended = true;
    watched?.on('data', check);
    check();
  });
  let why = 'the connection was closed';
  socket.on('error', (error) => (why = error.message));
  socket.on('close', () => {
    // When both directions have ended, what is unread can still be read.
    if (!ended || !socket.writableFinished) watched?.destroy(ended ? undefined : new Error(why));
  });
  return {
    stream,
    watch(tls) {
      watched = tls;
    },
  };
}
