/**
 * Health, readiness and metrics, beside `/api` and without its envelope. Implements `docs/contract/rest.md#beside-api`.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { ServiceError } from '../../kernel/errors.js';
import { release } from '../../kernel/version.js';
import type { Budget } from './checks/address-budget.js';
import type { RestApp, RestDeps, RestOptions } from './deps.js';
import { failureSchema } from './answers/envelope.js';
import { bearerToken } from './checks/session-token.js';
import { component, documented } from './schemas/documented.js';

const readiness = component('Readiness', 'Whether the instance is ready', {
  ready: documented(z.boolean(), 'Whether this instance should get traffic', true),
  reasons: documented(
    z.array(z.string()),
    'Sentences on why not. While it is ready, at most that the read store is away, or not shared by another instance',
    [],
  ),
});
const health = component('Health', 'The process answers', {
  status: documented(z.literal('ok'), 'Always'),
  version: documented(z.string(), 'The version of the service', '0.2.0'),
  commit: documented(
    z.string(),
    'What it was built from; ends in `-dirty` if files had changed since, `unknown` if it was not built in a clone',
    '1f2e3d4c5b6a',
  ),
  compiler_version: documented(z.number().int(), 'The version of its compiler', 3),
  format: documented(z.number().int(), 'The format of log, archive and data folder', 1),
});
const open = { access: 'open', takes: 'none' } as const;

/** @param budget the budget of requests without a token; health and readiness are free, since orchestrators ask for them */
export function probeRoutes(app: RestApp, deps: RestDeps, budget: Budget, options: RestOptions): void {
  const hasToken = ({ headers }: FastifyRequest): boolean =>
    options.metricsToken !== undefined && sameSecret(bearerToken(headers.authorization), options.metricsToken);

  app.get('/healthz', {
    exposeHeadRoute: true,
    config: open,
    schema: {
      operationId: 'getHealth',
      summary: 'The process answers',
      description: 'Says nothing about stores: an instance that waits for them must not be restarted.',
      security: [],
      response: { 200: health },
    },
    handler: async () => ({ status: 'ok' as const, ...release }),
  });

  app.get('/readyz', {
    exposeHeadRoute: true,
    config: open,
    schema: {
      operationId: 'getReadiness',
      summary: 'The event store is in reach and the log is followed; else 503 with reasons',
      description: 'Whether this instance should get traffic.',
      security: [],
      response: {
        200: readiness,
        503: z.union([readiness, failureSchema]).meta({ description: 'Not ready, or starting or stopping' }),
      },
    },
    handler: async (_request, reply) => {
      const { ready, reasons } = deps.readiness();
      return reply.code(ready ? 200 : 503).send({ ready, reasons });
    },
  });

  app.get('/metrics', {
    exposeHeadRoute: true,
    config: { ...open, refuses: ['rate_limited'] },
    // A scrape with the metrics token does not count as a stranger's.
    onRequest: async (request) => (hasToken(request) ? undefined : budget(request)),
    schema: {
      operationId: 'getMetrics',
      summary: 'Prometheus metrics',
      description: 'Needs the metrics token when the settings give one; the access token is no substitute.',
      produces: ['text/plain'],
      security: options.metricsToken === undefined ? [] : [{ metricsToken: [] }],
      response: {
        200: z.string().meta({ description: 'The Prometheus text format', examples: ['# TYPE up gauge\nup 1\n'] }),
      },
    },
    // Prometheus text is not JSON, so its schema does not serialize it.
    serializerCompiler: () => (data) => (typeof data === 'string' ? data : JSON.stringify(data)),
    handler: async (request, reply) => {
      if (options.metricsToken !== undefined && !hasToken(request)) {
        throw new ServiceError(
          'unauthenticated',
          'expected the metrics token in the header Authorization: Bearer <token>',
        );
      }
      return reply.header('content-type', 'text/plain; version=0.0.4; charset=utf-8').send(await deps.metrics());
    },
  });
}

/** Compares in constant time, whatever the lengths. */
function sameSecret(given: string | undefined, wanted: string): boolean {
  const hash = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(hash(given ?? ''), hash(wanted)) && given !== undefined;
}
