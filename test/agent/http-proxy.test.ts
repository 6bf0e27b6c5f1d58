/** HTTP proxy rules of legacy routes: routing, headers, streaming, WebSockets, and next hops that fail. */
import { once } from 'node:events';
import {
  createServer,
  request,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  type RequestListener,
  type Server,
} from 'node:http';
import { createServer as createTcpServer, type AddressInfo, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import type { Gateway } from '../../src/agent/gateway.js';
import { HeartbeatRequest } from '../../src/gen/svc/control/v1/heartbeat.js';
import { AgentPayload } from '../../src/gen/svc/control/v1/session.js';
import { readAgentPayload } from '../../src/transport/agent/agent-payload.js';
import { requestHeaders, readTarget, responseHeaders } from '../../src/agent/relays/http-headers.js';
import { createHttpRoutes } from '../../src/agent/plan/matches.js';
import { relayLimits } from '../../src/agent/relays/limits.js';
import { createCertificate } from '../support/certificate.js';
import { eventually } from '../support/eventually.js';
import { cluster, freePort, httpRule, snapshot, tcpRule, tlsRule } from '../support/snapshots.js';
import { tcpPeers } from '../support/tcp-peers.js';
import { tlsClient } from '../support/tls-client.js';

const { closers, runtime, server: tcp, client: plain, fullServer } = tcpPeers();
const times = { ...relayLimits };
afterEach(() => void Object.assign(relayLimits, times));

async function backend(listener: RequestListener): Promise<Server & { readonly place: string }> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closers.push(async () => {
    server.close();
    server.closeAllConnections();
  });
  return Object.assign(server, { place: `127.0.0.1:${(server.address() as AddressInfo).port}` });
}

/** A listener whose one route, for `a.example/`, goes to these endpoints. */
async function proxyTo(...endpoints: readonly string[]): Promise<{ readonly port: number; readonly gateway: Gateway }> {
  const port = await freePort();
  const gateway = runtime();
  const report = await gateway.apply(
    snapshot(1, { http: [httpRule(port, 'a.example', '/', 'r')], clusters: [cluster('r/0', endpoints)] }),
  );
  expect(report?.errors).toEqual([]);
  return { port, gateway };
}

interface Asked {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: string;
}

async function ask(
  port: number,
  { method, path, headers, body }: Asked = {},
): Promise<IncomingMessage & { text: string }> {
  const sent = request({
    port,
    host: '127.0.0.1',
    method,
    path,
    headers: { host: 'a.example', ...headers },
    agent: false,
  });
  sent.end(body);
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  let text = '';
  for await (const chunk of response) text += String(chunk);
  return Object.assign(response, { text });
}

/** Everything that comes back for these bytes until the connection is closed. */
async function raw(port: number, text: string): Promise<string> {
  const socket = plain(port);
  let received = '';
  socket.on('data', (chunk) => (received += chunk.toString('latin1')));
  socket.on('end', () => socket.end());
  socket.write(text, 'latin1');
  await new Promise((resolve) => socket.once('close', resolve));
  return received;
}

describe('a route', () => {
  const origin = { resourceType: 'route', resourceId: 'r', resourceName: 'r', hopIndex: 0 };
  const routes = createHttpRoutes(
    [
      ['a.example', '/'],
      ['a.example', '/api'],
      ['a.example', '/api/v2/'],
      ['A.b.example', '/only'],
    ].map(([host = '', pathPrefix = '']) => ({
      host,
      pathPrefix,
      route: { origin, next: { kind: 'cluster', name: host + pathPrefix }, security: { kind: 'raw' } },
    })),
  );
  it.each([
    ['a.example', '/', 'a.example/'],
    ['a.example', '/other?x=/api', 'a.example/'],
    ['a.example', '/api', 'a.example/api'],
    ['a.example', '/api?x', 'a.example/api'],
    ['a.example', '/api/', 'a.example/api'],
    ['a.example', '/apis', 'a.example/'],
    ['a.example', '/api/v2', 'a.example/api/v2/'],
    ['a.example', '/api/v2/x', 'a.example/api/v2/'],
    ['a.example', '/api/v22', 'a.example/api'],
    ['a.example', '*', 'a.example/'],
    ['a.b.example', '/only/this', 'A.b.example/only'],
    ['a.b.example', '/', undefined],
    ['b.example', '/', undefined],
  ])('for %s %s is %s', (host, path, cluster) => {
    expect(routes(host, path)?.next).toEqual(cluster && { kind: 'cluster', name: cluster });
  });
});

