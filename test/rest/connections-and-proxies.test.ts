/**
 * Connections of REST: kept alive whatever is answered, HEAD and OPTIONS, and which address a request comes from.
 * `docs/contract/rest.md#envelope`, `docs/contract/rest.md#beside-api`, and SVC_TRUSTED_PROXIES of
 * `docs/contract/configuration.md#configuration`.
 */
import { Agent, request, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { startRest, type RestFixture } from '../support/rest-fixture.js';

type Listening = RestFixture & { readonly port: number };
async function listening(trustedProxies: readonly string[] = []): Promise<Listening> {
  const rest = await startRest({ trustedProxies });
  await rest.app.listen({ host: '127.0.0.1', port: 0 });
  return { ...rest, port: (rest.app.server.address() as AddressInfo).port };
}
/** Trusts no proxy. */
let plain: Listening;
beforeAll(async () => {
  plain = await listening();
});
afterEach(() => vi.restoreAllMocks());
afterAll(() => plain.close());

interface Sent {
  readonly port: number;
  readonly method?: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly agent?: Agent;
  readonly from?: string;
}

interface Answered {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** The client's port, which identifies the connection. */
  readonly clientPort: number;
}

function send({ port, method = 'GET', path, headers = {}, body, agent, from }: Sent): Promise<Answered> {
  return new Promise((resolve, reject) => {
    const where = { host: '127.0.0.1', port, method, path, ...(from === undefined ? {} : { localAddress: from }) };
    const outgoing = request({ ...where, headers, ...(agent === undefined ? {} : { agent }), timeout: 10_000 });
    let socket: Socket | undefined;
    outgoing.on('socket', (own) => (socket = own));
    outgoing.on('error', reject);
    outgoing.on('response', (incoming) => {
      const clientPort = socket?.localPort ?? 0;
      let text = '';
      incoming.on('data', (chunk) => (text += String(chunk)));
      incoming.on('error', reject);
      incoming.on('end', () =>
        resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, text, clientPort }),
      );
    });
    outgoing.end(body);
  });
}

describe('keep-alive', () => {
  test('one connection serves request after request, also after most refusals', async () => {
    const { port, tokenOf } = plain;
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const authorization = `Bearer ${tokenOf('admin')}`;
    const json = { authorization, 'content-type': 'application/json' };
    const sent: readonly (readonly [number, Omit<Sent, 'port'>])[] = [
      [200, { path: '/api/nodes', headers: { authorization } }],
      [401, { path: '/api/nodes', method: 'POST', body: 'x'.repeat(100_000) }],
      [404, { path: '/api/nope', method: 'POST', headers: json, body: 'x'.repeat(100_000) }],
      [405, { path: '/api/nodes', method: 'PATCH', headers: json, body: 'x'.repeat(100_000) }],
      [415, { path: '/api/nodes', method: 'POST', headers: { ...json, 'content-type': 'text/plain' }, body: 'x' }],
      [400, { path: '/api/nodes', method: 'POST', headers: json, body: '{' }],
      [201, { path: '/api/nodes', method: 'POST', headers: json, body: '{"name":"n"}' }],
      [409, { path: '/api/nodes', method: 'POST', headers: json, body: '{"name":"N"}' }],
      [200, { path: '/healthz', method: 'HEAD' }],
      [200, { path: '/healthz' }],
    ];
    const ports = new Set<number>();
    for (const [status, one] of sent) {
      const answer = await send({ ...one, port, agent });
      expect([one.path, answer.status]).toEqual([one.path, status]);
      // Longer than balancers keep idle connections, so that they close first.
      expect([status, answer.headers['keep-alive']]).toEqual([status, 'timeout=72']);
      ports.add(answer.clientPort);
    }
    expect(ports.size).toBe(1);
    agent.destroy();
  });

  test('ends where the client asks for it, and after a body that is too large', async () => {
    const { port, tokenOf } = plain;
    const headers = { authorization: `Bearer ${tokenOf('admin')}`, 'content-type': 'application/json' };
    const asked = await send({ port, path: '/healthz', headers: { connection: 'close' } });
    expect(asked.headers.connection).toBe('close');
    const declared = { ...headers, 'content-length': '999999999', expect: '100-continue' };
    const endless = await send({ port, path: '/api/nodes', method: 'POST', headers: declared });
    expect([endless.status, endless.headers.connection]).toEqual([413, 'close']);
    const large = { port, path: '/api/nodes', method: 'POST', headers, body: 'x'.repeat(2_000_000) };
    const dropped = await send(large);
    expect([dropped.status, dropped.headers.connection]).toEqual([413, 'close']);
  });
});

