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
  };
}
