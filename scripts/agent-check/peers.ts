/** Both ends of the connections that an agent relays: a client of the kit and an upstream of the kit, with what each sees. */
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { sleep } from '../../src/kernel/background.js';

const loopback = '127.0.0.1';
const pollMs = 10;
/** Anything that an agent passes on arrives within this time, or never. */
export const arrivesWithinMs = 5_000;

/** One end of a connection. */
export interface Peer {
  readonly socket: Socket;
  readonly receivedBytes: number;
  /** `ended` after a FIN, `reset` after a reset. */
  readonly state: 'open' | 'ended' | 'reset';
}

/** @param socket whose bytes are counted and dropped */
function peerOf(socket: Socket): Peer {
  let receivedBytes = 0;
  let state: Peer['state'] = 'open';
  socket.on('data', (data: Buffer) => (receivedBytes += data.length));
  socket.on('end', () => (state = 'ended'));
  socket.on('error', () => (state = 'reset'));
  socket.resume();
  return {
    socket,
    get receivedBytes() {
      return receivedBytes;
    },
    get state() {
      return state;
    },
  };
}

/** Whether a condition holds within the time in which an agent passes things on. */
export async function holdsSoon(condition: () => boolean): Promise<boolean> {
  const until = performance.now() + arrivesWithinMs;
  while (!condition() && performance.now() < until) await sleep(pollMs);
  return condition();
}

export interface Upstream {
  /** For a rule's endpoint. */
  readonly address: string;
  /** A client's connection through the agent, and its other end; undefined if it does not arrive. */
  join(port: number): Promise<{ readonly client: Peer; readonly server: Peer } | undefined>;
  close(): void;
}

/** Opens an upstream for one scenario; one connection is joined at a time. */
export async function openUpstream(): Promise<Upstream> {
  const sockets = new Set<Socket>();
  const accepted: Socket[] = [];
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    accepted.push(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, loopback, resolve));
  return {
    address: `${loopback}:${(server.address() as AddressInfo).port}`,
    async join(port) {
      const client = connect({ host: loopback, port, allowHalfOpen: true, noDelay: true });
      sockets.add(client);
      const peer = peerOf(client);
      await holdsSoon(() => accepted.length > 0);
      const other = accepted.shift();
      return other && { client: peer, server: peerOf(other) };
    },
    close() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}
