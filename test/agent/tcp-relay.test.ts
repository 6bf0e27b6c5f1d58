/** The RAW TCP relay: bytes, and the choice of endpoints. Half-closes, resets, backpressure and edits are in `../agent-check`. */
import { createHash, randomBytes } from 'node:crypto';
import dns from 'node:dns/promises';
import { once } from 'node:events';
import { syncBuiltinESMExports } from 'node:module';
import { type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { describe, expect, it, vi, type Mock } from 'vitest';
import { relayLimits } from '../../src/agent/relays/limits.js';
import { reset } from '../../src/transport/listener/reality/splice.js';
import { applied } from '../support/agent-runtime.js';
import { cluster, freePort, tcpRule } from '../support/snapshots.js';
import { eventually } from '../support/eventually.js';
import { named, tcpPeers } from '../support/tcp-peers.js';

const { closers, runtime, server, client, fullServer } = tcpPeers();

/** The first bytes received; rejects if the connection ends without any. */
function firstBytes(socket: Socket): Promise<string> {
  return new Promise((resolve, reject) => {
    socket.once('data', (chunk) => resolve(chunk.toString()));
    socket.once('close', () => reject(new Error('closed')));
  });
}

function everything(socket: Socket): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = [];
    socket.on('data', (chunk: Buffer) => parts.push(chunk));
    socket.on('end', () => resolve(Buffer.concat(parts)));
    socket.on('close', (failed) => failed && reject(new Error('reset')));
  });
}

/** What comes back for a byte to a new connection. */
function echoed(port: number): Promise<string> {
  const socket = client(port);
  socket.write('x');
  return firstBytes(socket);
}

/** Answers lookups in place of the system until the end of the test. */
function lookups(answer: () => Promise<unknown>) {
  const lookup = vi.spyOn(dns, 'lookup').mockImplementation(answer as never) as Mock<() => Promise<unknown>>;
  syncBuiltinESMExports();
  closers.push(async () => {
    lookup.mockRestore();
    syncBuiltinESMExports();
  });
  return lookup;
}

const sha = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

