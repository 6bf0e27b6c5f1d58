/**
 * One HTTP caller on one persistent connection. It replaces `fetch`, which costs more than the servers under test. Not a
 * general client: answers must carry a content-length.
 */
import { once } from 'node:events';
import { connect } from 'node:net';

export interface CallerAnswer {
  readonly status: number;
  readonly body: string;
}

export interface HttpCaller {
  /** Sends JSON and waits for the answer; only one request at a time. @throws Error when the connection is lost */
  send(method: string, path: string, body: string | undefined): Promise<CallerAnswer>;
  close(): void;
}

/** Connects to `http://host:port`. @param token sent with each request, if given */
export async function openCaller(url: string, token: string | undefined, timeoutMs = 30_000): Promise<HttpCaller> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), noDelay: true });
  await once(socket, 'connect');
  socket.setTimeout(timeoutMs, () => socket.destroy(new Error(`no answer within ${timeoutMs} ms`)));
  const authorization = token === undefined ? '' : `authorization: Bearer ${token}\r\n`;
  let received = '';
  let waiting: { resolve: (answer: CallerAnswer) => void; reject: (error: Error) => void } | undefined;

  socket.setEncoding('latin1');
  socket.on('data', (chunk: string) => {
    received += chunk;
    const headEnd = received.indexOf('\r\n\r\n');
    if (headEnd < 0) return;
    const length = /\r\ncontent-length: (\d+)/i.exec(received.slice(0, headEnd + 2))?.[1];
    if (length === undefined) return void socket.destroy(new Error('an answer without a content-length'));
    const end = headEnd + 4 + Number(length);
    if (received.length < end) return;
    const answer = { status: Number(received.slice(9, 12)), body: received.slice(headEnd + 4, end) };
    received = received.slice(end);
    const caller = waiting;
    waiting = undefined;
    caller?.resolve(answer);
  });
  let failure: Error | undefined;
  const fail = (error: Error): void => {
    failure ??= error;
    waiting?.reject(failure);
    waiting = undefined;
  };
  socket.on('error', fail);
  socket.on('close', () => fail(new Error('the connection was closed')));

  return {
    send(method, path, body) {
      return new Promise((resolve, reject) => {
        if (failure !== undefined) return reject(failure);
        waiting = { resolve, reject };
        const head = `${method} ${path} HTTP/1.1\r\nhost: ${hostname}:${port}\r\n${authorization}`;
        const type = body === undefined ? '' : 'content-type: application/json\r\n';
        const length = body === undefined ? 0 : Buffer.byteLength(body);
        socket.write(`${head}${type}content-length: ${length}\r\n\r\n${body ?? ''}`);
      });
    },
    close() {
      socket.destroy();
    },
  };
}

/**
 * How long a route is called before it is measured, in milliseconds: Node compiles what it runs often, in the first ten
 * thousand requests of a kind, and meanwhile one costs up to five times what it costs afterwards.
 */
export const warmUpMs = 10_000;

/** Answers per second over `forMs`; each caller sends its next request when it has its answer. */
export async function throughput(
  callers: readonly HttpCaller[],
  forMs: number,
  request: () => { readonly method: string; readonly path: string; readonly body: string | undefined },
  expected: number,
): Promise<{ readonly perSecond: number; readonly latenciesMs: readonly number[] }> {
  const latenciesMs: number[] = [];
  const began = performance.now();
  const until = began + forMs;
  await Promise.all(
    callers.map(async (caller) => {
      for (let sentAt = performance.now(); sentAt < until; sentAt = performance.now()) {
        const { method, path, body } = request();
        const answer = await caller.send(method, path, body);
        if (answer.status !== expected) throw new Error(`${method} ${path} answered ${answer.status}: ${answer.body}`);
        latenciesMs.push(performance.now() - sentAt);
      }
    }),
  );
  return { perSecond: (latenciesMs.length * 1000) / (performance.now() - began), latenciesMs };
}
