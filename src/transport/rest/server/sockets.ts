/**
 * The sockets of the HTTP server from their acceptance on: each has an address, and their number is bounded, in all and for
 * each client address, so that one client cannot hold them all. Behind a proxy there is only the proxy's address, so trusted
 * proxies have no bound of their own. The time that a request may take is node's (`http-server.ts`).
 */
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { addressKey, addressRanges, plainIp } from '../../../kernel/addresses.js';
import type { SampledLog } from '../../../kernel/sampled-log.js';
import { tuning } from '../tuning.js';

export interface RestSockets {
  /** Applies the bounds to a server; a connection above them is closed at once. */
  guard(server: Server): void;
  readonly open: number;
}

interface RestSocketsOptions {
  /** CIDRs. */
  readonly trustedProxies: readonly string[];
  readonly refusals: Pick<SampledLog, 'note'>;
  readonly inAll?: number;
  readonly perAddress?: number;
}

export function createRestSockets(options: RestSocketsOptions): RestSockets {
  const { inAll = tuning.sockets.inAll, perAddress = tuning.sockets.perAddress } = options;
  const isProxy = addressRanges(options.trustedProxies);
  const byAddress = new Map<string, number>();
  let open = 0;

  const refuse = (reason: string, address: string): void => {
    options.refusals.note({ reason, address: plainIp(address) }, 'a REST connection was closed at once');
  };
  const count = (key: string, change: 1 | -1): void => {
    open += change;
    const number = (byAddress.get(key) ?? 0) + change;
    if (number === 0) byAddress.delete(key);
    else byAddress.set(key, number);
  };
  const accept = (socket: Socket): void => {
    const address = keepAddress(socket);
    if (address === undefined) return;
    const key = addressKey(address);
    if (!isProxy(address) && (byAddress.get(key) ?? 0) >= perAddress) {
      socket.destroy();
      refuse('rest_connections_of_address', address);
      return;
    }
    count(key, 1);
    socket.once('close', () => count(key, -1));
  };

  return {
    guard(server) {
      server.maxConnections = inAll;
      server.on('drop', (dropped) => refuse('rest_connections', dropped?.remoteAddress ?? ''));
      server.on('connection', accept);
      // Over TLS requests come on a socket of their own.
      server.on('secureConnection', keepAddress);
    },
    get open() {
      return open;
    },
  };
}

/**
 * Keeps the peer's address on its socket: node asks the system each time, which knows none once the peer has reset the
 * connection, while its requests are still to be answered and recorded. A peer that is gone already is closed.
 * @returns the address; undefined when the socket was closed
 */
function keepAddress(socket: Socket): string | undefined {
  const { remoteAddress } = socket;
  if (remoteAddress === undefined) socket.destroy();
  else Object.defineProperty(socket, 'remoteAddress', { value: remoteAddress });
  return remoteAddress;
}
