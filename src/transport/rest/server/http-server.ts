/**
 * The HTTP(S) server under fastify, with its bounds. It does not listen: the app does. Implements SVC_HTTP_TLS_* of
 * `docs/contract/configuration.md#configuration`.
 */
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer, type ServerOptions } from 'node:https';
import type { AnswersUnderWay, RestApp, RestOptions, RestSockets, ServedTls } from '../deps.js';
import { tuning, type Timeouts } from '../tuning.js';

/** Longer than load balancers keep idle connections, so that the balancer closes first. */
const keepAliveMs = 72_000;

interface HttpServerOptions {
  readonly tls: RestOptions['tls'];
  readonly sockets: Pick<RestSockets, 'guard'>;
  readonly answers: Pick<AnswersUnderWay, 'guard' | 'inTurn'>;
  /** Replace the numbers of `tuning.ts`. */
  readonly timeouts?: Timeouts | undefined;
}

export function createHttpServer(handler: RequestListener, options: HttpServerOptions): Server {
  const { tls, sockets, answers, timeouts = tuning.timeouts } = options;
  const listener = answers.inTurn(handler);
  const times = {
    headersTimeout: timeouts.headersMs,
    requestTimeout: timeouts.requestMs,
    connectionsCheckingInterval: timeouts.checkEveryMs,
    keepAliveTimeout: keepAliveMs,
    // Node's own refusal has no body; the gate refuses instead.
    requireHostHeader: false,
  };
  const server =
    tls === undefined
      ? createServer(times, listener)
      : overTls(tls, { ...times, handshakeTimeout: timeouts.headersMs }, listener);
  // Node would answer an expectation that it does not know with a 417 without a body.
  server.on('checkExpectation', listener);
  sockets.guard(server);
  answers.guard(server);
  return server;
}

/** New connections get a new certificate; those that are open stay. */
function overTls(tls: ServedTls, options: ServerOptions, listener: RequestListener): Server {
  const minVersion = 'TLSv1.2';
  const server = createTlsServer({ ...options, ...tls.current(), minVersion }, listener);
  const stop = tls.onChange(({ cert, key }) => server.setSecureContext({ cert, key, minVersion }));
  server.once('close', stop);
  return server;
}

/** Closes connections that are still open a while after the stop began: an endless request must not delay it. */
export function boundClosing(app: RestApp): void {
  app.addHook('preClose', async () => {
    const timer = setTimeout(() => app.server.closeAllConnections(), tuning.closeWithinMs);
    app.server.once('close', () => clearTimeout(timer));
  });
}