describe('the target of a request', () => {
  it.each([
    ['/x', ['Host', 'A.example:8080'], { host: 'a.example', path: '/x', authority: 'A.example:8080' }],
    ['/', ['host', 'a.example.'], { host: 'a.example', path: '/', authority: 'a.example.' }],
    ['/', ['Host', '[::1]:80'], { host: '::1', path: '/', authority: '[::1]:80' }],
    ['/', ['Host', '[2001:DB8:0::1]'], { host: '2001:db8::1', path: '/', authority: '[2001:DB8:0::1]' }],
    ['http://b.example:1/y?z', ['Host', 'a.example'], { host: 'b.example', path: '/y?z', authority: 'b.example:1' }],
    ['http://b.example', ['Host', 'a.example'], { host: 'b.example', path: '/', authority: 'b.example' }],
    ['http://b.example?q', ['Host', 'a.example'], { host: 'b.example', path: '/?q', authority: 'b.example' }],
    ['*', ['Host', 'a.example'], { host: 'a.example', path: '*', authority: 'a.example' }],
    ['/', ['Host', 'a.example', 'Host', 'b.example'], undefined],
    ['/', [], undefined],
    ['/', ['Host', 'a b'], undefined],
    ['/', ['Host', 'user@a.example'], undefined],
    ['http://a.example@b.example/x', ['Host', 'a.example'], undefined],
    ['http://b.example/a/./b/../c?d=/../e', [], { host: 'b.example', path: '/a/c?d=/../e', authority: 'b.example' }],
    ['/pub/../secret', ['Host', 'a'], { host: 'a', path: '/secret', authority: 'a' }],
    ['/pub/%2e%2E/secret', ['Host', 'a'], { host: 'a', path: '/secret', authority: 'a' }],
    ['/../../x/..', ['Host', 'a'], { host: 'a', path: '/', authority: 'a' }],
    ['/x/.', ['Host', 'a'], { host: 'a', path: '/x/', authority: 'a' }],
    ['/..x/...//%2e%2e%2e', ['Host', 'a'], { host: 'a', path: '/..x/...//%2e%2e%2e', authority: 'a' }],
    ['x', ['Host', 'a.example'], undefined],
  ])('%s with %j', (url, headers, target) => {
    expect(readTarget(url, headers)).toEqual(target);
  });
});

describe('headers', () => {
  const forwarded = (rawHeaders: readonly string[], method = 'GET', clientAddress = '192.0.2.1'): string[] =>
    requestHeaders({ method, rawHeaders, authority: 'a.example', clientAddress, upgrade: undefined });
  const added = ['Host', 'a.example', 'X-Forwarded-For', '192.0.2.1'];
  const also = ['X-Forwarded-Host', 'a.example', 'X-Forwarded-Proto', 'http'];

  it('of one connection are removed, those that Connection names as well, but never those that frame or route', () => {
    const sent = [
      'Connection',
      'close, X-Secret, Host, content-length',
      'X-Secret',
      '1',
      'Keep-Alive',
      'x',
      'TE',
      'gzip',
    ];
    const rest = ['Trailer', 'x', 'Proxy-Connection', 'x', 'Upgrade', 'h2c', 'Expect', '100-continue', 'X-Kept', '2'];
    expect(forwarded([...sent, ...rest, 'Content-Length', '0'])).toEqual([
      'Expect',
      '100-continue',
      'X-Kept',
      '2',
      'Content-Length',
      '0',
      ...added,
      ...also,
    ]);
    expect(responseHeaders(['Connection', 'X-A', 'X-A', '1', 'Set-Cookie', 'a', 'Set-Cookie', 'b'])).toEqual([
      'Set-Cookie',
      'a',
      'Set-Cookie',
      'b',
    ]);
  });

  it('tell the next hop who asked, and how: only the addresses of earlier proxies are kept', () => {
    const before = [
      'X-Forwarded-For',
      '198.51.100.7',
      'X-Forwarded-Host',
      'outer.example',
      'X-Forwarded-Proto',
      'https',
      'Forwarded',
      'for=198.51.100.7;proto=https',
    ];
    expect(forwarded(before)).toEqual(['Host', 'a.example', 'X-Forwarded-For', '198.51.100.7, 192.0.2.1', ...also]);
    // A socket on :: names clients of IPv4 so.
    expect(forwarded([], 'GET', '::ffff:192.0.2.1')).toEqual([...added, ...also]);
  });

  it('say the length of a body as the client did', () => {
    expect(forwarded([], 'POST')).toEqual([...added, ...also, 'Content-Length', '0']);
    expect(forwarded(['Transfer-Encoding', 'chunked'], 'DELETE')).toEqual([
      ...added,
      ...also,
      'Transfer-Encoding',
      'chunked',
    ]);
  });
});

