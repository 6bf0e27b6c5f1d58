/** A TCP listener with several rules: SNI pre-read, TLS termination, the RAW fallback; and clients that are hostile. */
import { once } from 'node:events';
import { type Socket, type AddressInfo } from 'node:net';
import { createServer } from 'node:tls';
import { afterEach, describe, expect, it } from 'vitest';
import type { Gateway } from '../../src/agent/gateway.js';
import { relayLimits } from '../../src/agent/relays/limits.js';
import { ConfigApplyStatus } from '../../src/gen/svc/control/v1/config.js';
import { applied } from '../support/agent-runtime.js';
import { createCertificate } from '../support/certificate.js';
import { eventually } from '../support/eventually.js';
import { cluster, freePort, httpRule, snapshot, tcpRule, tlsRule } from '../support/snapshots.js';
import { named as greeting, tcpPeers } from '../support/tcp-peers.js';
import { helloFor, realHello } from '../support/tls-bytes.js';
import { pinOf, pinShown, tlsClient } from '../support/tls-client.js';

const { closers, runtime, server, client: plain } = tcpPeers();

const named = (name: string): Promise<string> => server(greeting(`${name}:`));

/** Everything that is received until the end; `closed` if the connection fails. */
function everything(socket: Socket): Promise<string> {
  return new Promise((resolve) => {
    const parts: Buffer[] = [];
    socket.on('data', (chunk: Buffer) => parts.push(chunk));
    socket.on('error', () => undefined);
    socket.on('close', (failed) => resolve(failed ? 'closed' : Buffer.concat(parts).toString('latin1')));
    socket.on('end', () => resolve(Buffer.concat(parts).toString('latin1')));
  });
}

/** What the server at the other end of a TLS connection with this name echoes. */
async function overTls(port: number, name: string, text = 'x'): Promise<string> {
  const socket = await tlsClient(port, name);
  const received = everything(socket);
  socket.end(text);
  return received;
}

/** What comes back for these bytes, sent in pieces of `size`, followed by the end of the direction. */
async function send(port: number, bytes: Buffer, size = bytes.length): Promise<string> {
  const socket = plain(port);
  const received = everything(socket);
  socket.setNoDelay(true);
  for (let at = 0; at < bytes.length; at += size) {
    await new Promise<void>((resolve) => socket.write(bytes.subarray(at, at + size), () => resolve()));
  }
  socket.end();
  return received;
}

const [one, two] = [createCertificate('one'), createCertificate('two')];

