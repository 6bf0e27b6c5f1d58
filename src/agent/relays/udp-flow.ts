/**
 * One flow of a UDP listener: passes one client's datagrams to the next hop and back, on its own socket, inside ENC if
 * the next hop uses it. The listener identifies clients. Datagrams are dropped rather than queued without bound.
 * Implements `docs/data-plane.md#udp`.
 */
import { createSocket, type Socket } from 'node:dgram';
import { createEncDialler, type EncDialler } from '../../channel/enc/dialler.js';
import { withDeadline, timedOut } from '../../kernel/background.js';
import type { Clock } from '../../kernel/clock.js';
import type { HostPort } from '../../kernel/host-port.js';
import { addressesOf } from '../../kernel/resolve.js';
import type { DialSecurity } from '../plan/plan.js';
import { relayLimits } from './limits.js';
import type { Link } from './links.js';
import type { Meter } from './meters.js';

/** Datagrams held until the next hop is reachable. */
const maxPending = 16;
/** How long after it was sent a datagram in the clear counts as refused, if the next hop says so. */
const refusalMs = 1_000;
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
  /**
   * Called with the milliseconds until the next hop was reachable, or undefined if that failed. In the clear it is
   * reachable when it has answered, or has not refused what was sent for a while.
   */
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
  /** The milliseconds until datagrams could be sent; undefined before. */
  let connectMs: number | undefined;
  let isSettled = false;
  let over = false;

  const settle = (ms: number | undefined): void => {
    if (isSettled) return;
    isSettled = true;
    settled(ms);
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
    settle(connectMs);
    link.meter.received(datagram.length);
    if (reply(datagram)) meter.sent(datagram.length);
  };
  const ready = (): void => {
    connectMs = clock.monotonic() - started;
    if (enc !== undefined) link.connected(connectMs);
    if (enc !== undefined || pending.length === 0) settle(connectMs);
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
      if (connectMs !== undefined) send(datagram);
      else if (pending.length < maxPending) pending.push(datagram);
    },
    get lastUsed() {
      return lastUsed;
    },
    poll() {
      if (connectMs !== undefined && clock.monotonic() - started >= connectMs + refusalMs) settle(connectMs);
      if (enc?.poll(clock.monotonic()) !== 'dead') return;
      if (!enc.isReady) meter.handshakeFailed();
      fail();
    },
    end,
  };
}

/** A socket that exchanges datagrams with this endpoint only; undefined if its name cannot be resolved. */
async function connectUdp({ host, port }: HostPort): Promise<Socket | undefined> {
  const addresses = await withDeadline(
    addressesOf(host).catch(() => []),
    relayLimits.connectTimeoutMs,
  );
  const [resolved] = addresses === timedOut ? [] : addresses;
  if (resolved === undefined) return undefined;
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
