/**
 * One UDP listener of a RAW rule. A session is a client's address and port with its own socket to the next hop; it ends
 * after a time of silence. Datagrams are dropped rather than queued without bound.
 * Implements `docs/contract/agent-protocol.md#the-reference-agent`.
 */
import { createSocket } from 'node:dgram';
import type { RemoteInfo, Socket } from 'node:dgram';
import { isIPv6 } from 'node:net';
import { lookup } from 'node:dns/promises';
import { withDeadline, timedOut } from '../kernel/background.js';
import { errorText } from '../kernel/errors.js';
import type { HostPort } from '../kernel/host-port.js';
import { createMeter } from './counters.js';
import type { RelayRoute } from './plan.js';
import type { RelayDependencies, RelayListener, RoutedListener } from './relay.js';
import { tuning } from './tuning.js';

interface UdpRelayOptions {
  /** Silence after which a session ends, in milliseconds; default `tuning.udpIdleMs`. */
  readonly idleMs?: number;
}

interface Session {
  /** Sends a datagram to the next hop. */
  forward(datagram: Buffer): void;
  lastUsed: number;
  end(failed: boolean): void;
}

/** Opens the listener; rejects with the system's error if it cannot bind. */
export async function openUdpListener(
  addr: string,
  port: number,
  dependencies: RelayDependencies,
  options: UdpRelayOptions = {},
): Promise<RoutedListener<RelayRoute>> {
  const { upstreams, links, clock, logger } = dependencies;
  const idleMs = options.idleMs ?? tuning.udpIdleMs;
  const meter = createMeter(dependencies.totals);
  const sessions = new Map<string, Session>();
  let current: RelayRoute | undefined;
  let state: RelayListener['state'] = 'running';
  let bound = false;

  const reply = (datagram: Buffer, client: RemoteInfo): boolean => {
    if (!bound || listening.getSendQueueSize() > tuning.udpSendQueueBytes) return false;
    listening.send(datagram, client.port, client.address, () => undefined);
    return true;
  };

  const open = (key: string, client: RemoteInfo, route: RelayRoute): Session | undefined => {
    const picked = upstreams.pick(route);
    const [endpoint] = picked.kind === 'endpoints' ? picked.endpoints : [];
    if (picked.kind === 'refused' || endpoint === undefined || sessions.size >= tuning.udpSessionsPerListener) {
      meter.refused();
      return undefined;
    }
    const link = links.of(route.origin, endpoint, 'udp');
    const endMeter = meter.begin();
    const endLink = link.meter.begin();
    const started = clock.monotonic();
    let pending: Buffer[] = [];
    let socket: Socket | undefined;
    let over = false;

    const session: Session = {
      lastUsed: started,
      forward(datagram) {
        meter.received(datagram.length);
        if (socket === undefined) {
          if (pending.length < tuning.udpPendingDatagrams) pending.push(datagram);
        } else if (socket.getSendQueueSize() <= tuning.udpSendQueueBytes) {
          link.meter.sent(datagram.length);
          socket.send(datagram, () => undefined);
        }
      },
      end(failed) {
        if (over) return;
        over = true;
        pending = [];
        socket?.close();
        if (sessions.get(key) === session) sessions.delete(key);
        endMeter(failed);
        endLink(failed);
      },
    };

    void connectUdp(endpoint).then((connected) => {
      picked.settled(connected === undefined ? undefined : clock.monotonic() - started);
      if (connected === undefined || over) {
        connected?.close();
        link.failed();
        return session.end(true);
      }
      socket = connected;
      connected.on('message', (datagram) => {
        session.lastUsed = clock.monotonic();
        link.meter.received(datagram.length);
        if (reply(datagram, client)) meter.sent(datagram.length);
      });
      // The next hop refuses datagrams: the client's next one begins a new session, with the next endpoint.
      connected.on('error', () => {
        link.failed();
        session.end(true);
      });
      const datagrams = pending;
      pending = [];
      for (const datagram of datagrams) {
        link.meter.sent(datagram.length);
        connected.send(datagram, () => undefined);
      }
    });
    sessions.set(key, session);
    return session;
  };

  const receive = (datagram: Buffer, client: RemoteInfo): void => {
    if (current === undefined) return;
    const key = `${client.address} ${client.port}`;
    const session = sessions.get(key) ?? open(key, client, current);
    if (session === undefined) return;
    session.lastUsed = clock.monotonic();
    session.forward(datagram);
  };

  const listen = async (): Promise<Socket> => {
    const opened = createSocket({ type: isIPv6(addr) ? 'udp6' : 'udp4' });
    await new Promise<void>((resolve, reject) => {
      opened.once('error', (error) => {
        opened.close();
        reject(error);
      });
      opened.bind({ address: addr, port, exclusive: true }, () => {
        opened.removeAllListeners('error');
        resolve();
      });
    });
    opened.on('error', (error) => {
      state = 'failed';
      logger.error({ addr, port, error: errorText(error) }, 'a UDP listener failed');
    });
    opened.on('message', receive);
    state = 'running';
    bound = true;
    return opened;
  };
  let listening = await listen();

  const sweeper = setInterval(() => {
    const now = clock.monotonic();
    for (const session of sessions.values()) if (now - session.lastUsed >= idleMs) session.end(false);
  }, idleMs / 4);
  sweeper.unref();

  const release = (): void => {
    if (bound) listening.close();
    bound = false;
    state = 'failed';
    for (const session of sessions.values()) session.end(false);
  };

  return {
    meter,
    get state() {
      return state;
    },
    route(route) {
      current = route;
    },
    suspend: release,
    async resume() {
      listening = await listen();
    },
    async close() {
      clearInterval(sweeper);
      current = undefined;
      release();
    },
  };
}

/** A socket that exchanges datagrams with this endpoint only; undefined if its name cannot be resolved. */
async function connectUdp({ host, port }: HostPort): Promise<Socket | undefined> {
  const resolved = await withDeadline(
    lookup(host).catch(() => undefined),
    tuning.connectTimeoutMs,
  );
  if (resolved === undefined || resolved === timedOut) return undefined;
  const socket = createSocket({ type: resolved.family === 6 ? 'udp6' : 'udp4' });
  return new Promise((resolve) => {
    const fail = (): void => {
      socket.removeAllListeners();
      socket.close();
      resolve(undefined);
    };
    socket.once('error', fail);
    socket.connect(port, resolved.address, (error?: Error) => {
      if (error instanceof Error) return fail();
      socket.removeListener('error', fail);
      resolve(socket);
    });
  });
}
