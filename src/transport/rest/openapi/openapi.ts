/**
 * Serves the OpenAPI document (`openapi-document.ts`), and Swagger UI over it at `/docs`, which is built with the console
 * (`console/src/docs`). Implements `docs/contract/rest.md#beside-api`.
 */
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { z } from 'zod';
import { sendCompressed, type Compressed } from '../answers/accepted.js';
import type { Budget } from '../checks/address-budget.js';
import type { DeclaredRoute } from '../route-declaration.js';
import type { BuiltConsole } from '../console/console-routes.js';
import type { RestApp, RestOptions } from '../deps.js';
import { withPauses } from '../../../kernel/pieces.js';
import { openApiDocument } from './openapi-document.js';

/**
 * @param routes every route of the app, these two included; read on the first request
 * @param budget the budget of requests without a token
 */
export function openApiRoutes(
  app: RestApp,
  routes: readonly DeclaredRoute[],
  budget: Budget,
  { version }: RestOptions,
  pages: Pick<BuiltConsole, 'page'>,
): void {
  const config = { access: 'open', takes: 'none', refuses: ['rate_limited'] } as const;
  let made: Promise<Compressed> | undefined;
  app.get('/openapi.json', {
    exposeHeadRoute: true,
    config,
    schema: {
      operationId: 'getOpenApiDocument',
      summary: 'This document',
      description: 'OpenAPI 3.1, made from the schemas that validate requests and answers.',
      security: [],
      response: {
        200: z.looseObject({
          openapi: z.string().meta({ description: 'Version of the standard', examples: ['3.1.0'] }),
        }),
      },
    },
    onRequest: budget,
    async handler(request, reply) {
      const document = await (made ??= compressed(routes, version));
      return sendCompressed(request, reply.header('content-type', 'application/json; charset=utf-8'), document);
    },
  });

  app.get('/docs', {
    exposeHeadRoute: true,
    config,
    schema: {
      operationId: 'getDocsPage',
      summary: 'This document as a page',
      description: 'Swagger UI, without anything from elsewhere.',
      produces: ['text/html'],
      security: [],
      response: { 200: z.string().meta({ description: 'The page', examples: ['<!doctype html>…'] }) },
    },
    onRequest: budget,
    handler: pages.page('docs'),
  });
}

/** Made at the first request, and kept. */
async function compressed(routes: readonly DeclaredRoute[], version: string): Promise<Compressed> {
  const plain = Buffer.from(JSON.stringify(await withPauses(openApiDocument(routes, version))));
  return { plain, variants: [{ coding: 'gzip', bytes: await promisify(gzip)(plain) }] };
}
