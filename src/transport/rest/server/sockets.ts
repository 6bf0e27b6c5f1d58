/**
 * The sockets of the HTTP server from their acceptance on: each has an address, and their number is bounded, in all and for
 * each client address, so that one client cannot hold them all. When a few clients together do, a newcomer gets the place
 * of an idle connection of the one that holds most. Behind a proxy there is only the proxy's address, so trusted proxies
 * have no bound of their own. The time that a request may take is node's (`http-server.ts`).
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
  /** Those without a request under way, the longest idle first. */
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
  /** By peer: over TLS a request has another socket than the one that was accepted. */
  const byPeer = new Map<string, Accepted>();
  let open = 0;

  const refuse = (reason: string, address: string): void => {
    options.refusals.note({ reason, address: plainIp(address) }, 'a REST connection was closed at once');
  };

  /** Closes the longest idle socket of the address that holds most; a proxy's only when nobody else has one. */
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
