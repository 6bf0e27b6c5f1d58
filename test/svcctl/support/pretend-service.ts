/** A service that answers what a test says: for what the real one seldom does, or must not do because other tests use it. */
import { createServer, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';

export interface Asked {
  readonly method: string;
  /** With the query. */
  readonly path: string;
  readonly body: string;
}

export interface Given {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly data?: unknown;
  readonly error?: string;
  /** Events of the feed, in place of data. */
  readonly events?: string;
  /** The connection ends in the middle of the answer. */
  readonly breaksOff?: true;
}

export interface PretendService {
  readonly url: string;
  /** `GET /api/nodes`, in the order in which they came. */
  readonly asked: readonly string[];
  stop(): Promise<void>;
}

/**
 * @param answer undefined: a 404
 * @param tls PEM texts, with which it speaks https
 */
export async function startPretendService(
  answer: (asked: Asked) => Given | undefined,
  tls?: { readonly key: string; readonly cert: string },
): Promise<PretendService> {
  const asked: string[] = [];
  const listener: RequestListener = (request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => (body += chunk.toString()));
    request.on('end', () => {
      const { method = '', url: path = '' } = request;
      asked.push(`${method} ${path.split('?')[0]}`);
      const {
        status = 200,
        headers = {},
        data = null,
        error = null,
        events,
        breaksOff,
      } = answer({ method, path, body }) ?? { status: 404, error: 'not_found: nothing is here' };
      const type = events === undefined ? 'application/json' : 'text/event-stream';
      response.writeHead(status, { 'content-type': type, 'x-request-id': 'asked-1', ...headers });
      if (breaksOff) return void response.write('{', () => response.destroy());
      response.end(events ?? JSON.stringify({ success: status < 400, data, error }));
    });
  };
  const server = tls === undefined ? createServer(listener) : createTlsServer(tls, listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
