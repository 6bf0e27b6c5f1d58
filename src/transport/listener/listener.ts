/**
 * The agent listener, one TCP socket: accepts connections, reads their first bytes, hands over those that speak HTTP/2
 * with prior knowledge (h2c) and closes all others. Behind a TCP balancer, the client's address is the one that the balancer
 * names. Not gRPC: that is `transport/agent`.
 * Implements `docs/contract/agent-protocol.md#the-listener`.
 */
import { createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { plainIp } from '../../kernel/addresses.js';
import { withDeadline } from '../../kernel/background.js';
import { errorText, unreachable } from '../../kernel/errors.js';
import { formatHostPort } from '../../kernel/host-port.js';
import { limits } from '../../kernel/limits.js';
import type { Logger } from '../../kernel/logger.js';
import { addressRanges } from './address-ranges.js';
import { ownConnection } from './connection.js';
import type { OwnedConnection } from './connection.js';
import { sniff } from './sniff.js';
import type { Sniffed } from './sniff.js';

interface ListenerOptions {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  readonly maxConnections: number;
  /** CIDRs of TCP balancers: connections from there begin with a PROXY protocol header. Default: none. */
  readonly proxyFrom?: readonly string[];
  readonly logger: Logger;
  /** How long the first bytes may take, in milliseconds; default 5 s. */
  readonly sniffMs?: number;
}

interface ListenerStats {
  /** Open now, including those whose first bytes are still awaited. */
  readonly connections: number;
  readonly accepted: number;
  /** Closed because they spoke another protocol. */
  readonly foreign: number;
  /** Closed because a balancer sent no PROXY header, or a malformed one. */
  readonly unnamed: number;
  /** Closed because the full preface did not arrive in time. */
  readonly silent: number;
  /** Closed at once because `maxConnections` were open. */
  readonly dropped: number;
}

export interface Listener {
  /** `host:port`, IPv6 in brackets. */
  readonly address: string;
  stats(): ListenerStats;
  /** Accepts no new connections; the open ones stay. */
  stop(): void;
  /** Stops, waits up to `graceMs` for connections to close by themselves, then closes the rest. */
  close(graceMs: number): Promise<void>;
}

/**
 * Starts listening.
 * @param accept is given each connection that speaks h2c, with all its bytes unread; must not throw
 * @throws the error of the operating system if the address cannot be bound
 */
export async function startListener(
  options: ListenerOptions,
  accept: (connection: OwnedConnection) => void,
): Promise<Listener> {
  const { logger } = options;
  const waitMs = options.sniffMs ?? limits.agent.sniffMs;
  const isBalancer = addressRanges(options.proxyFrom ?? []);
  const sockets = new Set<Socket>();
  const counts = { accepted: 0, foreign: 0, unnamed: 0, silent: 0, dropped: 0 };
  let onEmpty: (() => void) | undefined;

  const settle = (result: Sniffed, socket: Socket, id: number): void => {
    switch (result.kind) {
      case 'h2c':
        accept(ownConnection(id, socket, result.client ?? plainIp(socket.remoteAddress ?? '')));
        return;
      case 'foreign':
        counts.foreign += 1;
        socket.destroy();
        return;
      case 'no_proxy_header':
        counts.unnamed += 1;
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
        unreachable(result);
    }
  };

  const server = createServer({ noDelay: true, keepAlive: true }, (socket) => {
    counts.accepted += 1;
    sockets.add(socket);
    // A reset by the peer is ordinary; without a listener the event would end the process.
    socket.on('error', (error) => logger.debug({ error: errorText(error) }, 'agent connection failed'));
    socket.once('close', () => {
      sockets.delete(socket);
      if (sockets.size === 0) onEmpty?.();
    });
    const id = counts.accepted;
    const expectHeader = isBalancer(socket.remoteAddress ?? '');
    sniff(socket, { expectHeader, waitMs }, (result) => settle(result, socket, id));
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
  // For instance, no file descriptor is left for the next connection; the open ones stay.
  server.on('error', (error) => logger.error({ error: errorText(error) }, 'agent listener error'));
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
