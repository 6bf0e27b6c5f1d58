/** Clients of a chain whose target gives back what it gets: how many bytes they move, and how many of them there can be. */
import { createSocket, type Socket as UdpSocket } from 'node:dgram';
import { once } from 'node:events';
import { Agent, get, type IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';

export interface Clients {
  /** Moves this many MiB over one client. */
  move(mebibytes: number): Promise<void>;
  /** Comes as a new client, is served with a few bytes, and leaves. */
  visit(): Promise<void>;
  /** Comes as a new client and stays. @returns what ends it */
  stay(): Promise<() => void>;
}

const MiB = 1024 * 1024;
const host = '127.0.0.1';
const withinMs = 60_000;
const within = (): { readonly signal: AbortSignal } => ({ signal: AbortSignal.timeout(withinMs) });

async function opened(port: number): Promise<Socket> {
  const socket = connect({ host, port, allowHalfOpen: true, noDelay: true });
  socket.on('error', () => undefined);
  socket.write('x');
  await once(socket, 'data', within());
  return socket;
}

/** An echo over TCP, so each byte goes there and back. */
export function tcpClients(port: number): Clients {
  return {
    async move(mebibytes) {
      const socket = await opened(port);
      const piece = Buffer.alloc(64 * 1024, 'x');
      const wanted = mebibytes * MiB;
      let got = 0;
      const done = new Promise<void>((resolve, reject) => {
        socket.on('data', (bytes: Buffer) => {
          got += bytes.length;
          if (got === wanted) resolve();
        });
        socket.on('close', () => reject(new Error('the connection broke')));
      });
      for (let sent = 0; sent < wanted; sent += piece.length) if (!socket.write(piece)) await once(socket, 'drain');
      await done;
      socket.destroy();
    },
    async visit() {
      const socket = await opened(port);
      socket.end();
      socket.resume();
      await once(socket, 'close', within());
    },
    async stay() {
      const socket = await opened(port);
      return () => socket.destroy();
    },
  };
}

/** Answers of HTTP, whose bytes come one way. */
export function httpClients(port: number, hostName: string): Clients {
  const fetched = async (bytes: number, agent: Agent | false): Promise<void> => {
    const request = get({ host, port, path: `/${bytes}`, headers: { host: hostName }, agent });
    const [response] = (await once(request, 'response', within())) as [IncomingMessage];
    if (response.statusCode !== 200) throw new Error(`the answer is ${response.statusCode}`);
    response.resume();
    await once(response, 'end', within());
  };
  return {
    move: (mebibytes) => fetched(mebibytes * MiB, false),
    visit: () => fetched(1, false),
    async stay() {
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      await fetched(1, agent);
      return () => agent.destroy();
    },
  };
}

const datagramBytes = 1_200;
/** Datagrams that are under way at once. */
const windowOf = 32;
const lostAfterMs = 250;

async function asked(port: number): Promise<UdpSocket> {
  const socket = createSocket({ type: 'udp4', recvBufferSize: 4 * MiB });
  const again = setInterval(() => socket.send('x', port, host), lostAfterMs);
  socket.send('x', port, host);
  await once(socket, 'message', within());
  clearInterval(again);
  return socket;
}

/** An echo over UDP; lost datagrams are resent. */
export function udpClients(port: number): Clients {
  return {
    async move(mebibytes) {
      const socket = await asked(port);
      const datagram = Buffer.alloc(datagramBytes, 'y');
      const wanted = Math.ceil((mebibytes * MiB) / datagramBytes);
      let [got, underWay] = [0, 0];
      const fill = (): void => {
        for (; underWay < windowOf; underWay += 1) socket.send(datagram, port, host);
      };
      await new Promise<void>((resolve) => {
        let seen = 0;
        const lost = setInterval(() => {
          if (got === seen) underWay = 0;
          seen = got;
          fill();
        }, lostAfterMs);
        socket.on('message', () => {
          got += 1;
          underWay = Math.max(0, underWay - 1);
          if (got < wanted) return fill();
          clearInterval(lost);
          resolve();
        });
        fill();
      });
      socket.close();
    },
    async visit() {
      (await asked(port)).close();
    },
    async stay() {
      const socket = await asked(port);
      return () => socket.close();
    },
  };
}
