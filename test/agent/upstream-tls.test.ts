/** Dialling a next hop over TLS: only the pinned keys are accepted, and nothing else about the certificate counts. */
import { generateKeyPairSync, X509Certificate } from 'node:crypto';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { createServer, type TlsOptions } from 'node:tls';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Gateway } from '../../src/agent/gateway.js';
import { spkiPin } from '../../src/channel/tls/spki-pin.js';
import { relayLimits } from '../../src/agent/relays/limits.js';
import { timedOut, withDeadline } from '../../src/kernel/background.js';
import { generateX25519 } from '../../src/kernel/crypto/crypto.js';
import type { Logger } from '../../src/kernel/logger.js';
import { closersAfterEach } from '../support/closers.js';
import { agentRuntime, applied } from '../support/agent-runtime.js';
import { createCertificate, type Certificate } from '../support/certificate.js';
import { eventually } from '../support/eventually.js';
import { cluster, freePort, overReality, overTls, tcpRule, tcpServer, tlsRule } from '../support/snapshots.js';
import { pinOf } from '../support/tls-client.js';

const closers = closersAfterEach();
const times = { ...relayLimits };
beforeEach(() => void Object.assign(relayLimits, { newPinMs: 20 }));
afterEach(() => void Object.assign(relayLimits, times));

const lines: { readonly fields: Record<string, unknown>; readonly message: string }[] = [];
const logger = {
  debug: () => undefined,
  info: () => undefined,
  error: () => undefined,
  warn: (fields: object, message: string) => void lines.push({ fields: { ...fields }, message }),
} as unknown as Logger;

function runtime(): Gateway {
  lines.length = 0;
  return agentRuntime(closers, logger);
}

