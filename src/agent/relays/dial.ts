/**
 * Opens the connection to a next hop: tries one endpoint after the other, each within a time limit, with TLS and pins
 * or REALITY if the route requires them. `upstreams.ts` chooses the endpoints.
 */
import { connect, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { errorText, unreachable } from '../../kernel/errors.js';
import { systemErrorCode } from '../../kernel/files.js';
import { formatHostPort, type HostPort } from '../../kernel/host-port.js';
import { byName } from '../../kernel/resolve.js';
import type { RelayRoute, UpstreamTls } from '../plan/plan.js';
import { openReality } from '../reality/handshake.js';
import { relayLimits } from './limits.js';
import type { Link } from './links.js';
import type { RelayDependencies } from './relay.js';
import { plainSide, innerSide, type Side } from './splice.js';
import { connectTls } from './tls.js';

export interface Dialled {
  readonly side: Side;
  readonly link: Link;
}

/**
 * Connects to the first endpoint of a route's next hop that answers with the right key.
 * @returns undefined if none does, if its cluster is disabled, or after an abort
 */
export async function dialNextHop(
  route: RelayRoute,
  dependencies: RelayDependencies,
  signal: AbortSignal,
): Promise<Dialled | undefined> {
  const { upstreams, links, clock } = dependencies;
  const picked = upstreams.pick(route);
  if (picked === undefined) return undefined;
  for (const endpoint of picked.endpoints) {
    const link = links.of(route.origin, endpoint, 'tcp');
    const started = clock.monotonic();
    const socket = await dial(endpoint, signal);
    const connectMs = clock.monotonic() - started;
    const side =
      typeof socket === 'string' ? undefined : await secure(socket, { route, endpoint, dependencies, signal });
    // A client that left during the dial says nothing about the next hop.
    if (signal.aborted) {
      side?.reset();
      return undefined;
    }
    if (side === undefined) {
      link.failed();
      continue;
    }
    link.connected(connectMs);
    picked.settled(connectMs);
    return { side, link };
  }
  picked.settled(undefined);
  return undefined;
}

/**
 * Opens a TCP connection, which is paused.
 * @param signal its abort closes the connection, also later
 * @returns a text for people if that failed
 */
export function dial({ host, port }: HostPort, signal: AbortSignal): Promise<Socket | string> {
  return new Promise((resolve) => {
    let failure = 'aborted';
    if (signal.aborted) return resolve(failure);
    const { connectTimeoutMs } = relayLimits;
    const socket = connect({ host, port, allowHalfOpen: true, noDelay: true, ...byName(connectTimeoutMs) });
    const timer = setTimeout(() => {
      failure = `no answer within ${connectTimeoutMs} ms`;
      socket.destroy();
    }, connectTimeoutMs);
    const abort = (): void => void socket.destroy();
    signal.addEventListener('abort', abort, { once: true });
    // Never removed: an error without a listener would end the process.
    socket.on('error', (error) => (failure = systemErrorCode(error) ?? errorText(error)));
    socket.once('connect', () => {
      clearTimeout(timer);
      socket.setKeepAlive(true, relayLimits.tcpKeepaliveMs);
      socket.pause();
      resolve(socket);
    });
    socket.once('close', () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', abort);
      resolve(failure);
    });
  });
}

/** Runs `use` with a signal that aborts when the client's stream is closed meanwhile. */
export async function whileOpen<T>(client: Duplex, use: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const gone = new AbortController();
  const abort = (): void => gone.abort();
  client.once('close', abort);
  if (client.destroyed) abort();
  try {
    return await use(gone.signal);
  } finally {
    client.removeListener('close', abort);
  }
}

interface Secured {
  readonly route: RelayRoute;
  readonly endpoint: HostPort;
  readonly dependencies: RelayDependencies;
  readonly signal: AbortSignal;
}

/** The connection, inside TLS or REALITY if the route requires it; undefined if the peer did not prove its key. */
async function secure(socket: Socket, of: Secured): Promise<Side | undefined> {
  const { security } = of.route;
  switch (security.kind) {
    case 'raw':
      return plainSide(socket);
    case 'tls':
      return secureTls(socket, security, of);
    case 'reality': {
      const opened = await openReality(socket, security.access, of.dependencies.clock, relayLimits.tlsHandshakeMs);
      if (opened.ok) return innerSide(opened.value, socket);
      refuse(of, { reason: 'upstream_reality', error: opened.error }, 'no REALITY with the next hop');
      return undefined;
    }
    case 'noise':
      // Only in UDP rules.
      socket.destroy();
      return undefined;
    default:
      return unreachable(security);
  }
}

async function secureTls(socket: Socket, tls: UpstreamTls, of: Secured): Promise<Side | undefined> {
  let outcome = await connectTls(socket, tls);
  if (outcome.kind === 'wrong_pin' && outcome.pin !== undefined) {
    const newer = await of.dependencies.pins.arrival(tls.ruleId, outcome.pin);
    const again = newer && (await dial(of.endpoint, of.signal));
    if (newer !== undefined && typeof again === 'object') outcome = await connectTls(again, newer);
  }
  switch (outcome.kind) {
    case 'connected':
      return outcome.side;
    case 'wrong_pin': {
      const got = outcome.pin ?? 'no certificate';
      const sentence = 'connection refused: the key of the next hop is not pinned';
      refuse(of, { reason: 'wrong_pin', got }, sentence);
      return undefined;
    }
    case 'failed':
      refuse(of, { reason: 'upstream_tls', error: outcome.reason }, 'no TLS with the next hop');
      return undefined;
    default:
      return outcome satisfies never;
  }
}

/** Counts and logs a next hop that did not prove its key, unless it had no time to do so. */
function refuse(
  { route: { origin }, endpoint, dependencies, signal }: Secured,
  why: { readonly reason: string; readonly [field: string]: string },
  sentence: string,
): void {
  if (signal.aborted) return;
  const of = { next_hop: formatHostPort(endpoint), resource_type: origin.resourceType, resource_id: origin.resourceId };
  dependencies.totals.handshakeFailed();
  dependencies.refusals.note({ ...why, ...of }, sentence);
}
