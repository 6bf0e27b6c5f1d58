/** A receiver of webhooks on 127.0.0.1, which notes what it gets and answers as the test says. */
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Received {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly json: { readonly type: string; readonly at: string; readonly cursor?: string; readonly data: never };
}

export interface Receiver {
  readonly url: string;
  /** In the order in which they came. */
  readonly received: readonly Received[];
  /** How it answers from now on; 204 at first. */
  answer: (response: ServerResponse, message: Received) => void;
  close(): Promise<void>;
}

export const status =
  (code: number, headers: Record<string, string> = {}) =>
  (response: ServerResponse): void =>
    void response.writeHead(code, headers).end();

export async function startReceiver(port = 0): Promise<Receiver> {
  const received: Received[] = [];
  const receiver = { answer: status(204) as Receiver['answer'] };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('error', () => undefined);
    response.on('error', () => undefined);
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString();
      const isJson = request.headers['content-type'] === 'application/json';
      const json = (isJson ? JSON.parse(body) : null) as Received['json'];
      const message = { headers: request.headers, body, json };
      received.push(message);
      receiver.answer(response, message);
    });
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
  return Object.assign(receiver, {
    url,
    received,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  });
}
