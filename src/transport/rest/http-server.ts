/**
 * The HTTP(S) server under fastify, with its bounds. It does not listen: the app does. Implements SVC_HTTP_TLS_* of
 * `docs/contract/configuration.md#configuration`.
 */
import { createServer } from 'node:http';
import type { RequestListener, Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { RestApp, RestOptions } from './deps.js';
import { tuning } from './tuning.js';

/** Longer than load balancers keep idle connections, so that the balancer closes first. */
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

/** Closes the connections that are still open a while after the stop began: an endless request must not delay it. */
export function boundClosing(app: RestApp): void {
  app.addHook('preClose', async () => {
    const timer = setTimeout(() => app.server.closeAllConnections(), tuning.closeWithinMs);
    app.server.once('close', () => clearTimeout(timer));
  });
}
