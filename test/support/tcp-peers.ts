/** TCP servers and clients around an agent's data plane for the tests of a file, which are closed after each of them. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { Worker } from 'node:worker_threads';
import { agentRuntime } from './agent-runtime.js';
import type { Gateway } from '../../src/agent/gateway.js';
import { closersAfterEach } from './closers.js';
import { tcpServer } from './snapshots.js';

interface TcpPeers {
  /** What else to close after the test, the newest first. */
  readonly closers: (() => Promise<unknown>)[];
  runtime(): Gateway;
  /** @returns its endpoint */
  server(onConnection: (socket: Socket) => void): Promise<string>;
  client(port: number): Socket;
  /** A server that takes no connection before it is opened: meanwhile its kernel drops what comes. It echoes. */
  fullServer(): Promise<{ readonly port: number; open(): void }>;
}

const full = `
  const { parentPort, workerData } = require('node:worker_threads');
  const server = require('node:net').createServer((socket) => {
    socket.on('error', () => undefined);
    socket.pipe(socket);
  });
  server.listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
    parentPort.postMessage(server.address().port);
    setImmediate(() => Atomics.wait(workerData, 0, 0));
  });`;

export function tcpPeers(): TcpPeers {
  const closers = closersAfterEach();
  const client = (port: number): Socket => {
    const socket = connect({ host: '127.0.0.1', port, allowHalfOpen: true });
    socket.on('error', () => undefined);
    closers.push(async () => void socket.destroy());
    return socket;
  };
  return {
    closers,
    client,
    runtime: () => agentRuntime(closers),
    async server(onConnection) {
      const made = await tcpServer(onConnection);
      closers.push(() => made.close());
      return `127.0.0.1:${made.port}`;
    },
    async fullServer() {
      const workerData = new Int32Array(new SharedArrayBuffer(4));
      const worker = new Worker(full, { eval: true, workerData });
      closers.push(async () => void (await worker.terminate()));
      const [port] = (await once(worker, 'message')) as [number];
      for (let fill = 0; fill < 8; fill += 1) client(port);
      return {
        port,
        open() {
          Atomics.store(workerData, 0, 1);
          Atomics.notify(workerData, 0);
        },
      };
    },
  };
}

/** What a server does that sends its name to each client, then echoes. */
export const named = (name: string) => (socket: Socket) => {
  socket.write(name);
  socket.pipe(socket);
};
