/**
 * Serves the OpenAPI document (`openapi-document.ts`) and its page `/docs` (`docs-page.ts`). Implements
 * `docs/contract/rest.md#beside-api`.
 */
import { z } from 'zod';
import type { DescribedRoute } from './described.js';
import type { RestApp, RestOptions } from './deps.js';
import { docsPage } from './docs-page.js';
import type { Document } from './openapi-document.js';
import { openApiDocument } from './openapi-document.js';
import { tagDescriptions } from './openapi-tags.js';

/** @param routes every route of the app, these two included; read on the first request */
export function openApiRoutes(app: RestApp, routes: readonly DescribedRoute[], { version }: RestOptions): void {
  const config = { access: 'open', takes: 'none' } as const;
  let made: Document | undefined;
  const document = (): Document => (made ??= openApiDocument(routes, version, tagDescriptions));
  let text: string | undefined;
  let page: string | undefined;

  app.route({
    method: 'GET',
    url: '/openapi.json',
    exposeHeadRoute: true,
    config,
    schema: {
      operationId: 'getOpenApiDocument',
      summary: 'This document',
      description: 'OpenAPI 3.1, made from the schemas that validate requests and answers.',
      tags: ['operation'],
      security: [],
      response: {
        200: z.looseObject({
          openapi: z.string().meta({ description: 'Version of the standard', examples: ['3.1.0'] }),
        }),
      },
    },
    serializerCompiler: () => () => (text ??= JSON.stringify(document())),
    handler: async () => ({ openapi: document().openapi }),
  });

  app.route({
    method: 'GET',
    url: '/docs',
    exposeHeadRoute: true,
    config,
    schema: {
      operationId: 'getDocsPage',
      summary: 'This document as a page',
      description: 'One HTML page without scripts and without anything from elsewhere.',
      tags: ['operation'],
      produces: ['text/html'],
      security: [],
      response: { 200: z.string().meta({ description: 'The page', examples: ['<!doctype html>…'] }) },
    },
    serializerCompiler: () => (data) => String(data),
    handler: async (_request, reply) => {
      page ??= docsPage(document());
      return reply.header('content-type', 'text/html; charset=utf-8').send(page);
    },
  });
}
