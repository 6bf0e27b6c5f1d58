/**
 * The floor of a REST route: fastify that answers with the same bytes as the service, from memory, and reads the body of a
 * command as JSON. No token, no validation, no domain, nothing durable.
 */
import Fastify from 'fastify';
import { answerParent } from '../child.js';

export interface BareAnswer {
  readonly method: 'GET' | 'POST' | 'PUT';
  readonly path: string;
  readonly status: number;
  readonly headers: { readonly [name: string]: string };
  readonly body: string;
}

answerParent({
  async serve(answers: readonly BareAnswer[]) {
    const app = Fastify({ logger: false });
    for (const { method, path, status, headers, body } of answers) {
      app.route({
        method,
        url: path,
        handler: async (_request, reply) => reply.code(status).headers(headers).send(body),
      });
    }
    return app.listen({ host: '127.0.0.1', port: 0 });
  },
});
