/**
 * CORS for the configured origins. A preflight from one of them is answered before any other check; any other OPTIONS
 * ends in a 401, 404 or 405. Implements `docs/contract/rest.md#envelope`, and SVC_HTTP_CORS_ORIGINS of
 * `docs/contract/configuration.md#configuration`.
 */
import cors from '@fastify/cors';
import type { FastifyRequest } from 'fastify';
import type { RestApp } from '../deps.js';
import { ofHost, originOf } from './session-token.js';

const exposed = [
  'etag',
  'location',
  'retry-after',
  'x-position',
  'x-projection-lag',
  'x-request-id',
  'x-telemetry-stale',
];

export async function installCors(app: RestApp, origins: readonly string[]): Promise<void> {
  if (origins.length === 0) return;
  const allowed = new Set(origins);
  await app.register(cors, {
    delegator: (request: FastifyRequest, callback) => {
      const { origin } = request.headers;
      if (origin === undefined || !allowed.has(origin)) {
        // Not `origin: false`: this way the plugin still sends `Vary`, so caches keep the answers of origins apart.
        callback(null, { origin: (_origin, done) => done(null, false), preflight: false });
        return;
      }
      callback(null, {
        origin,
        // Only requests from pages of the same host carry the cookie.
        credentials: ofHost(originOf(`http://${request.headers.host ?? ''}`)?.hostname ?? '')(origin),
        preflight: request.headers['access-control-request-method'] !== undefined,
        methods: ['GET', 'POST', 'PUT', 'DELETE'],
        allowedHeaders: [
          'authorization',
          'content-type',
          'idempotency-key',
          'if-match',
          'last-event-id',
          'x-min-position',
          'x-request-id',
        ],
        exposedHeaders: exposed,
        maxAge: 600,
      });
    },
  });
}
