/**
 * Proxies the HTTP requests of a listener's legacy routes on node:http: each request has its own route and its own
 * connection to the next hop; bodies stream both ways with backpressure. `http-upgrade.ts` handles WebSockets.
 * Implements `HttpProxyRule` of `docs/contract/wire.md#configuration`.
 */
import {
  createServer,
  request as sendRequest,
  STATUS_CODES,
  type ClientRequest,
  type IncomingMessage,
  type ServerResponse,
  type Server,
} from 'node:http';
import type { Socket } from 'node:net';
import { pipeline, type Duplex } from 'node:stream';
import type { HttpRoutes } from '../plan/matches.js';
import type { RelayRoute } from '../plan/plan.js';
import { dialNextHop, whileOpen, type Dialled } from './dial.js';
import { readTarget, requestHeaders, responseHeaders, upgradeOf, withoutUpgrade } from './http-headers.js';
import { answer, joinUpgraded, sendHead } from './http-upgrade.js';
import { relayLimits } from './limits.js';
import { followBytes, type Meter } from './meters.js';
import type { RelayDependencies } from './relay.js';
import { reset } from './splice.js';

const headerBytes = 16 * 1024;
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

interface Connection {
  readonly socket: Socket;
  /** Counts the bytes since the last call. */
  readonly count: () => void;
  inFlight: number;
  /** Called when the connection is closed: Node does not notify a response that waits for its turn. */
  readonly onClose: Set<() => void>;
  /** Ends the connection if the next request's headers take too long. */
  timer: NodeJS.Timeout | undefined;
}

function asksForWebSocket({ method, rawHeaders }: IncomingMessage): boolean {
  return method === 'GET' && upgradeOf(rawHeaders) === 'websocket';
}

/** Newer releases of Node ask before they treat a request as an upgrade; older ones, and the types, do not. */
const onlyWebSockets: object = { shouldUpgradeCallback: asksForWebSocket };

/** One request, counted as a session of the listener. */
interface Session {
  readonly connection: Connection;
  /** Only its first call counts. */
  end(failed: boolean): void;
}

/** The parts of the proxy that a request uses. */
interface Context {
  readonly dependencies: RelayDependencies;
  /** Those of the moment. */
  readonly routes: HttpRoutes<RelayRoute>;
  readonly draining: () => boolean;
}

/** A request's next hop: connected, with the path and the `Host` header to send. */
type Reached = Dialled & { readonly path: string; readonly authority: string };

