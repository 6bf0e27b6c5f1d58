/**
 * Answers on the REST port until the service is up: healthy, not ready, 503 for everything else. A start that waits for its
 * stores or reads a long log must not look dead. `build.ts` then takes over the port. Implements
 * `docs/contract/rest.md#beside-api`.
 */
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { release } from '../../../kernel/version.js';
import type { RestOptions } from '../deps.js';
import { failure } from '../answers/envelope.js';
import { createHttpServer } from './http-server.js';
import { createAnswersUnderWay } from './answers-under-way.js';
import { createRestSockets } from './sockets.js';

const reason = 'the service is starting; its log says what it waits for';

function answer(request: IncomingMessage, response: ServerResponse, waitsFor: () => readonly string[]): void {
  const path = request.url?.split('?')[0];
  const send = (status: number, body: object): void => {
    // Closed, so that the next request goes to the service.
    const headers = { 'content-type': 'application/json; charset=utf-8', 'retry-after': '1', connection: 'close' };
    response.writeHead(status, headers).end(request.method === 'HEAD' ? undefined : JSON.stringify(body));
  };
  if (path === '/healthz') send(200, { status: 'ok', ...release });
  else if (path === '/readyz') send(503, { ready: false, reasons: [reason, ...waitsFor()] });
  else send(503, failure('unavailable', reason));
}

/**
 * Listens until it is closed; then the port is free.
 * @param waitsFor sentences that say what the start waits for
 * @throws Error of the system when it cannot listen there
 */
export async function answerWhileStarting(
  listen: { readonly host: string; readonly port: number },
  tls: RestOptions['tls'],
  trustedProxies: readonly string[],
  waitsFor: () => readonly string[] = () => [],
): Promise<{ readonly port: number; close(): Promise<void> }> {
  // Refusals before the service is up are not logged.
  const refusals = { note: () => undefined };
  const sockets = createRestSockets({ trustedProxies, refusals });
  const answers = createAnswersUnderWay({ refusals });
  const server = createHttpServer((request, response) => answer(request, response, waitsFor), {
    tls,
    sockets,
    answers,
  });
  server.listen(listen.port, listen.host);
  await once(server, 'listening');
  let closed: Promise<unknown> | undefined;
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      if (closed === undefined) {
        closed = once(server, 'close');
        server.close();
        server.closeAllConnections();
      }
      await closed;
    },
  };
}