describe('rules that share a TCP listener', () => {
  it('are told apart by server name, whatever their kind; the RAW rule takes everything else', async () => {
    const port = await freePort();
    const behind = createServer({ cert: two.cert, key: two.key }, (socket) => {
      socket.write('passed:');
      socket.pipe(socket);
    });
    await new Promise<void>((resolve) => behind.listen(0, '127.0.0.1', resolve));
    closers.push(async () => void behind.close());
    const gateway = runtime();
    await applied(gateway, 1, {
      tcp: [
        tlsRule(port, await named('a'), ['a.example', 'also.example'], 'one', 'a'),
        tlsRule(port, await named('wild'), ['*.w.example'], 'two', 'wild'),
        tlsRule(port, await named('exact'), ['x.w.example'], 'one', 'exact'),
        tcpRule(port, `127.0.0.1:${(behind.address() as AddressInfo).port}`, { serverNames: ['p.example'] }, 'passed'),
        tcpRule(port, await named('raw'), {}, 'raw'),
      ],
      certificates: { one, two },
    });
    expect(await overTls(port, 'a.example', 'hello')).toBe('a:hello');
    expect(await overTls(port, 'also.example')).toBe('a:x');
    expect(await overTls(port, 'y.w.example')).toBe('wild:x');
    expect(await overTls(port, 'x.w.example')).toBe('exact:x');
    expect(await overTls(port, 'p.example', 'end to end')).toBe('passed:end to end');
    const hello = helloFor('other.example');
    expect(await send(port, hello)).toBe(`raw:${hello.toString('latin1')}`);
    expect(await send(port, Buffer.from('GET / HTTP/1.0\r\n\r\n'))).toBe('raw:GET / HTTP/1.0\r\n\r\n');

    expect(pinShown(await tlsClient(port, 'a.example'))).toBe(pinOf(one));
    expect(pinShown(await tlsClient(port, 'y.w.example'))).toBe(pinOf(two));
    const [listener] = gateway.runtimeListeners();
    expect(gateway.runtimeListeners()).toHaveLength(1);
    expect(listener?.state).toBe('running');
    expect(listener?.routes.map((route) => [route.service, route.security, route.matchKind, route.matchValue])).toEqual(
      [
        ['name of a', 'tls', 'sni', 'a.example'],
        ['name of a', 'tls', 'sni', 'also.example'],
        ['name of wild', 'tls', 'sni', '*.w.example'],
        ['name of exact', 'tls', 'sni', 'x.w.example'],
        ['name of passed', 'raw', 'sni', 'p.example'],
        ['name of raw', 'raw', 'default', ''],
      ],
    );
  });

  it('are chosen by a ClientHello in any pieces, which the next hop gets unchanged', async () => {
    const port = await freePort();
    await applied(runtime(), 1, { tcp: [tcpRule(port, await named('s'), { serverNames: ['s.example'] })] });
    for (const [recordSize, segment] of [
      [16_384, 1],
      [16_384, 40],
      [5, 3],
      [1, 64],
    ] as const) {
      const bytes = Buffer.concat([helloFor('s.example', recordSize), Buffer.from('and more')]);
      expect(await send(port, bytes, segment)).toBe(`s:${bytes.toString('latin1')}`);
    }
  });

  it('close a connection that none of them is for', async () => {
    const port = await freePort();
    const gateway = runtime();
    await applied(gateway, 1, {
      tcp: [tlsRule(port, await named('a'), ['a.example'], 'one')],
      certificates: { one },
    });
    expect(await send(port, helloFor('b.example'))).toBe('closed');
    expect(await send(port, Buffer.from('hello'))).toBe('closed');
    expect(await send(port, helloFor('a.example').subarray(0, 30))).toBe('closed');
    await eventually(() => gateway.runtimeListeners()[0]?.errorSessions).toBe(3n);
    expect(await overTls(port, 'a.example')).toBe('a:x');
  });

  it('do not take a probe that connects and leaves for a refused client', async () => {
    const port = await freePort();
    const gateway = runtime();
    await applied(gateway, 1, {
      tcp: [tlsRule(port, await named('a'), ['a.example'], 'one')],
      certificates: { one },
    });
    await send(port, Buffer.alloc(0));
    const probe = plain(port);
    await once(probe, 'connect');
    probe.resetAndDestroy();
    expect(await overTls(port, 'a.example')).toBe('a:x');
    await eventually(() => gateway.runtimeListeners()[0]).toMatchObject({ totalSessions: 1n, errorSessions: 0n });
  });

  it('pass a client that ends its direction early on to the RAW rule, with what it sent', async () => {
    const port = await freePort();
    await applied(runtime(), 1, {
      tcp: [
        tcpRule(port, await named('s'), { serverNames: ['s.example'] }, 's'),
        tcpRule(port, await named('raw'), {}, 'r'),
      ],
    });
    const half = helloFor('s.example').subarray(0, 40);
    expect(await send(port, half)).toBe(`raw:${half.toString('latin1')}`);
    expect(await send(port, Buffer.alloc(0))).toBe('raw:');
  });

  it('change without a reconnect: a new rule, a changed one and a removed one, on the same socket', async () => {
    const port = await freePort();
    const gateway = runtime();
    const [a, b] = [await named('a'), await named('b')];
    await applied(gateway, 1, { tcp: [tlsRule(port, a, ['a.example'], 'one', 'a')], certificates: { one } });
    const live = await tlsClient(port, 'a.example');
    const received = everything(live);
    live.write('1');
    await applied(gateway, 2, {
      tcp: [tlsRule(port, b, ['a.example'], 'one', 'a'), tcpRule(port, b, {}, 'raw')],
      certificates: { one },
    });
    expect(await overTls(port, 'a.example')).toBe('b:x');
    expect(await send(port, Buffer.from('r'))).toBe('b:r');
    live.end('2');
    expect(await received).toBe('a:12');
    expect(gateway.runtimeListeners()[0]?.totalSessions).toBe(3n);
  });
});

describe('a certificate', () => {
  it('is replaced for new connections, while those that are up go on', async () => {
    const port = await freePort();
    const gateway = runtime();
    const rule = tlsRule(port, await named('a'), ['a.example'], 'credential');
    await applied(gateway, 1, { tcp: [rule], certificates: { credential: one } });
    const live = await tlsClient(port, 'a.example');
    expect(pinShown(live)).toBe(pinOf(one));
    await applied(gateway, 2, { tcp: [rule], certificates: { credential: two } });
    expect(pinShown(await tlsClient(port, 'a.example'))).toBe(pinOf(two));
    const received = everything(live);
    live.end('still up');
    expect(await received).toBe('a:still up');
  });

  it('that cannot be used rejects the snapshot at the credential of its hop, and the old one serves on', async () => {
    const port = await freePort();
    const gateway = runtime();
    const rule = tlsRule(port, await named('a'), ['a.example'], 'credential', 'c1');
    await applied(gateway, 1, { tcp: [rule], certificates: { credential: one } });
    for (const broken of [
      { cert: 'nonsense', key: one.key },
      { cert: one.cert, key: two.key },
      { cert: one.cert, key: '' },
    ]) {
      const report = await gateway.apply(snapshot(2, { tcp: [rule], certificates: { credential: broken } }));
      expect(report?.status).toBe(ConfigApplyStatus.REJECTED);
      expect(report?.errors).toHaveLength(1);
      expect(report?.errors[0]).toMatchObject({
        resourceType: 'l4_chain',
        resourceId: 'c1',
        path: 'hops[0].credential_id',
      });
      expect(report?.errors[0]?.message).toMatch(/^the certificate or its key cannot be used: /);
      expect(report?.errors[0]?.message).not.toContain('PRIVATE');
    }
    expect(await overTls(port, 'a.example')).toBe('a:x');
  });
});

