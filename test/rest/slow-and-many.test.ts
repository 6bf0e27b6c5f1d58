/**
 * The edge of REST over real sockets: requests that arrive too slowly, and clients that open too many connections.
 * `docs/contract/rest.md#errors`.
 */
import { once } from 'node:events';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { afterEach, describe, expect, test } from 'vitest';
import { answerClientError } from '../../src/transport/rest/answers/errors.js';
import { createHttpServer } from '../../src/transport/rest/server/http-server.js';
import { createAnswersUnderWay } from '../../src/transport/rest/server/answers-under-way.js';
import { createRestSockets } from '../../src/transport/rest/server/sockets.js';
import { tuning } from '../../src/transport/rest/tuning.js';
import type { ServedTls } from '../../src/transport/rest/deps.js';
import { createCertificate, served } from '../support/certificate.js';
import { eventually } from '../support/eventually.js';

const timeouts = { headersMs: 200, requestMs: 500, checkEveryMs: 20 };
const refused: { readonly reason: string; readonly address: string }[] = [];
const refusals = { note: (event: (typeof refused)[number]) => void refused.push(event) };
const opened: { destroy(): void }[] = [];
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

async function answerBody(request: IncomingMessage, response: ServerResponse): Promise<void> {
  try {
    let bytes = 0;
    for await (const chunk of request as AsyncIterable<Buffer>) bytes += chunk.length;
    response.end(String(bytes));
  } catch {
    // The connection was cut.
  }
}

interface Limits {
  readonly tls?: ServedTls;
  readonly inAll?: number;
  readonly perAddress?: number;
  readonly trustedProxies?: readonly string[];
  /** No request is too slow. */
  readonly patient?: boolean;
  readonly requestMs?: number;
}

const patience = { headersMs: 60_000, requestMs: 60_000, checkEveryMs: 20 };

async function serve({
  trustedProxies = [],
  tls,
  patient = false,
  requestMs = timeouts.requestMs,
  ...bounds
}: Limits = {}) {
  const sockets = createRestSockets({ trustedProxies, refusals, ...bounds });
  const handler = (request: IncomingMessage, response: ServerResponse): void => void answerBody(request, response);
  const answers = createAnswersUnderWay({ refusals });
  const server = createHttpServer(handler, {
    tls,
    sockets,
    answers,
    timeouts: patient ? patience : { ...timeouts, requestMs },
  });
  server.on('clientError', (error, socket) => answerClientError(error, socket as Socket, refusals));
  server.listen(0, '127.0.0.1');
  servers.push(server);
  await once(server, 'listening');
  return { server, sockets, port: (server.address() as AddressInfo).port };
}

interface Client {
  readonly socket: Socket;
  text(): string;
  closed(): boolean;
}

/** A client that never closes its own half, from one of the loopback addresses. */
async function dial(port: number, localAddress = '127.0.0.1'): Promise<Client> {
  const socket = connect({ port, host: '127.0.0.1', localAddress, allowHalfOpen: true });
  opened.push(socket);
  let text = '';
  let closed = false;
  socket.on('data', (data: Buffer) => (text += data.toString()));
  socket.on('error', () => undefined);
  socket.on('end', () => (closed = true));
  socket.on('close', () => (closed = true));
  await once(socket, 'connect');
  return { socket, text: () => text, closed: () => closed };
}

/** Writes a byte at a time until the peer has closed. @returns after how many milliseconds that was */
async function trickle({ socket, closed }: Client, byte: string): Promise<number> {
  const began = performance.now();
  await eventually(() => {
    if (!closed()) socket.write(byte);
    return closed();
  }).toBe(true);
  return performance.now() - began;
}

describe('a request that arrives too slowly is answered 408 and cut at about its time,', () => {
  test.each([
    ['silent from the start', '', ''],
    ['headers byte by byte', 'GET / HTTP/1.1\r\nHost: a\r\nX-', 'a'],
    [
      'headers byte by byte, after a request that was complete',
      'GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nX-',
      'x',
    ],
  ])('%s', async (_name, begin, byte) => {
    // Only the time for headers can end these.
    const { server, port } = await serve({ requestMs: patience.requestMs });
    const client = await dial(port);
    client.socket.write(begin);
    const took = await trickle(client, byte);
    expect(took).toBeGreaterThan(timeouts.headersMs - 50);
    expect(client.text()).toMatch(/HTTP\/1\.1 408 [^]*"invalid_request: expected the whole request sooner"/);
    // Gone, although the client keeps its half open.
    await eventually(() => connectionsOf(server)).toBe(0);
    expect(refused).toMatchObject([{ reason: 'rest_too_slow', address: '127.0.0.1' }]);
  });

  test('a body byte by byte', async () => {
    const { server, port } = await serve();
    const client = await dial(port);
    client.socket.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n');
    const took = await trickle(client, 'x');
    expect(took).toBeGreaterThan(timeouts.requestMs - 50);
    expect(client.text()).toMatch(/HTTP\/1\.1 408 /);
    await eventually(() => connectionsOf(server)).toBe(0);
  });

  test('over TLS a handshake that does not end, and headers after it', async () => {
    const tls = createCertificate();
    const { server, port } = await serve({ tls: served(tls) });
    const silent = await dial(port);
    await eventually(() => silent.closed()).toBe(true);
    const noise = await dial(port);
    noise.socket.write('GET / HTTP/1.1\r\n\r\n');
    await eventually(() => noise.closed()).toBe(true);
    expect(refused.map(({ reason }) => reason)).toEqual(['rest_tls', 'rest_tls']);
    const slow = connectTls({ port, host: '127.0.0.1', ca: tls.cert });
    opened.push(slow);
    let text = '';
    slow.on('data', (data: Buffer) => (text += data.toString()));
    await once(slow, 'secureConnect');
    slow.write('GET / HTTP/1.1\r\nX-');
    await eventually(() => text).toMatch(/^HTTP\/1\.1 408 /);
    await eventually(() => connectionsOf(server)).toBe(0);
  });

  test('not one that is complete in time, nor an idle connection between two requests', async () => {
    const { port } = await serve();
    const client = await dial(port);
    for (let requests = 1; requests <= 3; requests += 1) {
      client.socket.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc');
      await eventually(() => client.text().match(/200 OK/g)?.length).toBe(requests);
      const silent = await dial(port);
      await eventually(() => silent.closed()).toBe(true);
    }
    expect(client.closed()).toBe(false);
  });

  test('by default within a second or so of the 15 and 60 s that the service grants', () => {
    expect(tuning.timeouts).toEqual({ headersMs: 15_000, requestMs: 60_000, checkEveryMs: 1_000 });
  });
});