/** @param meter of the listener: each request is one of its sessions */
export function createHttpProxy(dependencies: RelayDependencies, meter: Meter): HttpProxy {
  const connections = new Map<Duplex, Connection>();
  let routes: HttpRoutes<RelayRoute> | undefined;
  let draining = false;
  const context: Context = { dependencies, routes: (host, path) => routes?.(host, path), draining: () => draining };

  const server = createBareServer();

  const awaitRequest = (connection: Connection, ms: number): void => {
    clearTimeout(connection.timer);
    connection.timer = setTimeout(() => connection.socket.destroy(), ms);
  };

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
    let over = false;
    return {
      connection,
      end(failed) {
        if (over) return;
        over = true;
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

  server.on('request', (request, response) => {
    const session = begin(request.socket);
    if (session !== undefined) passOn(request, response, session, context).catch(() => response.destroy());
  });
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
  server.on('clientError', (error: NodeJS.ErrnoException, duplex: Duplex) =>
    refuse(duplex, error.code === 'HPE_HEADER_OVERFLOW' ? 431 : 400),
  );

  return {
    route(next) {
      routes = next;
    },
    serve: (socket) =>
      new Promise((resolve) => {
        if (socket.destroyed) return resolve();
        const count = followBytes(socket, meter.received, meter.sent);
        const connection: Connection = { socket, count, inFlight: 0, onClose: new Set(), timer: undefined };
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
    ...onlyWebSockets,
  });
  // Node would silently drop headers beyond a maximum number; their size is bounded anyway.
  server.maxHeadersCount = 0;
  server.requestTimeout = 0;
  server.timeout = relayLimits.httpIdleMs;
  return server;
}

/** Proxies one request. */
async function passOn(
  request: IncomingMessage,
  response: ServerResponse,
  session: Session,
  context: Context,
): Promise<void> {
  const { connection } = session;
  const gone = new AbortController();
  const refuse = (status: number): void => {
    if (response.headersSent) return void response.destroy();
    const reason = STATUS_CODES[status] ?? '';
    const body = `${status} ${reason}\n`;
    response.writeHead(status, reason, { 'content-type': 'text/plain', 'content-length': body.length }).end(body);
  };
  let failed = false;
  const fail = (status: number): void => {
    failed = true;
    refuse(status);
  };
  const over = (): void => {
    connection.onClose.delete(over);
    gone.abort();
    // The rest of its body is dropped, so that the client gets the answer and may send its next request.
    request.unpipe();
    request.resume();
    session.end(failed || !response.writableFinished);
  };
  connection.onClose.add(over);
  response.once('close', over);

  const reached = await reach(request, context, gone.signal);
  if (typeof reached === 'number') return fail(reached);
  const { socket: stream } = reached.side;
  const endLink = reached.link.meter.begin();
  const countLink = followBytes(stream, reached.link.meter.received, reached.link.meter.sent);
  const outgoing = forward(request, reached, undefined);
  const idle = (): void => {
    fail(request.complete || outgoing.writableNeedDrain ? 504 : 408);
    outgoing.destroy();
  };
  stream.setTimeout(relayLimits.httpAnswerMs, idle);
  stream.once('close', () => {
    countLink();
    endLink(failed);
  });
  gone.signal.addEventListener('abort', () => outgoing.destroy());
  outgoing.on('error', () => {
    // The next hop may answer before it has read the whole request, and leave the rest unread.
    if (!response.writableEnded) fail(502);
  });
  // When a next hop switches protocols unasked, Node closes its connection without an error.
  outgoing.once('close', () => {
    if (!gone.signal.aborted && !response.headersSent) fail(502);
  });
  outgoing.once('response', (incoming) => {
    stream.setTimeout(relayLimits.httpIdleMs);
    response.sendDate = false;
    const close = context.draining() ? ['Connection', 'close'] : [];
    const headers = [...responseHeaders(incoming.rawHeaders), ...close];
    try {
      response.writeHead(incoming.statusCode ?? 502, incoming.statusMessage ?? '', headers);
    } catch {
      // Node reads status lines that it does not write, such as 000.
      fail(502);
      return void outgoing.destroy();
    }
    response.flushHeaders();
    incoming.on('data', () => {
      connection.count();
      countLink();
    });
    // A response that breaks off must not look complete: the client's connection is destroyed as well.
    pipeline(incoming, response, () => undefined);
  });
  request.on('data', () => {
    connection.count();
    countLink();
  });
  // Sends the head now, because the body may come much later, or only after the next hop has spoken.
  if (!request.complete) outgoing.flushHeaders();
  request.pipe(outgoing);
}

/** Proxies a WebSocket request, which takes over the connection. */
async function joinWebSocket(
  request: IncomingMessage,
  socket: Socket,
  head: Buffer,
  session: Session,
  context: Context,
): Promise<void> {
  const { connection } = session;
  let failed = true;
  try {
    const reached = await whileOpen(socket, (signal) => reach(request, context, signal));
    if (typeof reached === 'number') return answer(socket, reached);
    const { side, link } = reached;
    const endLink = link.meter.begin();
    const countLink = followBytes(side.socket, link.meter.received, link.meter.sent);
    const count = (): void => {
      connection.count();
      countLink();
    };
    const outgoing = forward(request, reached, 'websocket');
    failed = !(await joinUpgraded({ socket, head, side, outgoing, count }));
    count();
    endLink(failed);
  } finally {
    session.end(failed);
  }
}

/** Finds the route of a request and connects to its next hop; or returns the status to answer with. */
async function reach(
  request: IncomingMessage,
  { dependencies, routes }: Context,
  gone: AbortSignal,
): Promise<Reached | number> {
  const target = readTarget(request.url ?? '', request.rawHeaders);
  if (target === undefined) return 400;
  const route = routes(target.host, target.path);
  if (route === undefined) return 404;
  const dialled = await dialNextHop(route, dependencies, gone);
  return dialled === undefined ? 502 : { ...dialled, path: target.path, authority: target.authority };
}

/** Sends the head of a request to its next hop. @param upgrade the protocol to upgrade to, if passed on */
function forward(request: IncomingMessage, reached: Reached, upgrade: string | undefined): ClientRequest {
  const method = request.method ?? 'GET';
  const { rawHeaders } = request;
  const clientAddress = request.socket.remoteAddress ?? 'unknown';
  const outgoing = sendRequest({
    createConnection: () => reached.side.stream,
    method,
    path: reached.path,
    headers: requestHeaders({ method, rawHeaders, authority: reached.authority, clientAddress, upgrade }),
    maxHeaderSize: headerBytes,
  });
  outgoing.maxHeadersCount = 0;
  let interim = 0;
  outgoing.on('information', () => {
    interim += 1;
    if (interim > relayLimits.httpInterimAnswers) outgoing.destroy(new Error('too many interim answers'));
  });
  outgoing.once('socket', (socket) => socket.resume());
  return outgoing;
}
