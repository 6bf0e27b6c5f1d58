/** A service that answers what a test says: for what the real one does seldom, or must not do to other tests. */
import { createServer } from 'node:http';
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
}

export interface PretendService {
  readonly url: string;
  /** `GET /api/nodes`, in the order in which they came. */
  readonly asked: readonly string[];
  stop(): Promise<void>;
}

/** @param answer undefined: a 404 */
export async function startPretendService(answer: (asked: Asked) => Given | undefined): Promise<PretendService> {
  const asked: string[] = [];
  const server = createServer((request, response) => {
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
      } = answer({ method, path, body }) ?? { status: 404, error: 'not_found: nothing is here' };
      response.writeHead(status, { 'content-type': 'application/json', 'x-request-id': 'asked-1', ...headers });
      response.end(JSON.stringify({ success: status < 400, data, error }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
