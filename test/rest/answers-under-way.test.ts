/**
 * The edge of REST over real sockets: many requests of one connection in one write, and clients that do not read what they
 * asked for. `docs/contract/configuration.md#configuration`.
 */
import { once } from 'node:events';
import type { RequestListener, Server, ServerResponse } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { afterEach, describe, expect, test } from 'vitest';
import { createAnswersUnderWay } from '../../src/transport/rest/server/answers-under-way.js';
import { createHttpServer } from '../../src/transport/rest/server/http-server.js';
import { createRestSockets } from '../../src/transport/rest/server/sockets.js';
import { createCertificate, served } from '../support/certificate.js';
import { eventually } from '../support/eventually.js';

type Answers = Parameters<typeof createAnswersUnderWay>[0];

const refused: { readonly reason: string; readonly address: string }[] = [];
const refusals = { note: (event: (typeof refused)[number]) => void refused.push(event) };
const opened: Socket[] = [];
const servers: Server[] = [];

afterEach(async () => {
  for (const socket of opened.splice(0)) socket.destroy();
  for (const server of servers.splice(0)) {
    server.close();
    server.closeAllConnections();
    await once(server, 'close');
  }
  refused.length = 0;
});

const certificate = createCertificate();

async function serve(scheme: Scheme, listener: RequestListener, bounds: Answers['bounds'] = {}) {
  const sockets = createRestSockets({ trustedProxies: [], refusals });
  const answers = createAnswersUnderWay({ refusals, bounds });
  const tls = scheme === 'HTTPS' ? served(certificate) : undefined;
  const server = createHttpServer(listener, { tls, sockets, answers });
  server.listen(0, '127.0.0.1');
  servers.push(server);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  /** A client that reads nothing until `readAll`. */
  const dial = async (): Promise<Socket> => {
    const socket =
      tls === undefined ? connect(port, '127.0.0.1') : connectTls({ port, host: '127.0.0.1', ca: certificate.cert });
    opened.push(socket);
    socket.on('error', () => undefined);
    await once(socket, tls === undefined ? 'connect' : 'secureConnect');
    return socket;
  };
  return { sockets, answers, dial };
}

function readAll(socket: Socket): { readonly text: () => string } {
  let text = '';
  socket.on('data', (data: Buffer) => (text += data.toString('latin1')));
  return { text: () => text };
}

