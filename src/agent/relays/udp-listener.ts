/**
 * One UDP listener of a RAW rule. A session is a client's address and port with its own socket to the next hop; it ends
 * after a time of silence. Datagrams are dropped rather than queued without bound.
 * Implements `docs/contract/agent-protocol.md#the-reference-agent`.
 */
import { createSocket } from 'node:dgram';
import type { RemoteInfo, Socket } from 'node:dgram';
import { lookup } from 'node:dns/promises';
import { isIPv6 } from 'node:net';
import { withDeadline, timedOut } from '../../kernel/background.js';
import type { Clock } from '../../kernel/clock.js';
import { errorText } from '../../kernel/errors.js';
import type { HostPort } from '../../kernel/host-port.js';
import type { RelayRoute } from '../plan/plan.js';
import { relayLimits } from './limits.js';
import type { Link } from './links.js';
import { createMeter } from './meters.js';
import type { Meter } from './meters.js';
import type { RelayDependencies, RelayListener, RoutedListener } from './relay.js';

const maxSessions = 8192;
/** Silence after which a session ends. */
const idleByDefaultMs = 60_000;
/** Datagrams held while the session's socket connects. */
const maxPending = 16;
const sendQueueBytes = 1024 * 1024;

interface UdpRelayOptions {
  /** Silence after which a session ends, in milliseconds. */
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
  const idleMs = options.idleMs ?? idleByDefaultMs;
  const meter = createMeter(dependencies.totals);
  const sessions = new Map<string, Session>();
  let current: RelayRoute | undefined;
  let state: RelayListener['state'] = 'running';
  let bound = false;

  const reply = (datagram: Buffer, client: RemoteInfo): boolean => {
    if (!bound || listening.getSendQueueSize() > sendQueueBytes) return false;
    listening.send(datagram, client.port, client.address, () => undefined);
    return true;
  };

  const open = (key: string, client: RemoteInfo, route: RelayRoute): Session | undefined => {
    const picked = upstreams.pick(route);
    const [endpoint] = picked.kind === 'endpoints' ? picked.endpoints : [];
    if (picked.kind === 'refused' || endpoint === undefined || sessions.size >= maxSessions) {
      meter.refused();
      return undefined;
    }
    const session = startSession({
      endpoint,
      meter,
      link: links.of(route.origin, endpoint, 'udp'),
      clock,
      settled: picked.settled,
      reply: (datagram) => reply(datagram, client),
      ended: () => {
        if (sessions.get(key) === session) sessions.delete(key);
      },
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

interface SessionOptions {
  readonly endpoint: HostPort;
  /** The listener's. */
  readonly meter: Meter;
  readonly link: Link;
  readonly clock: Clock;
  /** Called with how long the connect took in milliseconds, or undefined if it failed. */
  readonly settled: (connectMs: number | undefined) => void;
  /** Sends a datagram to the client; false if it was dropped. */
  readonly reply: (datagram: Buffer) => boolean;
  readonly ended: () => void;
}

function startSession({ endpoint, meter, link, clock, settled, reply, ended }: SessionOptions): Session {
  const endMeter = meter.begin();
  const endLink = link.meter.begin();
  const started = clock.monotonic();
  let pending: Buffer[] = [];
  let socket: Socket | undefined;
  let over = false;

  const send = (to: Socket, datagram: Buffer): void => {
    link.meter.sent(datagram.length);
    to.send(datagram, () => undefined);
  };
  const session: Session = {
    lastUsed: started,
    forward(datagram) {
      meter.received(datagram.length);
      if (socket === undefined) {
        if (pending.length < maxPending) pending.push(datagram);
      } else if (socket.getSendQueueSize() <= sendQueueBytes) {
        send(socket, datagram);
      }
    },
    end(failed) {
      if (over) return;
      over = true;
      pending = [];
      socket?.close();
      ended();
      endMeter(failed);
      endLink(failed);
    },
  };

  void connectUdp(endpoint).then((connected) => {
    settled(connected === undefined ? undefined : clock.monotonic() - started);
    if (connected === undefined || over) {
      connected?.close();
      link.failed();
      return session.end(true);
    }
    socket = connected;
    connected.on('message', (datagram) => {
      session.lastUsed = clock.monotonic();
      link.meter.received(datagram.length);
      if (reply(datagram)) meter.sent(datagram.length);
    });
    // The next hop refuses datagrams: the client's next one begins a new session, with the next endpoint.
    connected.on('error', () => {
      link.failed();
      session.end(true);
    });
    for (const datagram of pending.splice(0)) send(connected, datagram);
  });
  return session;
}

/** A socket that exchanges datagrams with this endpoint only; undefined if its name cannot be resolved. */
async function connectUdp({ host, port }: HostPort): Promise<Socket | undefined> {
  const resolved = await withDeadline(
    lookup(host).catch(() => undefined),
    relayLimits.connectTimeoutMs,
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
