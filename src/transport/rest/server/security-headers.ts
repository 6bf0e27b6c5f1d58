/**
 * The security headers of every answer: those of helmet, asked for once at the start. Helmet itself makes them anew for each
 * request, which costs more than the gate, and they are the same every time.
 * Implements `docs/contract/rest.md#envelope`.
 */
import helmet from '@fastify/helmet';
import type { FastifyHelmetOptions } from '@fastify/helmet';
import Fastify from 'fastify';
import type { RestApp } from '../deps.js';
import { noSchemaCompilers } from './no-schema-compilers.js';

/** Sends helmet's headers with every answer. */
export async function installSecurityHeaders(app: RestApp, options: FastifyHelmetOptions): Promise<void> {
  const headers = await headersOf(options);
  app.addHook('onRequest', (_request, reply, next) => {
    void reply.headers(headers);
    next();
  });
}

/** What helmet adds to an answer, read from the answer of an app that has nothing else. */
async function headersOf(options: FastifyHelmetOptions): Promise<Readonly<Record<string, string>>> {
  const bare = Fastify({ schemaController: noSchemaCompilers });
  try {
    await bare.register(helmet, options);
    bare.get('/', async (_request, reply) => reply.raw.getHeaders());
    return (await bare.inject('/')).json<Record<string, string>>();
  } finally {
    await bare.close();
  }
}
