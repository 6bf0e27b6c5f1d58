/**
 * Proxies the HTTP requests of a listener's legacy routes on node:http: each request has its own route and its own
 * connection to the next hop; bodies stream both ways with backpressure. Here are the connections of clients;
 * `http-request.ts` proxies a request. Implements `HttpProxyRule` of `docs/contract/wire.md#configuration`.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { reset } from '../../transport/listener/reality/splice.js';
import type { HttpRoutes } from '../plan/matches.js';
import type { RelayRoute } from '../plan/plan.js';
import { upgradeOf, withoutUpgrade } from './http-headers.js';
import { headerBytes, joinWebSocket, passOn, type Connection, type Context, type Session } from './http-request.js';
import { answer, sendHead } from './http-upgrade.js';
import { relayLimits } from './limits.js';
import { followBytes, type Meter } from './meters.js';
import type { RelayDependencies } from './relay.js';

/** Requests in flight that one connection may have. */
const maxRequestsPerConnection = 32;

export interface HttpProxy {
  /** Sets the routes of all later requests; undefined for no routes. */
  route(routes: HttpRoutes<RelayRoute> | undefined): void;
  /** Serves all requests of a connection. Resolves when it is closed. */
  serve(client: Socket): Promise<void>;
  /** Closes connections without a request; the others after their answers. */
  drain(): void;
}

function asksForWebSocket({ method, rawHeaders }: IncomingMessage): boolean {
  return method === 'GET' && upgradeOf(rawHeaders) === 'websocket';
}

/** Newer releases of Node ask before they treat a request as an upgrade; older ones, and the types, do not. */
const onlyWebSockets: object = { shouldUpgradeCallback: asksForWebSocket };

/** @param meter of the listener: each request is one of its sessions */
export function createHttpProxy(dependencies: RelayDependencies, meter: Meter): HttpProxy {
  const connections = new Map<Duplex, Connection>();
  let routes: HttpRoutes<RelayRoute> | undefined;
  let draining = false;
  const context: Context = { dependencies, routes: (host, path) => routes?.(host, path), draining: () => draining };

  const server = createBareServer();

  /** Undefined for a connection with too many requests at once; it is closed. */
  const begin = (socket: Duplex): Session | undefined => {
    const connection = connections.get(socket);
    if (connection === undefined) return undefined;
    if (connection.inFlight >= maxRequestsPerConnection) {
      meter.refused();
      reset(connection.socket);
      return undefined;
    }
    clearTimeout(connection.timer);
    connection.inFlight += 1;
    const end = meter.begin();
    return {
      connection,
      end(failed) {
        connection.count();
        connection.inFlight -= 1;
        end(failed);
        if (connection.inFlight > 0 || connection.socket.destroyed) return;
        if (draining) connection.socket.end();
        awaitRequest(connection, relayLimits.httpKeepAliveMs + relayLimits.httpHeadersMs);
      },
    };
  };

  /** Undefined for a client that waits for other answers, with which what is written by hand would be mixed; it is closed. */
  const idleClient = (duplex: Duplex): Socket | undefined => {
    const connection = connections.get(duplex);
    if (connection?.inFlight === 0 && duplex.writable) return connection.socket;
    duplex.destroy();
    return undefined;
  };

  const take = (request: IncomingMessage, response: ServerResponse): void => {
    const session = begin(request.socket);
    if (session !== undefined) passOn(request, response, session, context).catch(() => response.destroy());
  };
  server.on('request', take);
  // Whether the body is wanted is for the next hop to say.
  server.on('checkContinue', take);
  server.on('upgrade', (request: IncomingMessage, duplex: Duplex, head: Buffer) => {
    const socket = idleClient(duplex);
    if (socket === undefined) return;
    if (asksForWebSocket(request)) {
      const session = begin(socket);
      if (session !== undefined) joinWebSocket(request, socket, head, session, context).catch(() => socket.destroy());
      return;
    }
    // Servers may ignore any other offer. Releases of Node without `onlyWebSockets` bring it here, and the request is
    // parsed again without it.
    socket.unshift(Buffer.concat([sendHead(request, withoutUpgrade(request.rawHeaders)), head]));
    server.emit('connection', socket);
    socket.resume();
  });
  const refuse = (duplex: Duplex, status: number): void => {
    meter.refused();
    const socket = idleClient(duplex);
    if (socket !== undefined) answer(socket, status);
  };
  server.on('connect', (_request: IncomingMessage, duplex: Duplex) => refuse(duplex, 405));
  server.on('clientError', (error: NodeJS.ErrnoException, duplex: Duplex) => {
    // A lost connection is no request; nor is what follows a nonsense that was answered, which Node still parses.
    if (error.code?.startsWith('HPE_') !== true || !duplex.writable) return;
    const { inFlight = 0, newest } = connections.get(duplex) ?? {};
    if (inFlight > 0 && newest?.request.complete === false) newest.fail(400);
    else refuse(duplex, error.code === 'HPE_HEADER_OVERFLOW' ? 431 : 400);
  });

  return {
    route(next) {
      routes = next;
    },
    serve: (socket) =>
      new Promise((resolve) => {
        if (socket.destroyed) return resolve();
        const count = followBytes(socket, meter.received, meter.sent);
        const connection: Connection = {
          socket,
          count,
          inFlight: 0,
          newest: undefined,
          onClose: new Set(),
          timer: undefined,
        };
        connections.set(socket, connection);
        awaitRequest(connection, relayLimits.httpHeadersMs);
        socket.once('close', () => {
          clearTimeout(connection.timer);
          connections.delete(socket);
          count();
          for (const over of connection.onClose) over();
          resolve();
        });
        server.emit('connection', socket);
        socket.resume();
      }),
    drain() {
      draining = true;
      for (const { socket, inFlight } of connections.values()) if (inFlight === 0) socket.destroy();
    },
  };
}

/** It does not listen: connections are handed to it. */
function createBareServer(): Server {
  const server = createServer({
    maxHeaderSize: headerBytes,
    keepAliveTimeout: relayLimits.httpKeepAliveMs,
    // Node would answer a request without one by itself, uncounted.
    requireHostHeader: false,
    ...onlyWebSockets,
  });
  // Node would silently drop headers beyond a maximum number; their size is bounded anyway.
  server.maxHeadersCount = 0;
  server.requestTimeout = 0;
  server.timeout = relayLimits.httpIdleMs;
  return server;
}

/** Closes a connection without a request, unless one comes in time. */
function awaitRequest(connection: Connection, ms: number): void {
  clearTimeout(connection.timer);
  connection.timer = setTimeout(() => connection.socket.destroy(), ms);
}
