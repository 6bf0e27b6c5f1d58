/**
 * The agent listener: one TCP socket that the service owns. Accepts, sniffs, hands HTTP/2 with prior knowledge over and
 * closes everything else. Not gRPC: that is `transport/agent`. Implements `docs/contract/agent-protocol.md#the-listener`.
 */
import { createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { withDeadline } from '../../kernel/background.js';
import { errorText, unreachable } from '../../kernel/errors.js';
import { formatHostPort } from '../../kernel/host-port.js';
import { limits } from '../../kernel/limits.js';
import type { Logger } from '../../kernel/logger.js';
import { ownConnection } from './connection.js';
import type { OwnedConnection } from './connection.js';
import { sniff } from './sniff.js';
import type { Sniffed } from './sniff.js';

export interface ListenerOptions {
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
  readonly maxConnections: number;
  readonly logger: Logger;
  /** How long the preface may take, in milliseconds; 5 s when absent. */
  readonly sniffMs?: number;
}

export interface ListenerStats {
  /** Open now, those that are still sniffed included. */
  readonly connections: number;
  readonly accepted: number;
  /** Closed because they spoke something else. */
  readonly foreign: number;
  /** Closed because no full preface came in time. */
  readonly silent: number;
  /** Closed at once because `maxConnections` were open. */
  readonly dropped: number;
}

export interface Listener {
  /** `host:port`, IPv6 in brackets. */
  readonly address: string;
  stats(): ListenerStats;
  /** Takes no new connections; those that are open go on. */
  stop(): void;
  /** Stops, waits up to `graceMs` for connections to close by themselves, cuts the rest. */
  close(graceMs: number): Promise<void>;
}

/**
 * Starts to listen.
 * @param accept is given each connection that speaks h2c, with all its bytes unread; it must not throw
 * @throws the error of the operating system when the address can't be bound
 */
export async function startListener(
  options: ListenerOptions,
  accept: (connection: OwnedConnection) => void,
): Promise<Listener> {
  const { logger } = options;
  const sockets = new Set<Socket>();
  const counts = { accepted: 0, foreign: 0, silent: 0, dropped: 0 };
  let onEmpty: (() => void) | undefined;

  const settle = (sniffed: Sniffed, socket: Socket, id: number): void => {
    switch (sniffed) {
      case 'h2c':
        accept(ownConnection(id, socket));
        return;
      case 'foreign':
        counts.foreign += 1;
        socket.destroy();
        return;
      case 'silent':
        counts.silent += 1;
        socket.destroy();
        return;
      case 'gone':
        socket.destroy();
        return;
      default:
        unreachable(sniffed);
    }
  };

  const server = createServer({ noDelay: true, keepAlive: true }, (socket) => {
    counts.accepted += 1;
    sockets.add(socket);
    // A reset peer is an ordinary end; without a listener it would end the process.
    socket.on('error', (error) => logger.debug({ error: errorText(error) }, 'agent connection failed'));
    socket.once('close', () => {
      sockets.delete(socket);
      if (sockets.size === 0) onEmpty?.();
    });
    const id = counts.accepted;
    sniff(socket, options.sniffMs ?? limits.agent.sniffMs, (sniffed) => settle(sniffed, socket, id));
  });
  server.maxConnections = options.maxConnections;
  server.on('drop', () => {
    counts.dropped += 1;
  });

  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host: options.host, port: options.port, backlog: limits.agent.listenBacklog }, () => {
      server.off('error', reject);
      resolve();
    });
  });
  // For instance no file descriptor for the next connection: those that are open go on.
  server.on('error', (error) => logger.error({ error: errorText(error) }, 'the agent listener reports an error'));
  const bound = server.address() as AddressInfo;

  const stop = (): void => {
    if (server.listening) server.close();
  };
  return {
    address: formatHostPort({ host: bound.address, port: bound.port }),
    stats: () => ({ connections: sockets.size, ...counts }),
    stop,
    async close(graceMs) {
      stop();
      const empty = new Promise<void>((resolve) => {
        onEmpty = resolve;
        if (sockets.size === 0) resolve();
      });
      if (sockets.size > 0 && graceMs > 0) await withDeadline(empty, graceMs);
      for (const socket of sockets) socket.destroy();
      await empty;
    },
  };
}
