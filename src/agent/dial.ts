/** Opens the TCP connection to a next hop: tries one endpoint after the other, each within a time limit. */
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import type { Clock } from '../kernel/clock.js';
import type { HostPort } from '../kernel/host-port.js';
import type { Links } from './links.js';
import type { RelayRoute } from './plan.js';
import type { Link } from './links.js';
import { tuning } from './tuning.js';

interface Dialled {
  readonly socket: Socket;
  readonly link: Link;
  readonly connectMs: number;
}

/** Connects to the first endpoint that answers; undefined if none does or the signal aborts. */
export async function dialFirst(
  endpoints: readonly HostPort[],
  route: RelayRoute,
  links: Links,
  clock: Clock,
  signal: AbortSignal,
): Promise<Dialled | undefined> {
  for (const endpoint of endpoints) {
    const link = links.of(route.origin, endpoint, 'tcp');
    const started = clock.monotonic();
    const socket = await dial(endpoint, signal);
    if (signal.aborted) {
      socket?.destroy();
      return undefined;
    }
    if (socket === undefined) {
      link.failed();
      continue;
    }
    const connectMs = clock.monotonic() - started;
    link.connected(connectMs);
    return { socket, link, connectMs };
  }
  return undefined;
}

function dial({ host, port }: HostPort, signal: AbortSignal): Promise<Socket | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, allowHalfOpen: true, noDelay: true });
    const timer = setTimeout(() => socket.destroy(), tuning.connectTimeoutMs);
    const abort = (): void => void socket.destroy();
    const settle = (connected: boolean): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', abort);
      resolve(connected ? socket : undefined);
    };
    signal.addEventListener('abort', abort, { once: true });
    // Never removed: an error without a listener would end the process.
    socket.on('error', () => undefined);
    socket.once('connect', () => {
      socket.setKeepAlive(true, tuning.tcpKeepaliveMs);
      socket.pause();
      settle(true);
    });
    socket.once('close', () => settle(false));
  });
}