describe('open connections are bounded', () => {
  const works = async (port: number, from?: string): Promise<boolean> => {
    const client = await dial(port, from);
    client.socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    await eventually(() => client.closed() || client.text() !== '').toBe(true);
    return client.text().startsWith('HTTP/1.1 200 ');
  };

  test('for each address: beyond it a connection is closed at once, and others are served', async () => {
    const { port, sockets } = await serve({ perAddress: 3, patient: true });
    expect([await works(port), await works(port), await works(port)]).toEqual([true, true, true]);
    expect(await works(port)).toBe(false);
    expect(await works(port, '127.0.0.2')).toBe(true);
    expect(refused).toEqual([{ reason: 'rest_connections_of_address', address: '127.0.0.1' }]);
    expect(sockets.open).toBe(4);
    opened[0]?.destroy();
    await eventually(() => sockets.open).toBe(3);
    expect(await works(port)).toBe(true);
  });

  test('not for a trusted proxy', async () => {
    const { port } = await serve({ perAddress: 1, trustedProxies: ['127.0.0.2/32'], patient: true });
    for (let i = 0; i < 4; i += 1) expect(await works(port, '127.0.0.2')).toBe(true);
    expect(await works(port, '127.0.0.3')).toBe(true);
    expect(await works(port, '127.0.0.3')).toBe(false);
  });

  test('in all, proxies included, as long as each has a request under way', async () => {
    const { port, server } = await serve({ inAll: 2, trustedProxies: ['127.0.0.2/32'], patient: true });
    let underWay = 0;
    server.on('request', () => (underWay += 1));
    const unfinished = 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n1';
    for (const address of ['127.0.0.1', '127.0.0.2']) {
      const client = await dial(port, address);
      client.socket.write(unfinished);
    }
    await eventually(() => underWay).toBe(2);
    expect(await works(port, '127.0.0.2')).toBe(false);
    expect(refused).toEqual([{ reason: 'rest_connections', address: '127.0.0.2' }]);
  });

  test('by the longest idle connection of the address that holds most, for a newcomer', async () => {
    const { port, sockets } = await serve({ inAll: 4, trustedProxies: ['127.0.0.9/32'], patient: true });
    const held: Client[] = [];
    for (const address of ['127.0.0.9', '127.0.0.9', '127.0.0.2', '127.0.0.3']) held.push(await dial(port, address));
    await eventually(() => sockets.open).toBe(4);
    expect(await works(port, '127.0.0.4')).toBe(true);
    // The first of the clients that hold as many; a proxy's only when no other is idle.
    await eventually(() => held.map((client) => client.closed())).toEqual([false, false, true, false]);
    const second = await dial(port, '127.0.0.3');
    await eventually(() => second.closed() || held[3]?.closed()).toBe(true);
    expect(await works(port, '127.0.0.5')).toBe(true);
    expect(refused.every(({ reason }) => reason === 'rest_connection_for_a_newcomer')).toBe(true);
    expect(held.slice(0, 2).map((client) => client.closed())).toEqual([false, false]);
  });

  test('over TLS, where a request that is under way keeps its connection', async () => {
    const { port, sockets } = await serve({ inAll: 2, tls: served(createCertificate()), patient: true });
    const busy = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false });
    opened.push(busy);
    busy.on('error', () => undefined);
    await once(busy, 'secureConnect');
    busy.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n1');
    const idle = await dial(port, '127.0.0.2');
    await eventually(() => sockets.open).toBe(2);
    const newcomer = await dial(port, '127.0.0.3');
    await eventually(() => idle.closed()).toBe(true);
    busy.write('2');
    const [answer] = (await once(busy, 'data')) as [Buffer];
    expect([answer.toString(), newcomer.closed()]).toEqual([expect.stringContaining('HTTP/1.1 200'), false]);
  });
});

function connectionsOf(server: Server): Promise<number> {
  return new Promise((resolve, reject) =>
    server.getConnections((error, count) => (error === null ? resolve(count) : reject(error))),
  );
}
