/**
 * The OpenAPI 3.1 document, generated from the schemas that validate requests, and its page `/docs`
 * (`docs-page.ts`). Implements `docs/contract/rest.md#beside-api`.
 */
import swagger from '@fastify/swagger';
import { createJsonSchemaTransform, createJsonSchemaTransformObject } from '@fastify/type-provider-zod';
import { z } from 'zod';
import type { RestApp, RestOptions } from './deps.js';
import { docsPage } from './docs-page.js';
import { usedComponents } from './openapi-components.js';

export async function installOpenApi(app: RestApp, options: RestOptions): Promise<void> {
  const complete = createJsonSchemaTransformObject({});
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Gateway control service',
        version: options.version,
        description:
          'Every answer under /api is the envelope {success, data, error}; `error` is "<code>: <sentence>". A command answers `x-position`; a GET with `x-min-position` shows at least that.',
      },
      components: {
        securitySchemes: {
          bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' },
          metricsToken: { type: 'http', scheme: 'bearer' },
        },
      },
      security: [{ bearer: [] }],
    },
    transform: createJsonSchemaTransform({ skipList: [] }),
    transformObject: (document) => usedComponents(complete(document)),
  });
}

export function openApiRoutes(app: RestApp): void {
  const config = { access: 'open', takes: 'none' } as const;
  const tags = ['operation'];
  let page: string | undefined;

  app.route({
    method: 'GET',
    url: '/openapi.json',
    exposeHeadRoute: true,
    config,
    schema: {
      summary: 'This document',
      tags,
      security: [],
      response: { 200: z.record(z.string(), z.unknown()) },
    },
    serializerCompiler: () => (data) => JSON.stringify(data),
    handler: async () => ({ ...app.swagger() }),
  });

  app.route({
    method: 'GET',
    url: '/docs',
    exposeHeadRoute: true,
    config,
    schema: {
      summary: 'This document as a page',
      tags,
      produces: ['text/html'],
      security: [],
      response: { 200: z.string() },
    },
    serializerCompiler: () => (data) => String(data),
    handler: async (_request, reply) => {
      page ??= docsPage(app.swagger());
      return reply.header('content-type', 'text/html; charset=utf-8').send(page);
    },
  });
}
