/** The HTTP(S) server under fastify, with its bounds. Not listening: the app does. Implements SVC_HTTP_TLS_*. */
import { createServer } from 'node:http';
import type { RequestListener, Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { RestApp, RestOptions } from './deps.js';
import { tuning } from './tuning.js';

/** How long an idle connection is kept, longer than load balancers keep theirs. */
const keepAliveMs = 72_000;

export function createHttpServer(handler: RequestListener, tls: RestOptions['tls']): Server {
  const server =
    tls === undefined ? createServer(handler) : createTlsServer({ ...tls, minVersion: 'TLSv1.2' }, handler);
  server.requestTimeout = tuning.requestTimeoutMs;
  server.headersTimeout = tuning.headersTimeoutMs;
  server.keepAliveTimeout = keepAliveMs;
  server.maxConnections = tuning.connections;
  return server;
}

/** A request that never ends must not keep the service from stopping: what is still open after a while is cut. */
export function boundClosing(app: RestApp): void {
  app.addHook('preClose', async () => {
    const timer = setTimeout(() => app.server.closeAllConnections(), tuning.closeWithinMs);
    app.server.once('close', () => clearTimeout(timer));
  });
}
