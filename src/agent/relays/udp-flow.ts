/**
 * One flow of a UDP listener: passes one client's datagrams to the next hop and back, on its own socket, inside ENC if
 * the next hop uses it. The listener identifies clients. Datagrams are dropped rather than queued without bound.
 * Implements `docs/data-plane.md#udp`.
 */
import { createSocket, type Socket } from 'node:dgram';
import { lookup } from 'node:dns/promises';
import { createEncDialler, type EncDialler } from '../../channel/enc/dialler.js';
import { withDeadline, timedOut } from '../../kernel/background.js';
import type { Clock } from '../../kernel/clock.js';
import type { HostPort } from '../../kernel/host-port.js';
import type { DialSecurity } from '../plan/plan.js';
import { relayLimits } from './limits.js';
import type { Link } from './links.js';
import type { Meter } from './meters.js';

/** Datagrams held until the next hop is reachable. */
const maxPending = 16;
/** Above this many unsent bytes of a socket, datagrams are dropped. */
export const sendQueueBytes = 1024 * 1024;

export interface Flow {
  /** Sends a datagram to the next hop. */
  forward(datagram: Buffer): void;
  /** When a datagram last arrived from either side, by the monotonic clock. */
  readonly lastUsed: number;
  /** Lets ENC do what is due. */
  poll(): void;
  end(failed: boolean): void;
}

interface FlowOptions {
  readonly endpoint: HostPort;
  readonly security: DialSecurity;
  /** The meter of the listener. */
  readonly meter: Meter;
  readonly link: Link;
  readonly clock: Clock;
  /** Called with the milliseconds until the next hop was reachable, or undefined if that failed. */
  readonly settled: (connectMs: number | undefined) => void;
  /** Sends a datagram to the client; false if it was dropped. */
  readonly reply: (datagram: Buffer) => boolean;
  readonly ended: () => void;
}

export function startFlow({ endpoint, security, meter, link, clock, settled, reply, ended }: FlowOptions): Flow {
  const endMeter = meter.begin();
  const endLink = link.meter.begin();
  const started = clock.monotonic();
  let lastUsed = started;
  let pending: Buffer[] = [];
  let socket: Socket | undefined;
  let enc: EncDialler | undefined;
  /** Whether the next hop has become reachable, or has failed. */
  let isSettled = false;
  let over = false;

  const settle = (connectMs: number | undefined): void => {
    if (isSettled) return;
    isSettled = true;
    settled(connectMs);
  };
  const transmit = (packet: Buffer): void => {
    if (!over && socket !== undefined && socket.getSendQueueSize() <= sendQueueBytes)
      socket.send(packet, () => undefined);
  };
  const send = (datagram: Buffer): void => {
    link.meter.sent(datagram.length);
    if (enc === undefined) transmit(datagram);
    else enc.send(datagram, clock.monotonic());
  };
  const deliver = (datagram: Buffer): void => {
    lastUsed = clock.monotonic();
    link.meter.received(datagram.length);
    if (reply(datagram)) meter.sent(datagram.length);
  };
  const ready = (): void => {
    settle(clock.monotonic() - started);
    if (enc !== undefined) link.connected(clock.monotonic() - started);
    for (const datagram of pending.splice(0)) send(datagram);
  };
  const end = (failed: boolean): void => {
    if (over) return;
    over = true;
    pending = [];
    enc?.close();
    socket?.close();
    ended();
    endMeter(failed);
    endLink(failed);
  };
  const fail = (): void => {
    settle(undefined);
    link.failed();
    end(true);
  };

  void connectUdp(endpoint).then((connected) => {
    if (connected === undefined) return fail();
    if (over) return void connected.close();
    socket = connected;
    // The next hop refuses datagrams: the client's next one starts a new flow, with the next endpoint.
    connected.on('error', fail);
    if (security.kind !== 'noise') {
      connected.on('message', deliver);
      return ready();
    }
    const { publicKey } = security;
    enc = createEncDialler({ publicKey, transmit, deliver, ready, now: clock.monotonic() });
    connected.on('message', (packet) => enc?.take(packet, clock.monotonic()));
  });

  return {
    forward(datagram) {
      lastUsed = clock.monotonic();
      meter.received(datagram.length);
      if (isSettled) send(datagram);
      else if (pending.length < maxPending) pending.push(datagram);
    },
    get lastUsed() {
      return lastUsed;
    },
    poll() {
      if (enc?.poll(clock.monotonic()) !== 'dead') return;
      if (!enc.isReady) meter.handshakeFailed();
      fail();
    },
    end,
  };
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
