/**
 * One listening TCP socket with all its rules: accepts connections within limits and relays each. It reads a
 * connection's server name if the listener has names, terminates TLS if the rule says so, dials the next hop and joins
 * the two. A listener's target can be replaced while it runs: live connections keep the target they were accepted for,
 * but each request of an HTTP connection uses the newest routes. Implements
 * `docs/contract/agent-protocol.md#the-reference-agent`.
 */
import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { withDeadline } from '../../kernel/background.js';
import { errorText, unreachable } from '../../kernel/errors.js';
import { reset } from '../../transport/listener/reality/splice.js';
import {
  hopsOf,
  type ListenerPlan,
  type TcpService,
  type NamedRule,
  type PlainService,
  type RealityRule,
  type RelayRoute,
} from '../plan/plan.js';
import { dial, dialNextHop, whileOpen } from './dial.js';
import { peek } from './first-bytes.js';
import { createHttpProxy, type HttpProxy } from './http-proxy.js';
import { relayLimits } from './limits.js';
import { createMeter, type Meter } from './meters.js';
import { createRealityHops, type RealityHops } from './reality-hops.js';
import type { RelayDependencies, RelayListener } from './relay.js';
import { plainSide, splice, type Side } from './splice.js';
import { acceptTls } from './tls.js';

const maxConnections = 16_384;
/** Connections that the kernel keeps until they are accepted, within its own limit: after a restart all come at once. */
const backlog = 4096;

/** Opens the listener; rejects with the system's error if it cannot bind. */
export async function openTcpListener(
  { addr, port }: Pick<ListenerPlan, 'addr' | 'port'>,
  dependencies: RelayDependencies,
): Promise<RelayListener> {
  const { logger } = dependencies;
  const meter = createMeter(dependencies.totals);
  const sessions = new Map<Socket, Promise<void>>();
  /** Connections whose rule is not known yet, oldest first. */
  const undecided = new Set<Socket>();
  const http = createHttpProxy(dependencies, meter);
  const hops = createRealityHops(dependencies, meter);
  const relay = createTcpRelay({ dependencies, meter, http, hops, decided: (client) => undecided.delete(client) });
  let closing = false;
  let current: TcpService | undefined;
  let waiting: Socket[] = [];

  const start = (client: Socket, service: TcpService): void => {
    if (service.kind === 'names' || service.kind === 'reality') {
      undecided.add(client);
      // Silent connections make room for later ones.
      const [oldest] = undecided;
      if (undecided.size > relayLimits.tcpUndecidedPerListener && oldest !== undefined) reset(oldest);
    }
    const session = relay(client, service)
      .catch((error: unknown) => {
        logger.error({ error: errorText(error) }, 'a relayed connection failed');
        reset(client);
      })
      .finally(() => {
        undecided.delete(client);
        sessions.delete(client);
      });
    sessions.set(client, session);
  };

  const accept = (client: Socket): void => {
    client.on('error', () => undefined);
    if (closing || sessions.size + waiting.length >= maxConnections) {
      meter.refused();
      return reset(client);
    }
    client.setKeepAlive(true, relayLimits.tcpKeepaliveMs);
    if (current === undefined) waiting.push(client);
    else start(client, current);
  };

  const listen = async (): Promise<Server> => {
    const opened = createServer({ allowHalfOpen: true, noDelay: true, pauseOnConnect: true }, accept);
    opened.listen({ host: addr, port, backlog });
    await once(opened, 'listening');
    // For example, no file descriptor is left for the next connection: it takes connections again when there is one.
    opened.on('error', (error) => logger.error({ addr, port, error: errorText(error) }, 'a TCP listener failed'));
    return opened;
  };
  let server = await listen();

  return {
    meter,
    get state() {
      return server.listening ? 'running' : 'failed';
    },
    serve({ transport, service }) {
      if (transport !== 'tcp' || service === undefined) return;
      current = service;
      hops.keep(hopsOf({ service }));
      const plain = service.kind === 'names' ? service.fallback : service;
      http.route(plain?.kind === 'http' ? plain.routes : undefined);
      const clients = waiting;
      waiting = [];
      for (const client of clients) start(client, service);
    },
    suspend() {
      // Releases the port at once. The callback is not awaited, because it waits for all connections to close.
      server.close();
    },
    async resume() {
      server = await listen();
    },
    async close(drainMs) {
      closing = true;
      server.close();
      for (const client of [...waiting, ...undecided]) reset(client);
      waiting = [];
      http.drain();
      const all = Promise.all(sessions.values());
      if (drainMs > 0) await withDeadline(all, drainMs);
      for (const client of sessions.keys()) reset(client);
      await hops.close();
      await all;
    },
  };
}

