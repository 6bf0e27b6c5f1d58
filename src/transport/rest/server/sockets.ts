/**
 * Bounds the open sockets of the HTTP server, in total and for each client address, so that no client can hold them all. When a
 * few clients together do, a new client takes the place of an idle connection of the address with the most. Trusted proxies
 * have no bound of their own, because all clients behind them share one address. `http-server.ts` bounds the time of a request.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { addressKey, plainIp } from '../../../kernel/addresses.js';
import { addressRanges } from '../../../kernel/cidr.js';
import type { SampledLog } from '../../../kernel/sampled-log.js';
import type { RestSockets } from '../deps.js';
import { tuning } from '../tuning.js';

interface RestSocketsOptions {
  /** CIDRs. */
  readonly trustedProxies: readonly string[];
  readonly refusals: Pick<SampledLog, 'note'>;
  readonly inAll?: number;
  readonly perAddress?: number;
}

/** The open sockets of one client address. */
interface Holder {
  open: number;
  readonly isProxy: boolean;
  /** Sockets without a request under way, the longest idle first. */
  readonly idle: Set<Socket>;
}

/** An accepted socket. */
interface Accepted {
  readonly socket: Socket;
  readonly holder: Holder;
  underWay: number;
}

const peerOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`;

export function createRestSockets(options: RestSocketsOptions): RestSockets {
  const { inAll = tuning.sockets.inAll, perAddress = tuning.sockets.perAddress } = options;
  const isProxy = addressRanges(options.trustedProxies);
  const holders = new Map<string, Holder>();
  /** By peer: over TLS, requests arrive on another socket than the accepted one. */
  const byPeer = new Map<string, Accepted>();
  let open = 0;

  const refuse = (reason: string, address: string): void => {
    options.refusals.note({ reason, address: plainIp(address) }, 'a REST connection was closed at once');
  };

  /** Closes the longest idle socket of the address with the most; a proxy's only as a last resort. */
  const makeRoom = (): boolean => {
    let most: Holder | undefined;
    for (const holder of holders.values()) {
      if (holder.idle.size === 0) continue;
      const isMore = most === undefined || (most.isProxy && !holder.isProxy);
      if (isMore || (holder.isProxy === most?.isProxy && holder.open > most.open)) most = holder;
    }
    const [longest] = most?.idle ?? [];
    if (longest === undefined) return false;
    refuse('rest_connection_for_a_newcomer', longest.remoteAddress ?? '');
    longest.destroy();
    return true;
  };

  const accept = (socket: Socket): void => {
    const address = keepAddress(socket);
    if (address === undefined) return;
    const key = addressKey(address);
    const holder = holders.get(key) ?? { open: 0, isProxy: isProxy(address), idle: new Set() };
    const tooMany = !holder.isProxy && holder.open >= perAddress;
    if (tooMany || (open >= inAll && !makeRoom())) {
      socket.destroy();
      refuse(tooMany ? 'rest_connections_of_address' : 'rest_connections', address);
      return;
    }
    const peer = peerOf(socket);
    open += 1;
    holder.open += 1;
    holder.idle.add(socket);
    holders.set(key, holder);
    byPeer.set(peer, { socket, holder, underWay: 0 });
    socket.once('close', () => {
      open -= 1;
      holder.open -= 1;
      holder.idle.delete(socket);
      if (holder.open === 0) holders.delete(key);
      if (byPeer.get(peer)?.socket === socket) byPeer.delete(peer);
    });
  };

  const busyWith = (request: IncomingMessage, response: ServerResponse): void => {
    const accepted = byPeer.get(peerOf(request.socket));
    if (accepted === undefined) return;
    const { socket, holder } = accepted;
    accepted.underWay += 1;
    holder.idle.delete(socket);
    response.once('close', () => {
      accepted.underWay -= 1;
      if (accepted.underWay === 0 && !socket.destroyed) holder.idle.add(socket);
    });
  };

  return {
    guard(server) {
      server.on('connection', accept);
      server.on('request', busyWith);
      // Over TLS, requests arrive on a socket of their own.
      server.on('secureConnection', keepAddress);
    },
    get open() {
      return open;
    },
  };
}

/**
 * Keeps the peer's address on its socket: the system forgets it once the peer resets the connection, while its requests are
 * still being answered and recorded. Closes the socket of a peer that is gone already.
 * @returns the address; undefined when the socket was closed
 */
function keepAddress(socket: Socket): string | undefined {
  const { remoteAddress } = socket;
  if (remoteAddress === undefined) socket.destroy();
  else Object.defineProperty(socket, 'remoteAddress', { value: remoteAddress });
  return remoteAddress;
}
