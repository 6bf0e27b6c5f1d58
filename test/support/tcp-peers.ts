/** TCP servers and clients around an agent's data plane for the tests of a file, which are closed after each of them. */
import { connect, type Socket } from 'node:net';
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
}

export function tcpPeers(): TcpPeers {
  const closers = closersAfterEach();
  return {
    closers,
    runtime: () => agentRuntime(closers),
    async server(onConnection) {
      const made = await tcpServer(onConnection);
      closers.push(() => made.close());
      return `127.0.0.1:${made.port}`;
    },
    client(port) {
      const socket = connect({ host: '127.0.0.1', port, allowHalfOpen: true });
      socket.on('error', () => undefined);
      closers.push(async () => void socket.destroy());
      return socket;
    },
  };
}

/** What a server does that sends its name to each client, then echoes. */
export const named = (name: string) => (socket: Socket) => {
  socket.write(name);
  socket.pipe(socket);
};