describe('a RAW TCP relay', () => {
  it('carries 10 MB each way through two hops at once, and the end of each direction', async () => {
    const up = randomBytes(10_000_000);
    const down = randomBytes(10_000_000);
    let received: Promise<Buffer> = Promise.reject(new Error('no connection'));
    received.catch(() => undefined);
    const target = await server((socket) => {
      received = everything(socket);
      socket.end(down);
    });
    const [first, second] = [await freePort(), await freePort()];
    await applied(runtime(), 1, { tcp: [tcpRule(second, 'cluster:u')], clusters: [cluster('u', [target])] });
    const entry = runtime();
    await applied(entry, 1, { tcp: [tcpRule(first, `127.0.0.1:${second}`)] });
    const socket = client(first);
    const back = everything(socket);
    socket.end(up);
    expect(sha(await back)).toBe(sha(down));
    expect(sha(await received)).toBe(sha(up));
    await eventually(() => entry.runtimeListeners()[0]?.activeSessions).toBe(0n);
    expect(entry.runtimeListeners()[0]).toMatchObject({
      state: 'running',
      bytesIn: 10_000_000n,
      bytesOut: 10_000_000n,
      totalSessions: 1n,
      errorSessions: 0n,
    });
    expect(entry.linkMetrics()[0]).toMatchObject({
      peerEndpoint: `127.0.0.1:${second}`,
      bytesOut: 10_000_000n,
      lossRatio: 0,
    });
    expect(entry.report()).toMatchObject({
      connections: { accepted: 1n, closed: 1n },
      bandwidth: { bytesIn: 10_000_000n },
    });
  });

  it('takes the endpoints of a cluster in turn, and the next one if one does not answer', async () => {
    const a = await server(named('a'));
    const b = await server(named('b'));
    const dead = `127.0.0.1:${await freePort()}`;
    const port = await freePort();
    const gateway = runtime();
    await applied(gateway, 1, { tcp: [tcpRule(port, 'cluster:u')], clusters: [cluster('u', [a, b])] });
    const answers = [];
    for (let i = 0; i < 4; i += 1) answers.push(await firstBytes(client(port)));
    expect(answers).toEqual(['a', 'b', 'a', 'b']);
    await applied(gateway, 2, { tcp: [tcpRule(port, 'cluster:u')], clusters: [cluster('u', [dead, a])] });
    expect(await firstBytes(client(port))).toBe('a');
    expect(await firstBytes(client(port))).toBe('a');
    expect(gateway.linkMetrics().find(({ peerEndpoint }) => peerEndpoint === dead)?.lossRatio).toBe(1);
    // An endpoint that no rule dials is no longer reported once its connections have ended.
    for (const close of closers.splice(-6)) await close();
    await eventually(() => gateway.linkMetrics().map(({ peerEndpoint }) => peerEndpoint)).toEqual([a, dead]);
  });

  it('refuses new connections to a disabled cluster and leaves established ones alone', async () => {
    const target = await server(named('up'));
    const port = await freePort();
    const gateway = runtime();
    await applied(gateway, 1, { tcp: [tcpRule(port, 'cluster:u')], clusters: [cluster('u', [target])] });
    const before = client(port);
    expect(await firstBytes(before)).toBe('up');
    await applied(gateway, 2, { tcp: [tcpRule(port, 'cluster:u')], clusters: [cluster('u', [target], false)] });
    await expect(firstBytes(client(port))).rejects.toThrow('closed');
    const echoed = firstBytes(before);
    before.write('still here');
    expect(await echoed).toBe('still here');
  });

  it('gives each address of a name time, and takes the next one if it refuses', async () => {
    const { port: target, open } = await fullServer();
    const [slow, refusing] = ['127.0.0.1', '127.0.0.2'].map((address) => ({ address, family: 4 }));
    const [port, times] = [await freePort(), { ...relayLimits }];
    closers.push(async () => void Object.assign(relayLimits, times));
    Object.assign(relayLimits, { connectTimeoutMs: 60_000 });
    await applied(runtime(), 1, { tcp: [tcpRule(port, `two.example:${target}`)] });
    const lookup = lookups(async () => [slow, refusing]);
    const first = echoed(port);
    await eventually(() => lookup.mock.calls.length).toBe(1);
    // Node gives an address 250 ms.
    await sleep(500);
    open();
    expect(await first).toBe('x');
    lookup.mockImplementation(async () => [refusing, slow]);
    expect(await echoed(port)).toBe('x');
  });

  it('looks a name up once for all who wait for it, and again for the next', async () => {
    const port = await freePort();
    const target = await server((socket) => void socket.pipe(socket));
    const gateway = runtime();
    await applied(gateway, 1, { tcp: [tcpRule(port, target.replace('127.0.0.1', 'one.example'))] });
    let answer: ((addresses: unknown) => void) | undefined;
    const lookup = lookups(() => new Promise((resolve) => (answer = resolve)));
    const all = Promise.all([1, 2, 3, 4, 5].map(() => echoed(port)));
    await eventually(() => answer).toBeTypeOf('function');
    const here = [{ address: '127.0.0.1', family: 4 }];
    await eventually(() => gateway.runtimeListeners()[0]?.activeSessions).toBe(5n);
    answer?.(here);
    expect(await all).toEqual(['x', 'x', 'x', 'x', 'x']);
    expect(lookup).toHaveBeenCalledTimes(1);
    lookup.mockImplementation(async () => here);
    expect(await echoed(port)).toBe('x');
    expect(lookup).toHaveBeenCalledTimes(2);
  });

  it('lets a thousand clients wait that come at once, as after a restart', async () => {
    const [port, clients] = [await freePort(), 1_000];
    await applied(runtime(), 1, { tcp: [tcpRule(port, await server((socket) => void socket.resume()))] });
    const connected = new Int32Array(new SharedArrayBuffer(8));
    const source = `
      const { workerData: { connected, port, clients } } = require('node:worker_threads');
      for (let each = 0; each < clients; each += 1) {
        const socket = require('node:net').connect(port, '127.0.0.1', () => Atomics.add(connected, 0, 1));
        socket.on('error', () => undefined);
      }`;
    const worker = new Worker(source, { eval: true, workerData: { connected, port, clients } });
    closers.push(async () => void (await worker.terminate()));
    await once(worker, 'online');
    // Meanwhile this thread, which is the agent's too, takes none of them.
    for (let waited = 0; waited < 500 && connected[0] !== clients; waited += 1) Atomics.wait(connected, 1, 0, 20);
    expect(connected[0]).toBe(clients);
  });

  it('counts an unreachable next hop as a failed session and closes the client', async () => {
    const port = await freePort();
    const gateway = runtime();
    await applied(gateway, 1, { tcp: [tcpRule(port, `127.0.0.1:${await freePort()}`)] });
    await expect(firstBytes(client(port))).rejects.toThrow('closed');
    await eventually(() => gateway.runtimeListeners()[0]?.errorSessions).toBe(1n);
  });

  it('takes a reset right behind data for a failure, not for an end', async () => {
    const port = await freePort();
    const gateway = runtime();
    const target = await server((socket) => {
      socket.once('data', () => {
        socket.write('the beginning of an answer');
        socket.resetAndDestroy();
      });
    });
    await applied(gateway, 1, { tcp: [tcpRule(port, target)] });
    client(port).write('a request');
    await eventually(() => gateway.runtimeListeners()[0]).toMatchObject({ activeSessions: 0n, errorSessions: 1n });
  });

  it('closes a connection that fails in the moment in which its end is sent', async () => {
    const port = await freePort();
    await applied(runtime(), 1, { tcp: [tcpRule(port, await server(named('up')))] });
    const socket = client(port);
    await once(socket, 'connect');
    const closed = once(socket, 'close');
    socket.end();
    reset(socket);
    await closed;
  });
});
