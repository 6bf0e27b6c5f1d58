/** Destinations and clients over UDP for the tests of a file, which are closed after each of them. */
import { createSocket, type Socket } from 'node:dgram';
import { closersAfterEach } from './closers.js';
import { udpEcho } from './snapshots.js';

interface UdpPeers {
  /** What else to close after the test, the newest first. */
  readonly closers: (() => Promise<unknown>)[];
  /** A destination that answers with its tag before what was sent. @returns its endpoint */
  echo(tag: string): Promise<string>;
  client(): Socket;
  /**
   * Repeats the question until it is answered, because loopback UDP may drop datagrams.
   * @returns the answer, which ends with the question
   */
  ask(socket: Socket, port: number, text: string): Promise<string>;
}

export function udpPeers(): UdpPeers {
  const closers = closersAfterEach();
  return {
    closers,
    async echo(tag) {
      const destination = await udpEcho(tag);
      closers.push(() => destination.close());
      return `127.0.0.1:${destination.port}`;
    },
    client() {
      const socket = createSocket('udp4');
      closers.push(async () => void socket.close());
      return socket;
    },
    ask(socket, port, text) {
      return new Promise((resolve) => {
        const send = (): void => socket.send(Buffer.from(text, 'latin1'), port, '127.0.0.1');
        const again = setInterval(send, 200);
        closers.push(async () => clearInterval(again));
        const take = (bytes: Buffer): void => {
          const answer = bytes.toString('latin1');
          if (!answer.endsWith(text)) return;
          clearInterval(again);
          socket.off('message', take);
          resolve(answer);
        };
        socket.on('message', take);
        send();
      });
    },
  };
}
