/**
 * One request of a client: finds its route, connects to the next hop, and proxies it, or hands a WebSocket to
 * `http-upgrade.ts`. `http-proxy.ts` has the connections that requests come on.
 */
import {
  request as sendRequest,
  STATUS_CODES,
  type ClientRequest,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import type { Socket } from 'node:net';
import { pipeline } from 'node:stream';
import type { HttpRoutes } from '../plan/matches.js';
import type { RelayRoute } from '../plan/plan.js';
import { dialNextHop, whileOpen, type Dialled } from './dial.js';
import { isCoded, readTarget, requestHeaders, responseHeaders, valuesOf } from './http-headers.js';
import { answer, headText, joinUpgraded } from './http-upgrade.js';
import { relayLimits } from './limits.js';
import { followBytes } from './meters.js';
import type { RelayDependencies } from './relay.js';

export const headerBytes = 16 * 1024;

export interface Connection {
  readonly socket: Socket;
  /** Counts the bytes since the last call. */
  readonly count: () => void;
  inFlight: number;
  /** Its last request. `fail` answers it with a status, unless an answer has begun: that breaks off. */
  newest: { readonly request: IncomingMessage; fail(status: number): void } | undefined;
  /** Called when the connection is closed: Node does not notify a response that waits for its turn. */
  readonly onClose: Set<() => void>;
  /** Ends the connection if the next request's headers take too long. */
  timer: NodeJS.Timeout | undefined;
}

/** One request, counted as a session of the listener. */
export interface Session {
  readonly connection: Connection;
  /** Called once. */
  end(failed: boolean): void;
}

/** The parts of the proxy that a request uses. */
export interface Context {
  readonly dependencies: RelayDependencies;
  /** Those of the moment. */
  readonly routes: HttpRoutes<RelayRoute>;
  readonly draining: () => boolean;
}

/** A request's next hop: connected, with the path and the `Host` header to send. */
type Reached = Dialled & { readonly path: string; readonly authority: string };

/** Proxies one request. */
export async function passOn(
  request: IncomingMessage,
  response: ServerResponse,
  session: Session,
  context: Context,
): Promise<void> {
  const { connection } = session;
  const gone = new AbortController();
  let failed = false;
  const fail = (status: number): void => {
    failed = true;
    if (response.headersSent) return void response.destroy();
    // What comes after a request that makes no sense makes none either.
    if (status === 400) response.shouldKeepAlive = false;
    const reason = STATUS_CODES[status] ?? '';
    const body = `${status} ${reason}\n`;
    response.writeHead(status, reason, { 'content-type': 'text/plain', 'content-length': body.length }).end(body);
  };
  connection.newest = { request, fail };
  const over = (): void => {
    connection.onClose.delete(over);
    response.off('close', over);
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
  let lost = false;
  stream.once('end', () => (lost = reached.side.isLost()));
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
  outgoing.on('information', ({ statusCode, rawHeaders }) => {
    // HTTP/1.0 knows no interim answers.
    if (request.httpVersion === '1.0') return;
    const line = `HTTP/1.1 ${statusCode} ${STATUS_CODES[statusCode] ?? ''}`;
    if (statusCode === 100) response.writeContinue();
    // Node has no general way to write others: they are lost on a response that waits for its turn.
    else response.socket?.write(headText(line, responseHeaders(rawHeaders)));
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
    // An answer without a length ends with its connection, as which Node also reports a reset right behind data.
    const lengths = ['content-length', 'transfer-encoding'].flatMap((name) => valuesOf(incoming.rawHeaders, name));
    if (lengths.length === 0) incoming.once('end', () => lost && fail(502));
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
export async function joinWebSocket(
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
  if (isCoded(request.rawHeaders)) return 501;
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