describe('hostile clients of a listener with server names', () => {
  let port = 0;
  let gateway: Gateway;
  const times = { ...relayLimits };
  afterEach(() => void Object.assign(relayLimits, times));

  async function listener(withFallback: boolean, policies: readonly string[] = []): Promise<void> {
    port = await freePort();
    gateway = runtime();
    await applied(gateway, 1, {
      tcp: [
        tlsRule(port, await named('a'), ['a.example'], 'one', 'a'),
        ...(withFallback ? [tcpRule(port, await named('raw'), {}, 'raw')] : []),
      ],
      certificates: { one },
      policies:
        policies.length === 0
          ? []
          : [{ transport: 'tcp', listenAddr: '127.0.0.1', listenPort: port, priorityOrder: policies }],
    });
  }
  const firstOf = (socket: Socket): Promise<string> =>
    new Promise((resolve) => {
      socket.once('data', (chunk) => resolve(chunk.toString()));
      socket.once('close', () => resolve('closed'));
    });

  it('that say nothing, or only a part, get the RAW rule when the time is over, or are closed', async () => {
    Object.assign(relayLimits, { clientHelloMs: 150 });
    await listener(true);
    expect(await firstOf(plain(port))).toBe('raw:');
    const slow = plain(port);
    slow.write(helloFor('a.example').subarray(0, 20));
    expect(await firstOf(slow)).toMatch(/^raw:/);
    await listener(false);
    expect(await firstOf(plain(port))).toBe('closed');
  });

  it('wait only a moment for the RAW rule where a policy puts it first', async () => {
    Object.assign(relayLimits, { clientHelloMs: 3_600_000, clientHelloShortMs: 20 });
    await listener(true, ['raw', 'reality', 'tls', 'noise']);
    expect(await firstOf(plain(port))).toBe('raw:');
    Object.assign(relayLimits, { clientHelloShortMs: 60_000 });
    expect(await overTls(port, 'a.example')).toBe('a:x');
  });

  it('that never finish the TLS handshake are closed and counted', async () => {
    Object.assign(relayLimits, { tlsHandshakeMs: 100 });
    await listener(false);
    const socket = plain(port);
    socket.write(await realHello('a.example'));
    socket.resume();
    await new Promise((resolve) => socket.once('end', resolve));
    await eventually(() => gateway.report().connections?.handshakeFailures).toBeGreaterThanOrEqual(1n);
  });

  it('make room for others: beyond the bound, the oldest that is undecided is closed', async () => {
    Object.assign(relayLimits, { tcpUndecidedPerListener: 20 });
    await listener(false);
    const idle = Array.from({ length: 60 }, () => plain(port));
    await eventually(() => idle.filter((socket) => socket.destroyed).length).toBe(40);
    expect(await overTls(port, 'a.example')).toBe('a:x');
  });

  it('that send changed and random bytes in any pieces end in time, and nobody else notices', async () => {
    Object.assign(relayLimits, { clientHelloMs: 100, tlsHandshakeMs: 100, httpHeadersMs: 100, httpKeepAliveMs: 100 });
    port = await freePort();
    gateway = runtime();
    await applied(gateway, 1, {
      tcp: [
        tlsRule(port, await named('a'), ['a.example'], 'one', 'a'),
        tcpRule(port, await named('p'), { serverNames: ['p.example'] }, 'p'),
      ],
      http: [httpRule(port, 'h.example', '/', 'h')],
      clusters: [cluster('h/0', [await named('h')])],
      certificates: { one },
    });
    const whole = [
      await realHello('a.example'),
      helloFor('p.example', 30),
      Buffer.from('GET / HTTP/1.1\r\nHost: h.example\r\nContent-Length: 9\r\n\r\n123456789'),
    ];
    const random = seeded(7);
    const attack = async (): Promise<void> => {
      const bytes = Buffer.from(whole[random(whole.length)]!);
      for (let edits = random(5); edits > 0; edits -= 1) bytes[random(bytes.length)] = random(256);
      const cut = random(3) === 0 ? bytes.length : random(bytes.length);
      const socket = plain(port);
      socket.resume();
      const gone = new Promise((resolve) => socket.once('close', resolve));
      for (let at = 0; at < cut;) {
        const end = Math.min(cut, at + 1 + random(200));
        socket.write(bytes.subarray(at, end));
        at = end;
        if (random(4) === 0) await new Promise((resolve) => setImmediate(resolve));
      }
      // Some leave, some wait to be closed; only a connection to a next hop may stay as long as it.
      if (random(2) === 0) socket.end();
      socket.once('end', () => socket.end());
      socket.once('data', () => socket.end());
      await gone;
    };
    for (let round = 0; round < 10; round += 1) await Promise.all(Array.from({ length: 30 }, attack));
    await eventually(() => gateway.runtimeListeners()[0]?.activeSessions).toBe(0n);
    Object.assign(relayLimits, times);
    expect(await overTls(port, 'a.example', 'still here')).toBe('a:still here');
  });
});

/** The same numbers in each run: 0 to `below`, without it. */
function seeded(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}
