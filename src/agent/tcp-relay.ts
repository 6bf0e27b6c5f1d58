/**
 * Relays one TCP connection: looks at its server name if its listener has names, terminates TLS if its rule says so,
 * dials the next hop and joins the two. The listening socket is in `tcp-listener.ts`.
 * Implements `docs/contract/agent-protocol.md#the-reference-agent`.
 */
import type { Socket } from 'node:net';
import { unreachable } from '../kernel/errors.js';
import type { Meter } from './counters.js';
import { dialNextHop } from './dial.js';
import { peek } from './first-bytes.js';
import type { HttpProxy } from './http-proxy.js';
import type { NamedRule, PlainService, RelayRoute, TcpService } from './plan.js';
import type { RelayDependencies } from './relay.js';
import { plainSide, reset } from './side.js';
import type { Side } from './side.js';
import { splice } from './splice.js';
import { acceptTls } from './tls-accept.js';
import { tuning } from './tuning.js';

interface TcpRelayOptions {
  readonly dependencies: RelayDependencies;
  /** Of the listener. */
  readonly meter: Meter;
  readonly http: HttpProxy;
  /** Called when it is decided who serves the connection, after TLS if it is terminated here. */
  readonly decided: (client: Socket) => void;
}

/** Serves connections; each promise resolves when its connection is over. */
export function createTcpRelay(options: TcpRelayOptions): (client: Socket, service: TcpService) => Promise<void> {
  const { dependencies, meter, http, decided } = options;

  const relay = async (client: Side, route: RelayRoute, ended?: Buffer): Promise<void> => {
    const end = meter.begin();
    let complete = false;
    try {
      const gone = new AbortController();
      const abort = (): void => gone.abort();
      client.stream.once('close', abort);
      if (client.stream.destroyed) abort();
      const dialled = await dialNextHop(route, dependencies, gone.signal);
      client.stream.removeListener('close', abort);
      if (dialled.kind !== 'connected') return client.reset();
      const { side, link } = dialled;
      const endLink = link.meter.begin();
      complete = await splice(
        client,
        side,
        {
          up(bytes) {
            meter.received(bytes);
            link.meter.sent(bytes);
          },
          down(bytes) {
            meter.sent(bytes);
            link.meter.received(bytes);
          },
        },
        ended,
      );
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
        // A client that left in the middle of a ClientHello has no request.
        if (ended !== undefined) reset(client);
        return http.serve(client);
      default:
        return unreachable(service);
    }
  };

  const serveNamed = async (client: Socket, { route, context }: NamedRule): Promise<void> => {
    if (context === undefined) {
      decided(client);
      return relay(plainSide(client), route);
    }
    const side = await acceptTls(client, context);
    decided(client);
    if (side !== undefined) return relay(side, route);
    meter.refused();
    meter.handshakeFailed();
  };

  return async (client, service) => {
    if (service.kind !== 'names') return servePlain(client, service);
    const { names, fallback, rawFirst } = service;
    const early = fallback !== undefined && rawFirst;
    const peeked = await peek(client, early ? tuning.clientHelloShortMs : tuning.clientHelloMs);
    const named = peeked?.serverName === undefined ? undefined : names.match(peeked.serverName);
    if (peeked !== undefined && named !== undefined) return serveNamed(client, named);
    if (peeked !== undefined && fallback !== undefined) return servePlain(client, fallback, peeked.ended);
    // Nobody to serve it.
    decided(client);
    meter.refused();
    reset(client);
  };
}