/** Answers with its name and the server name it was asked for, then echoes until the client has ended. */
async function tlsServer(name: string, { cert, key }: Certificate, options: TlsOptions = {}): Promise<string> {
  const server = createServer({ cert, key, allowHalfOpen: true, ...options }, (socket) => {
    socket.on('error', () => undefined);
    socket.write(`${name}(${String(socket.servername)}):`);
    socket.pipe(socket);
  });
  server.on('tlsClientError', () => undefined);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closers.push(async () => void server.close());
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function ask(port: number, text: string): Promise<string> {
  return new Promise((resolve) => {
    const parts: Buffer[] = [];
    const socket = connect({ host: '127.0.0.1', port, allowHalfOpen: true });
    socket.on('data', (chunk: Buffer) => parts.push(chunk));
    socket.on('error', () => undefined);
    socket.on('close', (failed) => resolve(failed ? 'closed' : Buffer.concat(parts).toString()));
    socket.end(text);
  });
}

const [one, two] = [createCertificate('one'), createCertificate('two')];

describe('the pin of a certificate', () => {
  it('is the one that other tools compute, for every kind of key', () => {
    expect(spkiPin(new X509Certificate(one.cert).raw)).toBe(pinOf(one));
  });

  it('is none for bytes that are no certificate', () => {
    const der = new X509Certificate(one.cert).raw;
    const key = generateKeyPairSync('ed25519').publicKey.export({ type: 'spki', format: 'der' });
    for (const bytes of [Buffer.alloc(0), Buffer.from('x'), key, der.subarray(0, 60), Buffer.from([0x30, 0x84, 255])]) {
      expect(spkiPin(bytes)).toBeUndefined();
    }
  });
});

describe('dialling with TLS', () => {
  it('accepts a pinned key, sends the server name, and carries both directions and their ends', async () => {
    const port = await freePort();
    const target = await tlsServer('one', one);
    const gateway = runtime();
    await applied(gateway, 1, { tcp: [tcpRule(port, target, overTls(target, [pinOf(one)], 'inside.example'))] });
    expect(await ask(port, 'hello')).toBe('one(inside.example):hello');
    await eventually(() => gateway.runtimeListeners()[0]).toMatchObject({ activeSessions: 0n, errorSessions: 0n });
    expect(gateway.linkMetrics()[0]).toMatchObject({ peerEndpoint: target, lossRatio: 0 });
  });

  it('does not hold up a stop while a next hop says nothing to a handshake', async () => {
    let dialled = 0;
    const silent = await tcpServer((socket) => void socket.resume().once('data', () => (dialled += 1)));
    closers.push(silent.close);
    const next = `127.0.0.1:${silent.port}`;
    const [tls, reality] = [await freePort(), await freePort()];
    const gateway = runtime();
    const access = overReality(next, generateX25519().publicKey, 'inside.example');
    await applied(gateway, 1, {
      tcp: [tcpRule(tls, next, overTls(next, [pinOf(one)])), tcpRule(reality, next, access)],
    });
    for (const port of [tls, reality]) void ask(port, 'x');
    await eventually(() => dialled).toBe(2);
    expect(await withDeadline(gateway.close(), relayLimits.tlsHandshakeMs / 2)).not.toBe(timedOut);
    // It was not asked for long enough to be called wrong.
    expect(lines).toEqual([]);
  });

  it('resets both sides when what is between two hops dies without close_notify', async () => {
    const [entry, hop] = [await freePort(), await freePort()];
    const dying: Socket[] = [];
    const middle = await tcpServer((socket) => {
      const onward = connect({ host: '127.0.0.1', port: hop, allowHalfOpen: true });
      onward.on('error', () => undefined);
      dying.push(socket, onward);
      socket.on('data', (bytes) => onward.write(bytes));
      onward.on('data', (bytes) => socket.write(bytes));
    });
    let atTarget = '';
    const target = await tcpServer((socket) => {
      socket.on('error', (error) => (atTarget = error.message));
      socket.on('end', () => (atTarget = 'end'));
      socket.once('data', () => socket.write(Buffer.alloc(3_000_000)));
    });
    closers.push(middle.close, target.close, async () => dying.forEach((socket) => socket.destroy()));
    const [first, second] = [runtime(), runtime()];
    await applied(second, 1, {
      tcp: [tlsRule(hop, `127.0.0.1:${target.port}`, ['hop.example'], 'hop')],
      certificates: { hop: one },
    });
    const next = `127.0.0.1:${middle.port}`;
    await applied(first, 1, { tcp: [tcpRule(entry, next, overTls(next, [pinOf(one)], 'hop.example'))] });
    const client = connect({ host: '127.0.0.1', port: entry, allowHalfOpen: true });
    let atClient = '';
    client.on('error', (error) => (atClient = error.message));
    client.on('end', () => (atClient = 'end'));
    client.resume().write('x');
    await eventually(() => client.bytesRead).toBe(3_000_000);
    // As the kernel does for a process that is gone.
    for (const socket of dying) socket.end();
    await eventually(() => [atClient, atTarget].every((how) => how.includes('ECONNRESET'))).toBe(true);
    for (const gateway of [first, second]) {
      await eventually(() => gateway.report().connections).toMatchObject({ active: 0n, failed: 1n });
    }
  });

  it('sends no server name where there is none, or an address', async () => {
    const target = await tlsServer('one', one);
    for (const name of ['', '127.0.0.1']) {
      const port = await freePort();
      await applied(runtime(), 1, { tcp: [tcpRule(port, target, overTls(target, [pinOf(one)], name))] });
      expect(await ask(port, '')).toBe('one(false):');
    }
  });

  it('refuses another key: the connection is closed, counted and logged, and the client sends it nothing', async () => {
    const port = await freePort();
    let received = '';
    const server = createServer({ cert: one.cert, key: one.key }, (socket) => {
      socket.on('error', () => undefined);
      socket.on('data', (chunk) => (received += chunk.toString()));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    closers.push(async () => void server.close());
    const target = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    const gateway = runtime();
    await applied(gateway, 1, { tcp: [tcpRule(port, target, overTls(target, [pinOf(two)], 'a.example'), 'c1')] });
    expect(await ask(port, 'secret')).toBe('closed');
    expect(received).toBe('');
    await eventually(() => gateway.runtimeListeners()[0]?.errorSessions).toBe(1n);
    expect(gateway.report().connections?.handshakeFailures).toBe(1n);
    expect(gateway.linkMetrics()[0]).toMatchObject({ lossRatio: 1 });
    expect(lines).toEqual([
      {
        fields: {
          reason: 'wrong_pin',
          next_hop: target,
          resource_type: 'l4_chain',
          resource_id: 'c1',
          got: pinOf(one),
        },
        message: 'connection refused: the key of the next hop is not pinned',
      },
    ]);
  });

  it('does not fail while a key is replaced and both pins are there, whichever side changes first', async () => {
    const [entry, hop] = [await freePort(), await freePort()];
    const target = await tcpServer((socket) => void socket.end('target'));
    closers.push(() => target.close());
    const next = `127.0.0.1:${hop}`;
    const [dialler, listener] = [runtime(), runtime()];
    const pins = (...of: readonly Certificate[]): readonly string[] => of.map(pinOf);
    const listens = (generation: number, certificate: Certificate): Promise<void> =>
      applied(listener, generation, {
        tcp: [tlsRule(hop, `127.0.0.1:${target.port}`, ['hop.example'], 'hop')],
        certificates: { hop: certificate },
      });
    const dials = (generation: number, ...of: readonly Certificate[]): Promise<void> =>
      applied(dialler, generation, { tcp: [tcpRule(entry, next, overTls(next, pins(...of), 'hop.example'))] });
    await listens(1, one);
    await dials(1, one);
    expect(await ask(entry, '')).toBe('target');
    await dials(2, one, two);
    expect(await ask(entry, '')).toBe('target');
    await listens(2, two);
    expect(await ask(entry, '')).toBe('target');
    await dials(3, two);
    expect(await ask(entry, '')).toBe('target');
    await dials(4, one);
    expect(await ask(entry, '')).toBe('closed');
  });

  it('waits for the pin of a key that is new to it, so that the listening side may change first', async () => {
    Object.assign(relayLimits, { newPinMs: 60_000 });
    const port = await freePort();
    const target = await tlsServer('new', two);
    const gateway = runtime();
    const dials = (generation: number, ...pins: readonly string[]): Promise<void> =>
      applied(gateway, generation, { tcp: [tcpRule(port, target, overTls(target, pins, 'a.example'))] });
    await dials(1, pinOf(one));
    const waiting = [ask(port, 'a'), ask(port, 'b')];
    await eventually(() => gateway.runtimeListeners()[0]?.activeSessions).toBe(2n);
    await dials(2, pinOf(one));
    await dials(3, pinOf(one), pinOf(two));
    expect(await Promise.all(waiting)).toEqual(['new(a.example):a', 'new(a.example):b']);
    expect(gateway.report().connections?.handshakeFailures).toBe(0n);
    expect(lines).toEqual([]);
  });

  it('takes the next endpoint of a cluster if one shows another key', async () => {
    const port = await freePort();
    const [wrong, right] = [await tlsServer('wrong', two), await tlsServer('right', one)];
    const gateway = runtime();
    await applied(gateway, 1, {
      tcp: [tcpRule(port, 'cluster:u', overTls('cluster:u', [pinOf(one)], 'u.example'))],
      clusters: [cluster('u', [wrong, right])],
    });
    expect(await ask(port, '')).toBe('right(u.example):');
    expect(await ask(port, '')).toBe('right(u.example):');
    expect(gateway.report().connections?.handshakeFailures).toBe(1n);
  });

  it('gives up on a next hop that speaks no TLS, or says nothing', async () => {
    Object.assign(relayLimits, { tlsHandshakeMs: 100 });
    const [loud, silent] = [await tcpServer((s) => void s.end('hello')), await tcpServer(() => undefined)];
    for (const server of [loud, silent]) {
      closers.push(() => server.close());
      const port = await freePort();
      const target = `127.0.0.1:${server.port}`;
      const gateway = runtime();
      await applied(gateway, 1, { tcp: [tcpRule(port, target, overTls(target, [pinOf(one)]))] });
      expect(await ask(port, '')).toBe('closed');
      expect(gateway.report().connections?.handshakeFailures).toBe(1n);
      expect(lines).toMatchObject([{ fields: { reason: 'upstream_tls' } }]);
    }
  });

  it('passes 5 MB through two hops with TLS on both sides of each', async () => {
    const [entry, hop] = [await freePort(), await freePort()];
    const target = await tlsServer('t', two);
    const next = `127.0.0.1:${hop}`;
    await applied(runtime(), 1, {
      tcp: [{ ...tlsRule(hop, target, ['hop.example'], 'hop'), ...overTls(target, [pinOf(two)], 't.example') }],
      certificates: { hop: one },
    });
    await applied(runtime(), 1, { tcp: [tcpRule(entry, next, overTls(next, [pinOf(one)], 'hop.example'))] });
    const text = 'x'.repeat(5_000_000);
    const answer = await ask(entry, text);
    expect(answer.length).toBe('t(t.example):'.length + text.length);
    expect(answer.endsWith(text)).toBe(true);
  });
});