describe('an HTTP proxy rule', () => {
  it('with the longest path prefix is told of in the bytes that the service reads of a text', async () => {
    const prefix = `/${'p'.repeat(1_023)}`;
    const gateway = runtime();
    await gateway.apply(
      snapshot(1, {
        http: [httpRule(await freePort(), 'a.example', prefix, 'r')],
        clusters: [cluster('r/0', ['127.0.0.1:1'])],
      }),
    );
    const value = HeartbeatRequest.fromPartial({ runtimeListeners: [...gateway.runtimeListeners()] });
    const payload = AgentPayload.encode({ payload: { $case: 'heartbeat', value } }).finish();
    expect(readAgentPayload(payload, 'n')).toMatchObject({ kind: 'message' });
    expect(value.runtimeListeners[0]?.routes[0]?.matchValue).toMatch(/^a\.example\/p{1000}/);
  });

  it('for an IPv6 address, which rules have without brackets, takes requests for it', async () => {
    const { place } = await backend((_, response) => response.end('six'));
    const port = await freePort();
    await runtime().apply(
      snapshot(1, { http: [httpRule(port, '::1', '/', 'r')], clusters: [cluster('r/0', [place])] }),
    );
    expect(await ask(port, { headers: { host: '[::1]:8080' } })).toMatchObject({ statusCode: 200, text: 'six' });
  });

  it('takes each request of a connection to its own route, by host and longest prefix, and answers 404 for none', async () => {
    const [web, api] = [await backend((_, r) => r.end('web')), await backend((q, r) => r.end(`api ${q.url ?? ''}`))];
    const port = await freePort();
    const gateway = runtime();
    await gateway.apply(
      snapshot(1, {
        http: [httpRule(port, 'a.example', '/', 'web'), httpRule(port, 'a.example', '/api', 'api')],
        clusters: [cluster('web/0', [web.place]), cluster('api/0', [api.place])],
      }),
    );
    const text = await raw(
      port,
      [
        'GET / HTTP/1.1\r\nHost: A.Example:99\r\n\r\n',
        'GET /api/x?y HTTP/1.1\r\nHost: a.example\r\n\r\n',
        'GET / HTTP/1.1\r\nHost: b.example\r\n\r\n',
        'GET http://a.example/apix HTTP/1.1\r\nHost: z\r\nConnection: close\r\n\r\n',
      ].join(''),
    );
    expect([...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map((match) => match[1])).toEqual(['200', '200', '404', '200']);
    expect(text).toMatch(/web[^]*api \/api\/x\?y[^]*404 Not Found\n[^]*web/);
    expect(
      gateway
        .runtimeListeners()[0]
        ?.routes.map(({ service, matchKind, matchValue, nextHop }) => [service, matchKind, matchValue, nextHop]),
    ).toEqual([
      ['name of web', 'default', 'a.example/', web.place],
      ['name of api', 'default', 'a.example/api', api.place],
    ]);
    await eventually(() => gateway.runtimeListeners()[0]).toMatchObject({
      totalSessions: 4n,
      errorSessions: 1n,
      activeSessions: 0n,
    });
    const links = gateway.linkMetrics();
    expect(links.map(({ resourceType, resourceId, lossRatio }) => [resourceType, resourceId, lossRatio])).toEqual([
      ['route', 'web', 0],
      ['route', 'api', 0],
    ]);
    await eventually(() => gateway.linkMetrics()[1]?.bytesOut).toBeGreaterThan(100n);
  });

  it('passes methods, bodies, status, repeated headers and the path on unchanged', async () => {
    const server = await backend((incoming, response) => {
      let body = '';
      incoming.on('data', (chunk) => (body += String(chunk)));
      incoming.on('end', () => {
        response.writeHead(418, 'Short And Stout', [
          ['Set-Cookie', 'a=1'],
          ['Set-Cookie', 'b=2'],
        ] as never);
        response.end(
          `${incoming.method ?? ''} ${incoming.url ?? ''} ${body} ${String(incoming.headers['x-forwarded-for'])}`,
        );
      });
    });
    const { port } = await proxyTo(server.place);
    for (const method of ['POST', 'PUT', 'DELETE', 'PATCH', 'PROPFIND']) {
      const answer = await ask(port, {
        method,
        path: '/a%2Fb/c?d=%20/../',
        body: 'body',
        headers: { 'transfer-encoding': 'chunked' },
      });
      expect(answer.text).toBe(`${method} /a%2Fb/c?d=%20/../ body 127.0.0.1`);
      expect([answer.statusCode, answer.statusMessage]).toEqual([418, 'Short And Stout']);
      expect(answer.headers['set-cookie']).toEqual(['a=1', 'b=2']);
    }
    expect((await ask(port, { method: 'POST' })).text).toBe('POST /  127.0.0.1');
    expect((await ask(port, { method: 'HEAD' })).text).toBe('');
  });

  it('matches and passes on the path that dot segments lead to, and refuses a target with user information', async () => {
    const [open, secret] = [
      await backend((q, r) => r.end(`open ${q.url}`)),
      await backend((q, r) => r.end(`secret ${q.url}`)),
    ];
    const port = await freePort();
    await runtime().apply(
      snapshot(1, {
        clusters: [cluster('open/0', [open.place]), cluster('secret/0', [secret.place])],
        http: [httpRule(port, 'a.example', '/pub', 'open'), httpRule(port, 'a.example', '/secret', 'secret')],
      }),
    );
    expect((await ask(port, { path: '/pub/./x' })).text).toBe('open /pub/x');
    expect((await ask(port, { path: '/pub/%2e%2e/secret' })).text).toBe('secret /secret');
    expect((await ask(port, { path: '/pub/../other' })).statusCode).toBe(404);
    const text = await raw(
      port,
      'GET http://a.example@b.example/pub HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n',
    );
    expect(text).toMatch(/^HTTP\/1\.1 400 /);
  });

  it('goes through two hops', async () => {
    const server = await backend((incoming, response) => response.end(String(incoming.headers['x-forwarded-for'])));
    const inner = await proxyTo(server.place);
    const outer = await proxyTo(`127.0.0.1:${inner.port}`);
    expect((await ask(outer.port)).text).toBe('127.0.0.1, 127.0.0.1');
  });

  it('streams both ways at once, before either side has ended', async () => {
    const server = await backend((incoming, response) => {
      response.writeHead(200);
      response.flushHeaders();
      incoming.pipe(response);
    });
    const { port } = await proxyTo(server.place);
    const sent = request({ port, host: '127.0.0.1', method: 'POST', headers: { host: 'a.example' } });
    sent.flushHeaders();
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    for (const part of ['one', 'two']) {
      sent.write(part);
      expect(String((await once(response, 'data'))[0])).toBe(part);
    }
    sent.end();
    response.resume();
    await once(response, 'end');
  });

  it('holds a sender back while the receiver does not read', async () => {
    let incoming: IncomingMessage | undefined;
    const server = await backend((request_, response) => {
      incoming = request_;
      request_.on('end', () => response.end('done'));
    });
    const { port, gateway } = await proxyTo(server.place);
    const sent = request({ port, host: '127.0.0.1', method: 'POST', headers: { host: 'a.example' } });
    const size = 48_000_000;
    sent.end(Buffer.alloc(size));
    let before = -1n;
    const received = (): bigint => gateway.runtimeListeners()[0]?.bytesIn ?? 0n;
    await expect
      .poll(
        () => {
          const stalled = received() === before && before > 0n;
          before = received();
          return stalled;
        },
        { interval: 200, timeout: 20_000 },
      )
      .toBe(true);
    expect(received()).toBeLessThan(BigInt(size / 2));
    incoming?.resume();
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    expect(response.statusCode).toBe(200);
    response.resume();
    await eventually(received).toBeGreaterThan(BigInt(size));
  });

  it('leaves it to the next hop to say 100, and passes on all that it says before its answer', async () => {
    const answering = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
    const hints = 'HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n';
    const place = await tcp((socket) => {
      socket.on('data', (chunk) => {
        if (/Expect: 100-continue/i.test(String(chunk)))
          socket.write(`${hints}Keep-Alive: x\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n`);
        if (/old|body/.test(String(chunk))) socket.write(`${hints}\r\n${answering}`);
      });
    });
    const { port } = await proxyTo(place);
    const asking = (host: string): string =>
      `POST / HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 4\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n`;
    const socket = plain(port);
    let received = '';
    socket.on('data', (chunk) => (received += String(chunk)));
    socket.write(asking('a.example'));
    const interim = `${hints}\r\nHTTP/1.1 100 Continue\r\n\r\n`;
    await eventually(() => received).toBe(interim);
    socket.write('body');
    await once(socket, 'end');
    expect(received).toBe(`${interim}${hints}\r\n${answering.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n')}`);
    // What nobody will take is not asked for, and HTTP/1.0 knows no interim answers.
    expect(await raw(port, asking('b.example'))).toMatch(/^HTTP\/1.1 404 /);
    expect(await raw(port, 'GET /old HTTP/1.0\r\nHost: a.example\r\n\r\n')).toMatch(/^HTTP\/1.1 200 /);
  });

  it('passes a WebSocket through, and a refusal of one', async () => {
    const server = await backend((_incoming, response) => response.end());
    server.on('upgrade', (incoming: IncomingMessage, socket: Socket) => {
      if (incoming.url === '/no') return void socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno');
      socket.write(
        `HTTP/1.1 101 Fine\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nX-Key: ${String(incoming.headers['sec-websocket-key'])}\r\n\r\nfirst`,
      );
      socket.pipe(socket);
    });
    const { port, gateway } = await proxyTo(server.place);
    const upgrade = (path: string): string =>
      `GET ${path} HTTP/1.1\r\nHost: a.example\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\nSec-WebSocket-Key: k\r\n\r\n`;
    const socket = plain(port);
    let received = '';
    socket.on('data', (chunk) => (received += chunk.toString()));
    socket.write(`${upgrade('/ws')}early `);
    await eventually(() => received).toMatch(/^HTTP\/1\.1 101 Fine\r\n[^]*X-Key: k[^]*\r\n\r\nfirstearly $/);
    socket.end('last');
    await once(socket, 'close');
    expect(received).toMatch(/firstearly last$/);
    expect(await raw(port, upgrade('/no'))).toMatch(/^HTTP\/1\.1 403 Forbidden\r\n[^]*no$/);
    expect(await raw(port, upgrade('/').replace('a.example', 'b.example'))).toMatch(/^HTTP\/1\.1 404 /);
    await eventually(() => gateway.runtimeListeners()[0]).toMatchObject({
      totalSessions: 3n,
      activeSessions: 0n,
      errorSessions: 1n,
    });
  });

  it('does not wait for ever for a client that leaves its connection open after a WebSocket was refused', async () => {
    const server = await backend((_incoming, response) => response.end());
    server.on('upgrade', (_incoming, socket: Socket) => socket.end('HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno'));
    Object.assign(relayLimits, { httpHeadersMs: 100 });
    const { port, gateway } = await proxyTo(server.place);
    const socket = plain(port);
    let received = '';
    socket.on('data', (chunk) => (received += chunk.toString()));
    socket.write('GET / HTTP/1.1\r\nHost: a.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
    await eventually(() => received).toMatch(/^HTTP\/1\.1 403 No\r\n[^]*no$/);
    await eventually(() => gateway.runtimeListeners()[0]).toMatchObject({ totalSessions: 1n, activeSessions: 0n });
  });

  it('ignores an offer to speak HTTP/2, with or without a body, and goes on with the connection', async () => {
    const server = await backend((incoming, response) => {
      let body = '';
      incoming.on('data', (chunk) => (body += String(chunk)));
      incoming.on('end', () =>
        response.end(`[${body}${String(incoming.headers.upgrade)}${String(incoming.headers['http2-settings'])}]`),
      );
    });
    const { port } = await proxyTo(server.place);
    const offer = 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\n';
    const socket = plain(port);
    const answerTo = async (text: string): Promise<string | undefined> => {
      socket.write(text);
      const [chunk] = (await once(socket, 'data')) as [Buffer];
      return /\[(.*)\]/.exec(chunk.toString())?.[1];
    };
    const head = ` / HTTP/1.1\r\nHost: a.example\r\n${offer}`;
    expect(await answerTo(`POST${head}Content-Length: 4\r\n\r\nbody`)).toBe('bodyundefinedundefined');
    expect(await answerTo(`GET${head}\r\n`)).toBe('undefinedundefined');
    expect(await answerTo(`POST${head}Transfer-Encoding: chunked\r\n\r\n4\r\nlast\r\n0\r\n\r\n`)).toBe(
      'lastundefinedundefined',
    );
  });

  it('answers 502 for a next hop that refuses, breaks off or makes no sense, and 504 for one that says nothing', async () => {
    const silent = await tcp((socket) => void socket.resume());
    const broken = await tcp((socket) => socket.once('data', () => socket.destroy()));
    const nonsense = await tcp((socket) => void socket.end('nonsense'));
    const statusOf = async (place: string): Promise<number | undefined> =>
      (await ask((await proxyTo(place)).port)).statusCode;
    expect(await statusOf(`127.0.0.1:${await freePort()}`)).toBe(502);
    expect(await statusOf(broken)).toBe(502);
    expect(await statusOf(nonsense)).toBe(502);
    Object.assign(relayLimits, { httpAnswerMs: 100 });
    expect(await statusOf(silent)).toBe(504);
  });

  it('answers 502 for a next hop that takes no connection in time', async () => {
    const { port: target } = await fullServer();
    const { port } = await proxyTo(`127.0.0.1:${target}`);
    Object.assign(relayLimits, { connectTimeoutMs: 300 });
    expect((await ask(port)).statusCode).toBe(502);
  });

  it('answers 502 where the upstream is disabled', async () => {
    const [port, gateway] = [await freePort(), runtime()];
    const disabled = { ...cluster('r/0', ['127.0.0.1:1']), enabled: false };
    await gateway.apply(snapshot(1, { http: [httpRule(port, 'a.example', '/', 'r')], clusters: [disabled] }));
    expect((await ask(port)).statusCode).toBe(502);
  });

  it('lets the client see that an answer was broken off', async () => {
    const server = await backend((_incoming, response) => {
      response.writeHead(200, { 'content-length': 100 });
      response.write('part');
      setTimeout(() => response.destroy(), 20);
    });
    const { port } = await proxyTo(server.place);
    await expect(ask(port)).rejects.toThrow('aborted');
  });

  it('takes an end for that of an answer without a length, but not a reset right behind its beginning', async () => {
    const place = await tcp((socket) => {
      socket.once('data', (chunk) => {
        socket.write('HTTP/1.0 200 OK\r\n\r\nanswer');
        if (String(chunk).startsWith('GET /lost')) socket.resetAndDestroy();
        else socket.end();
      });
    });
    const { port } = await proxyTo(place);
    const asking = (path: string): Promise<string> =>
      raw(port, `GET ${path} HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n`);
    expect(await asking('/')).toMatch(/answer\r\n0\r\n\r\n$/);
    for (let asked = 0; asked < 10; asked += 1) expect(await asking('/lost')).not.toMatch(/\r\n0\r\n/);
  });

  it('ends what it asked of the next hop when the client leaves', async () => {
    let left = 0;
    const server = await backend((incoming) => void incoming.socket.once('close', () => (left += 1)));
    const { port, gateway } = await proxyTo(server.place);
    const socket = plain(port);
    socket.write('GET / HTTP/1.1\r\nHost: a.example\r\n\r\n');
    await eventually(() => gateway.linkMetrics()[0]?.activeSessions).toBe(1n);
    socket.destroy();
    await eventually(() => left).toBe(1);
    await eventually(() => gateway.linkMetrics()[0]?.activeSessions).toBe(0n);
    await eventually(() => gateway.runtimeListeners()[0]).toMatchObject({ activeSessions: 0n, errorSessions: 1n });
  });

  it('counts each request once, whoever breaks it off, and a lost connection not at all', async () => {
    const asked = 'GET / HTTP/1.1\r\nHost: a.example\r\n\r\n';
    const place = await tcp((socket) => {
      socket.on('data', (chunk) => {
        if (String(chunk).startsWith('GET /part ')) socket.end('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\npart');
        else if (String(chunk).startsWith('GET / ')) socket.write('HTTP/1.1 204 No Content\r\n\r\n');
      });
    });
    const { port, gateway } = await proxyTo(place);
    const counted = (): unknown => {
      const [listener] = gateway.runtimeListeners();
      return [listener?.activeSessions, listener?.totalSessions, listener?.errorSessions].map(Number);
    };
    const bytesIn = (): unknown => Number(gateway.runtimeListeners()[0]?.bytesIn);
    const idle = plain(port);
    idle.write(asked);
    await once(idle, 'data');
    idle.resetAndDestroy();
    // The reset has arrived before what comes later.
    expect(await raw(port, asked.replace('/', '/part'))).toMatch(/part$/);
    await eventually(counted).toEqual([0, 2, 1]);
    const leaving = plain(port);
    leaving.write(asked.replace('/', '/wait'));
    await eventually(counted).toEqual([1, 3, 1]);
    leaving.resetAndDestroy();
    await eventually(counted).toEqual([0, 3, 2]);
    const chunked = 'POST / HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n';
    expect(await raw(port, `${chunked}4\r\nbody\r\nzz\r\n`)).toMatch(/^HTTP\/1.1 400 .*\r\nConnection: close\r\n/s);
    await eventually(counted).toEqual([0, 4, 3]);
    // Nonsense in several pieces is one request.
    const nonsense = plain(port);
    nonsense.write('nonsense\r\n\r\n');
    await once(nonsense, 'data');
    const before = bytesIn();
    nonsense.write('more\r\n\r\n');
    nonsense.end();
    await once(nonsense, 'close');
    await eventually(bytesIn).not.toBe(before);
    expect(counted()).toEqual([0, 5, 4]);
    expect(await raw(port, 'GET / HTTP/1.1\r\n\r\n')).toMatch(/^HTTP\/1.1 400 /);
    expect(counted()).toEqual([0, 6, 5]);
  });

  it('bounds headers, their time, and requests under way; smuggled lengths and other codings are refused', async () => {
    const server = await backend((_incoming, response) => void setTimeout(() => response.end('x'), 50));
    const { port, gateway } = await proxyTo(server.place);
    expect(await raw(port, `GET / HTTP/1.1\r\nHost: a.example\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`)).toMatch(/ 431 /);
    expect(await raw(port, 'nonsense\r\n\r\n')).toMatch(/ 400 /);
    const both =
      'POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n';
    expect(await raw(port, both)).toMatch(/ 400 /);
    const chunked = 'Transfer-Encoding: gzip, chunked\r\nConnection: close\r\n\r\n0\r\n\r\n';
    expect(await raw(port, `POST / HTTP/1.1\r\nHost: a.example\r\n${chunked}`)).toMatch(/ 501 /);
    expect(await raw(port, `POST / HTTP/1.1\r\nHost: a.example\r\n${chunked.replace('gzip, ', '')}`)).toMatch(/ 200 /);
    expect(await raw(port, 'GET / HTTP/1.1\r\nHost: a.example\r\nHost: b\r\nConnection: close\r\n\r\n')).toMatch(
      / 400 /,
    );
    expect(await raw(port, 'CONNECT a.example:1 HTTP/1.1\r\nHost: a.example\r\n\r\n')).toMatch(/ 405 /);
    Object.assign(relayLimits, { httpHeadersMs: 100 });
    // Neither a request that is never finished nor silence keeps a connection.
    expect(await raw(port, 'GET / HTTP/1.1\r\nHost:')).toBe('');
    expect(await raw(port, '')).toBe('');
    Object.assign(relayLimits, times);
    const pipelined = 'GET / HTTP/1.1\r\nHost: a.example\r\n\r\n'.repeat(100);
    expect(await raw(port, pipelined)).toBe('');
    await eventually(() => gateway.runtimeListeners()[0]?.activeSessions).toBe(0n);
  });

  it('closes the connection for a CONNECT or nonsense behind a request that waits for its answer', async () => {
    const server = await backend(() => undefined);
    const { port } = await proxyTo(server.place);
    const waiting = 'GET / HTTP/1.1\r\nHost: a.example\r\n\r\n';
    for (const text of ['CONNECT a.example:1 HTTP/1.1\r\nHost: a.example\r\n\r\n', 'nonsense\r\n\r\n'])
      expect(await raw(port, `${waiting}${text}`)).toBe('');
  });

  it('does not wait for ever for a client that does not read its answers', async () => {
    let answered = 0;
    const server = await backend((_incoming, response) =>
      response.end(Buffer.alloc(64 * 1024), () => void (answered += 1)),
    );
    Object.assign(relayLimits, { httpIdleMs: 500 });
    const { port, gateway } = await proxyTo(server.place);
    const broken = (): number => Number(gateway.runtimeListeners()[0]?.errorSessions);
    const socket = plain(port);
    // The next hop gives each answer as a whole, until those that the client has not read fill every buffer.
    for (let asked = 1; broken() === 0; asked += 1) {
      socket.write('GET / HTTP/1.1\r\nHost: a.example\r\n\r\n');
      await eventually(() => answered === asked || broken() > 0).toBe(true);
    }
    await eventually(() => gateway.runtimeListeners()[0]?.activeSessions).toBe(0n);
  });

  it('shares its port with rules that are chosen by server name', async () => {
    const server = await backend((_incoming, response) => response.end('http'));
    const echo = await tcp((socket) => void socket.pipe(socket));
    const port = await freePort();
    const report = await runtime().apply(
      snapshot(1, {
        tcp: [tlsRule(port, echo, ['t.example'], 'c')],
        http: [httpRule(port, 'a.example', '/', 'r')],
        clusters: [cluster('r/0', [server.place])],
        certificates: { c: createCertificate() },
      }),
    );
    expect(report?.errors).toEqual([]);
    const secure = await tlsClient(port, 't.example');
    secure.end('tls');
    expect(String((await once(secure, 'data'))[0])).toBe('tls');
    expect((await ask(port)).text).toBe('http');
  });

  it('is an error beside a RAW rule, or with the host and prefix of another', async () => {
    const port = await freePort();
    const report = await runtime().apply(
      snapshot(1, {
        tcp: [tcpRule(port, '127.0.0.1:9', {}, 'c1')],
        http: [
          httpRule(port, 'a.example', '/x', 'r1'),
          httpRule(port, 'A.example', '/x/', 'r2'),
          httpRule(port, '', '/', 'r3'),
        ],
        clusters: [cluster('r1/0', ['127.0.0.1:9']), cluster('r2/0', ['nonsense'])],
      }),
    );
    expect(
      report?.errors.map(({ resourceType, resourceId, path }) => `${resourceType} ${resourceId} ${path}`).sort(),
    ).toEqual([
      'l4_chain c1 hops[0].listen_port',
      'route r2 backend',
      'route r2 hops[0].listen_port',
      'route r3 backend',
      'route r3 host',
    ]);
  });

  it('takes new routes on connections that are up, and lets requests finish when it is removed', async () => {
    let finish: (() => void) | undefined;
    const server = await backend((incoming, response) => {
      if (incoming.url !== '/slow') return void response.end('quick');
      response.write('begun ');
      finish = () => response.end('finished');
    });
    const { port, gateway } = await proxyTo(server.place);
    const idle = plain(port);
    idle.write('GET / HTTP/1.1\r\nHost: a.example\r\n\r\n');
    await once(idle, 'data');
    const slow = ask(port, { path: '/slow' });
    await eventually(() => finish).toBeTypeOf('function');
    await gateway.apply(
      snapshot(2, { http: [httpRule(port, 'b.example', '/', 'r')], clusters: [cluster('r/0', [server.place])] }),
    );
    idle.write('GET / HTTP/1.1\r\nHost: a.example\r\n\r\n');
    expect(String((await once(idle, 'data'))[0])).toMatch(/^HTTP\/1\.1 404 /);
    const closed = once(idle, 'close');
    idle.on('end', () => idle.end());
    await gateway.apply(snapshot(3));
    await closed;
    finish?.();
    expect((await slow).text).toBe('begun finished');
  });
});

describe('a next hop that does not answer', () => {
  /** A next hop that says this to every request, again and again if told so. */
  async function saying(text: string, everyMs?: number): Promise<string> {
    const server = createTcpServer((socket) => {
      socket.on('error', () => undefined);
      socket.once('data', () => {
        socket.write(text);
        const timer = setInterval(() => everyMs !== undefined && socket.write(text), everyMs ?? 1_000);
        socket.once('close', () => clearInterval(timer));
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    closers.push(async () => void server.close());
    return `127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  const switches = 'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: other\r\n\r\n';

  it('but switches protocols unasked, or goes on with interim answers, makes a 502', async () => {
    for (const place of [await saying(switches), await saying('HTTP/1.1 102 Processing\r\n\r\n', 2)]) {
      const { port } = await proxyTo(place);
      expect((await ask(port)).statusCode).toBe(502);
    }
  });

  it('but writes a status line that makes no sense, makes a 502', async () => {
    for (const line of ['HTTP/1.1 000 none', 'HTTP/1.1 200 O\x01K']) {
      const { port } = await proxyTo(await saying(`${line}\r\nContent-Length: 0\r\n\r\n`));
      const { statusCode, statusMessage } = await ask(port);
      expect([statusCode, statusMessage]).toEqual([502, 'Bad Gateway']);
    }
  });

  it('but goes on with interim answers to an offer of WebSocket makes a 502', async () => {
    const { port } = await proxyTo(await saying('HTTP/1.1 102 Processing\r\n\r\n', 2));
    const headers = { connection: 'upgrade', upgrade: 'websocket' };
    expect((await ask(port, { headers })).statusCode).toBe(502);
  });
});