const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`;
/** More than the system takes for a client that does not read. */
const large = Buffer.alloc(16 * 1024 * 1024);

type Scheme = 'HTTP' | 'HTTPS';
describe.each<Scheme>(['HTTP', 'HTTPS'])('over %s', (scheme) => {
  test('of 2,000 requests in one write 8 are answered at a time, all of them, and in their order', async () => {
    let [underWay, most] = [0, 0];
    const { dial, answers } = await serve(scheme, (request, response) => {
      underWay += 1;
      most = Math.max(most, underWay);
      setImmediate(() => {
        underWay -= 1;
        response.setHeader('x-path', request.url ?? '').end();
      });
    });
    const client = await dial();
    const all = readAll(client);
    client.write(Array.from({ length: 2_000 }, (_, index) => get(`/${index}`)).join(''));
    await eventually(() => all.text().match(/x-path/g)?.length).toBe(2_000);
    expect([...all.text().matchAll(/x-path: \/(\d+)/g)].map(([, index]) => Number(index))).toEqual(
      Array.from({ length: 2_000 }, (_, index) => index),
    );
    expect(most).toBe(8);
    await eventually(() => answers.waitingBytes()).toBe(0);
    expect(refused).toEqual([]);
  });

  test('requests that wait their turn do not keep another connection waiting', async () => {
    const { dial } = await serve(scheme, (request, response) => {
      if (request.url === '/quick') response.end();
    });
    (await dial()).write(get('/for-ever').repeat(1_000));
    const other = await dial();
    const all = readAll(other);
    other.write(get('/quick'));
    await eventually(() => all.text()).toContain('200 OK');
  });

  test('a connection with requests under way is not read further, whatever their bodies are', async () => {
    const bodies: number[] = [];
    const waiting: ServerResponse[] = [];
    const { dial, answers } = await serve(scheme, (request, response) => {
      let bytes = 0;
      request.on('data', (chunk: Buffer) => (bytes += chunk.length));
      request.on('end', () => {
        bodies.push(bytes);
        waiting.push(response);
      });
    });
    const client = await dial();
    const all = readAll(client);
    const post = `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 20000\r\n\r\n${'x'.repeat(20_000)}`;
    client.write(post.repeat(200));
    await eventually(() => waiting.length).toBe(8);
    // What one read of the socket brings, not the four megabytes that the client has sent.
    expect(answers.waitingBytes()).toBeLessThan(1024 * 1024);
    for (let answered = 0; answered < 200;) {
      await eventually(() => waiting.length).toBeGreaterThan(0);
      expect(waiting.length).toBeLessThanOrEqual(8);
      for (const response of waiting.splice(0)) {
        response.end('done');
        answered += 1;
      }
    }
    await eventually(() => all.text().match(/done/g)?.length).toBe(200);
    expect(new Set(bodies)).toEqual(new Set([20_000]));
  });

  test('a client that takes nothing of its answer is ended after the time', async () => {
    const { dial, sockets } = await serve(scheme, (_request, response) => response.end(large), {
      withoutProgressMs: 600,
    });
    const client = await dial();
    client.write(get('/'));
    await eventually(() => refused).toEqual([{ reason: 'rest_answer_not_taken', address: '127.0.0.1' }]);
    await eventually(() => sockets.open).toBe(0);
  });

  test('a client that takes its answer slowly gets all of it', async () => {
    const { dial } = await serve(scheme, (_request, response) => response.end(large), { withoutProgressMs: 2_000 });
    const client = await dial();
    client.write(get('/'));
    let bytes = 0;
    let pauseAt = 0;
    // It takes longer than the limit in total, but never pauses for that long.
    client.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes < pauseAt) return;
      pauseAt += large.length / 8;
      client.pause();
      setTimeout(() => client.resume(), 300);
    });
    await eventually(() => [refused, bytes > large.length]).toEqual([[], true]);
  });

  test('a request that takes long to answer is waited for, and an idle connection is kept', async () => {
    let finish: (() => void) | undefined;
    const { dial } = await serve(
      scheme,
      (request, response) => {
        if (request.url === '/slow') finish = () => void response.end('at last');
        else response.end(request.url === '/large' ? large : 'at once');
      },
      { withoutProgressMs: 120 },
    );
    const [slow, idle] = [await dial(), await dial()];
    const [slowText, idleText] = [readAll(slow), readAll(idle)];
    idle.write(get('/'));
    slow.write(get('/slow'));
    await eventually(() => idleText.text()).toContain('at once');
    const stuck = await dial();
    stuck.write(get('/large'));
    // By then the time is over for the others too.
    await eventually(() => refused.length).toBe(1);
    finish?.();
    await eventually(() => slowText.text()).toContain('at last');
    idle.write(get('/'));
    await eventually(() => idleText.text().match(/at once/g)?.length).toBe(2);
    expect(refused).toHaveLength(1);
  });

  test('when all answers that wait are too much together, the connection that holds most is ended', async () => {
    const { dial, sockets, answers } = await serve(
      scheme,
      (request, response) => response.end(large.subarray(0, Number(request.url?.slice(1)) * 1024 * 1024)),
      { waitingBytes: 24 * 1024 * 1024 },
    );
    const [small, most] = [await dial(), await dial()];
    small.write(get('/8'));
    most.write(get('/16').repeat(2));
    await eventually(() => refused).toEqual([{ reason: 'rest_answers_too_large', address: '127.0.0.1' }]);
    await eventually(() => sockets.open).toBe(1);
    expect(answers.waitingBytes()).toBeLessThanOrEqual(24 * 1024 * 1024);
    // The other one gets its answer.
    let bytes = 0;
    small.on('data', (chunk: Buffer) => (bytes += chunk.length));
    await eventually(() => bytes).toBeGreaterThan(8 * 1024 * 1024);
  });

  test('a stream that holds most when all that wait are too much is not cut: it ends with its last words', async () => {
    const told: (string | undefined)[] = [];
    const served = await serve(
      scheme,
      ({ url }, response) => {
        response.write(large.subarray(0, Number(url?.slice(1)) * 1024 * 1024));
        served.answers.endsBy(response, () => {
          told.push(url);
          if (!response.writableEnded) response.end(`the last words of ${url}`);
        });
      },
      { waitingBytes: 20 * 1024 * 1024 },
    );
    const [less, most] = [await served.dial(), await served.dial()];
    less.write(get('/12'));
    most.write(get('/16'));
    // What it holds counts until it is taken, so it alone is told again.
    await eventually(() => told.length).toBeGreaterThan(1);
    const text = readAll(most);
    await eventually(() => text.text().slice(-40)).toContain('the last words of /16');
    expect(new Set(told)).toEqual(new Set(['/16']));
    expect(refused).toEqual([]);
  });
});
