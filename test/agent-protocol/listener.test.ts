/** The agent listener: which connections it hands over with all their bytes, and which it closes. */
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { Server } from 'node:net';
import { afterEach, expect, test, vi } from 'vitest';
import { silentLogger } from '../../src/kernel/logger.js';
import { h2cPreface, judgeFirstBytes } from '../../src/transport/listener/sniff.js';
import { startListener } from '../../src/transport/listener/listener.js';
import { eventually } from '../support/eventually.js';
import { reading, startListenerFixture, type ListenerFixture } from '../support/listener-fixture.js';
import { createManualClock } from '../support/manual-clock.js';

let fixture: ListenerFixture;

const start = async (options: { readonly maxConnections?: number } = {}): Promise<ListenerFixture> =>
  (fixture = await startListenerFixture(options));
const allGone = { sniffing: 0, without_session: 0, with_session: 0 };

afterEach(() => fixture.close());

test('a connection that sends the preface, at once or byte by byte, is handed over with every byte unread', async () => {
  const { accepted, dial } = await start();
  const rest = Buffer.from('and what follows');
  await dial(Buffer.concat([h2cPreface, rest]));
  const pieces = await dial();
  for (const byte of h2cPreface) {
    pieces.write(Buffer.of(byte));
    await new Promise((resolve) => setImmediate(resolve));
  }
  pieces.write(rest);
  await eventually(() => accepted.length).toBe(2);
  for (const connection of accepted) {
    expect(connection.remoteAddress).toBe('127.0.0.1');
    const read = reading(connection);
    await eventually(() => read.text).toBe(Buffer.concat([h2cPreface, rest]).toString('latin1'));
  }
});

test('a connection that speaks another protocol is closed at the first different byte, without an answer', async () => {
  const { accepted, dial, listener, refusals } = await start();
  for (const bytes of ['GET / HTTP/1.1\r\n\r\n', '\x16\x03\x01\x02\x00', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\rX']) {
    const socket = await dial(Buffer.from(bytes, 'latin1'));
    let received = 0;
    socket.on('data', (data: Buffer) => (received += data.length));
    await eventually(() => socket.closed).toBe(true);
    expect(received).toBe(0);
  }
  expect(accepted).toEqual([]);
  await eventually(() => listener.stats()).toMatchObject({ closed: { foreign: 3 }, open: allGone });
  expect(refusals).toContainEqual({ reason: 'connection_foreign', address: '127.0.0.1' });
});

test('a connection that sends nothing or half a preface is closed after five seconds, a whole one is not', async () => {
  const { accepted, clock, dial, listener } = await start();
  const sockets = [await dial(), await dial(h2cPreface.subarray(0, 10))];
  const agent = await dial(h2cPreface);
  await eventually(() => accepted.length).toBe(1);
  clock.advance(5_001);
  await eventually(() => sockets.map((socket) => socket.closed)).toEqual([true, true]);
  await eventually(() => listener.stats()).toMatchObject({
    closed: { silent: 2 },
    open: { ...allGone, without_session: 1 },
  });
  expect(agent.closed).toBe(false);
});

test('a peer that resets before its preface is complete leaves no connection behind', async () => {
  const { dial, listener } = await start();
  const socket = await dial(h2cPreface.subarray(0, 3));
  socket.resetAndDestroy();
  await eventually(() => listener.stats()).toMatchObject({ accepted: 1, open: allGone });
});

test('destroy closes the socket and calls the close listeners, late ones included', async () => {
  const { accepted, dial } = await start();
  const socket = await dial(h2cPreface);
  await eventually(() => accepted.length).toBe(1);
  let closeCalls = 0;
  accepted[0]!.onClose(() => (closeCalls += 1));
  accepted[0]!.destroy();
  await once(socket, 'close');
  await eventually(() => closeCalls).toBe(1);
  accepted[0]!.onClose(() => (closeCalls += 1));
  expect(closeCalls).toBe(2);
});

test('a connection whose peer is gone before it is accepted has no address: it is closed, and nobody hears of it', async () => {
  const { accepted, dial, listener } = await start();
  const port = Number(listener.address.split(':')[1]);
  const leave = `const s = require('node:net').connect(${port}, '127.0.0.1', () => s.resetAndDestroy())`;
  // This process accepts nothing while it waits for the other one.
  expect(spawnSync(process.execPath, ['-e', leave], { timeout: 60_000 }).status).toBe(0);
  await dial(h2cPreface);
  await eventually(() => accepted.length).toBe(1);
  expect(listener.stats()).toMatchObject({ accepted: 1, open: { ...allGone, without_session: 1 } });
});

test('4096 connections may wait to be accepted', async () => {
  const listen = vi.spyOn(Server.prototype, 'listen');
  try {
    await start();
    expect(listen.mock.calls[0]).toContainEqual({ host: '127.0.0.1', port: 0, backlog: 4096 });
  } finally {
    listen.mockRestore();
  }
});

test('starting on an address in use fails with EADDRINUSE', async () => {
  const { listener } = await start();
  const second = startListener(
    {
      host: '127.0.0.1',
      port: Number(listener.address.split(':')[1]),
      maxConnections: 1,
      proxyFrom: [],
      clock: createManualClock(),
      logger: silentLogger,
      refusals: { note: () => undefined },
    },
    () => undefined,
  );
  await expect(second).rejects.toThrow(/EADDRINUSE/);
});

test('the beginning of a preface is undecided, every other first byte is foreign', () => {
  for (let length = 0; length < h2cPreface.length; length += 1) {
    expect(judgeFirstBytes(h2cPreface.subarray(0, length))).toBe('undecided');
  }
  expect(judgeFirstBytes(h2cPreface)).toBe('h2c');
  for (let byte = 0; byte < 256; byte += 1) {
    expect(judgeFirstBytes(Buffer.of(byte))).toBe(byte === h2cPreface[0] ? 'undecided' : 'foreign');
  }
});
