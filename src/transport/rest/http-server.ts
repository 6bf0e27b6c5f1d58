/** The HTTP(S) server under fastify, with its bounds. Not listening: the app does. Implements SVC_HTTP_TLS_*. */
import { createServer } from 'node:http';
import type { RequestListener, Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { limits } from '../../kernel/limits.js';
import type { RestApp, RestOptions } from './deps.js';

/** How long an idle connection is kept, longer than load balancers keep theirs. */
const keepAliveMs = 72_000;

export function createHttpServer(handler: RequestListener, tls: RestOptions['tls']): Server {
  const server =
    tls === undefined ? createServer(handler) : createTlsServer({ ...tls, minVersion: 'TLSv1.2' }, handler);
  server.requestTimeout = limits.rest.requestTimeoutMs;
  server.headersTimeout = limits.rest.headersTimeoutMs;
  server.keepAliveTimeout = keepAliveMs;
  server.maxConnections = limits.rest.connections;
  return server;
}

/** A request that never ends must not keep the service from stopping: what is still open after a while is cut. */
export function boundClosing(app: RestApp): void {
  app.addHook('preClose', async () => {
    const timer = setTimeout(() => app.server.closeAllConnections(), limits.rest.closeWithinMs);
    app.server.once('close', () => clearTimeout(timer));
  });
}