/** Counts the bytes of a connection at its listener and on its link. */
const countedBy = (meter: Meter, link: Meter) => ({
  up(bytes: number): void {
    meter.received(bytes);
    link.sent(bytes);
  },
  down(bytes: number): void {
    meter.sent(bytes);
    link.received(bytes);
  },
});

interface TcpRelayOptions {
  readonly dependencies: RelayDependencies;
  /** The meter of the listener. */
  readonly meter: Meter;
  readonly http: HttpProxy;
  readonly hops: RealityHops;
  /** Called when the connection's rule is known, after TLS or REALITY if that is terminated here. */
  readonly decided: (client: Socket) => void;
}

/** Serves connections; each promise resolves when its connection is over. */
function createTcpRelay(options: TcpRelayOptions): (client: Socket, service: TcpService) => Promise<void> {
  const { dependencies, meter, http, hops, decided } = options;

  const relay = async (client: Side, route: RelayRoute, ended?: Buffer): Promise<void> => {
    const end = meter.begin();
    let complete = false;
    try {
      const dialled = await whileOpen(client.stream, (signal) => dialNextHop(route, dependencies, signal));
      if (dialled === undefined) return client.reset();
      const { side, link } = dialled;
      const endLink = link.meter.begin();
      complete = await splice(client, side, countedBy(meter, link.meter), ended);
      endLink(!complete);
    } finally {
      end(!complete);
    }
  };

  const servePlain = (client: Socket, service: PlainService, ended?: Buffer): Promise<void> => {
    decided(client);
    switch (service.kind) {
      case 'relay':
        return relay(plainSide(client), service.route, ended);
      case 'http':
        // There is nothing to serve to a client that left in the middle of a ClientHello.
        if (ended !== undefined) reset(client);
        return http.serve(client);
      default:
        return unreachable(service);
    }
  };

  const serveReality = async (client: Socket, rule: RealityRule): Promise<void> => {
    const side = await hops.meet(client, rule);
    decided(client);
    if (side !== undefined) await relay(side, rule.route);
  };
  /** Joins to the target a client that has already ended its direction, so its bytes cannot be put back. */
  const endAtTarget = async (client: Socket, { hop }: RealityRule, ended: Buffer): Promise<void> => {
    meter.refused();
    const target = await whileOpen(client, (signal) => dial(hop.target, signal));
    if (typeof target === 'string') return reset(client);
    await splice(plainSide(client), plainSide(target), { up: () => undefined, down: () => undefined }, ended);
  };

  const serveNamed = async (client: Socket, { route, accept }: NamedRule): Promise<void> => {
    switch (accept.kind) {
      case 'pass':
        decided(client);
        return relay(plainSide(client), route);
      case 'reality':
        return serveReality(client, { route, hop: accept.hop });
      case 'tls': {
        const side = await acceptTls(client, accept.context);
        decided(client);
        if (side !== undefined) return relay(side, route);
        meter.refused();
        meter.handshakeFailed();
        return undefined;
      }
      default:
        return unreachable(accept);
    }
  };

  return async (client, service) => {
    if (service.kind === 'reality') return serveReality(client, service.rule);
    if (service.kind !== 'names') return servePlain(client, service);
    const { names, fallback, rawFirst } = service;
    const peeked = await peek(client, rawFirst ? relayLimits.clientHelloShortMs : relayLimits.clientHelloMs);
    const named = peeked?.serverName === undefined ? undefined : names(peeked.serverName);
    if (peeked !== undefined && named !== undefined) return serveNamed(client, named);
    if (peeked !== undefined && fallback !== undefined) {
      if (fallback.kind !== 'reality') return servePlain(client, fallback, peeked.ended);
      if (peeked.ended === undefined) return serveReality(client, fallback.rule);
      return endAtTarget(client, fallback.rule, peeked.ended);
    }
    // No rule serves it. A probe, which leaves without a word, wants none.
    decided(client);
    const left = peeked === undefined || peeked.ended !== undefined;
    if (!left || client.bytesRead > 0) meter.refused();
    reset(client);
  };
}