describe('HEAD and OPTIONS', () => {
  test('HEAD beside /api answers what GET does, without a body; under /api it is a 405, and * is no path', async () => {
    const { port, tokenOf } = plain;
    for (const path of ['/healthz', '/readyz', '/metrics', '/openapi.json', '/docs']) {
      const [get, head] = [await send({ port, path }), await send({ port, path, method: 'HEAD' })];
      expect([path, head.status, head.text]).toEqual([path, get.status, '']);
      expect(head.headers['content-type']).toBe(get.headers['content-type']);
      // What the metrics say changes with every request.
      if (path !== '/metrics') expect(head.headers['content-length']).toBe(get.headers['content-length']);
    }
    const headers = { authorization: `Bearer ${tokenOf('viewer')}` };
    const refused = await send({ port, path: '/api/nodes', method: 'HEAD', headers });
    expect([refused.status, refused.headers.allow, refused.text]).toEqual([405, 'GET, POST', '']);
    expect((await send({ port, path: '/api/nodes', method: 'HEAD' })).status).toBe(401);
    expect((await send({ port, path: '*', method: 'OPTIONS' })).status).toBe(404);
  });
});

describe('trusted proxies: X-Forwarded-For', () => {
  const signIn = (port: number, username: string, forwarded: string | undefined, from = '127.0.0.1') =>
    send({
      port,
      from,
      method: 'POST',
      path: '/api/auth/login',
      headers: {
        'content-type': 'application/json',
        ...(forwarded === undefined ? {} : { 'x-forwarded-for': forwarded }),
      },
      body: JSON.stringify({ username, password: 'not the password' }),
    });

  /** Trusts some addresses of IPv4, and all of IPv6. */
  let proxied: Listening;
  beforeAll(async () => {
    proxied = await listening(['127.0.0.2/32', '10.0.0.0/8', '::/0']);
  });
  afterAll(() => proxied.close());

  async function addresses(rest: Listening, from: string, forwarded: readonly string[]) {
    const login = vi.spyOn(rest.deps.commands.accounts, 'login');
    for (const one of forwarded) await signIn(rest.port, 'nobody', one, from);
    return login.mock.calls.map(([, , address]) => address);
  }

  test('is ignored without the setting, and from an address that the setting does not name', async () => {
    const forged = ['203.0.113.9', '203.0.113.9, 127.0.0.1'];
    expect(await addresses(plain, '127.0.0.1', forged)).toEqual(['127.0.0.1', '127.0.0.1']);
    expect(await addresses(proxied, '127.0.0.3', forged)).toEqual(['127.0.0.3', '127.0.0.3']);
  });

  test('counts from a named proxy: the last address that is not a named proxy itself', async () => {
    expect(
      await addresses(proxied, '127.0.0.2', [
        '198.51.100.7',
        '203.0.113.9, 198.51.100.7',
        '198.51.100.7, 10.1.2.3',
        '198.51.100.7, 10.1.2.3, 2001:db8::1',
        '10.1.2.3, 10.1.2.4',
      ]),
    ).toEqual(['198.51.100.7', '198.51.100.7', '198.51.100.7', '198.51.100.7', '10.1.2.3']);
  });

  test('so the budget of sign-ins is that of the real address: a forged header neither evades nor uses up another one', async () => {
    const statuses = async (times: number, forwarded: (at: number) => string, from: string, name = 'admin') => {
      const found: number[] = [];
      for (let at = 0; at < times; at += 1) found.push((await signIn(proxied.port, name, forwarded(at), from)).status);
      return found;
    };
    const forged = (at: number): string => `198.51.100.${at}`;
    expect(await statuses(6, forged, '127.0.0.3')).toEqual([401, 401, 401, 401, 401, 429]);
    // The addresses that were forged are as free as before.
    expect(await statuses(1, forged, '127.0.0.2')).toEqual([401]);
    const real = (at: number): string => `203.0.113.${at}, 192.0.2.1`;
    // A name that fails from many addresses is slowed, so this is another one.
    expect(await statuses(6, real, '127.0.0.2', 'viewer')).toEqual([401, 401, 401, 401, 401, 429]);
    expect(await statuses(1, () => '192.0.2.2', '127.0.0.2', 'viewer')).toEqual([401]);
  });
});
