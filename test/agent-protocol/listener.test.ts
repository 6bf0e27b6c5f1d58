/** The agent listener: which connections it hands over with all their bytes, and which it closes. */
import { once } from 'node:events';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { silentLogger } from '../../src/kernel/logger.js';
import type { OwnedConnection } from '../../src/transport/listener/connection.js';
import { h2cPreface, judgeFirstBytes } from '../../src/transport/listener/first-bytes.js';
import { startListener } from '../../src/transport/listener/listener.js';
import type { Listener } from '../../src/transport/listener/listener.js';
import { eventually } from '../support/eventually.js';

let listener: Listener;
const clients: Socket[] = [];
const accepted: OwnedConnection[] = [];

async function start(options: { sniffMs?: number; maxConnections?: number } = {}): Promise<void> {
  accepted.length = 0;
  listener = await startListener(
    { host: '127.0.0.1', port: 0, maxConnections: 100, logger: silentLogger, ...options },
    (connection) => accepted.push(connection),
  );
}

async function dial(): Promise<Socket> {
  const socket = connect({ host: '127.0.0.1', port: Number(listener.address.split(':')[1]) });
  clients.push(socket);
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  return socket;
}

afterEach(async () => {
  for (const client of clients.splice(0)) client.destroy();
  await listener.close(0);
});

test('a connection that sends the preface, at once or byte by byte, is handed over with every byte unread', async () => {
  await start();
  const rest = Buffer.from('and what follows');
  const whole = await dial();
  whole.write(Buffer.concat([h2cPreface, rest]));
  const pieces = await dial();
  pieces.setNoDelay(true);
  for (const byte of h2cPreface) {
    pieces.write(Buffer.of(byte));
    await new Promise((resolve) => setImmediate(resolve));
  }
  pieces.write(rest);
  await eventually(() => accepted.length).toBe(2);
  for (const connection of accepted) {
    expect(connection.remoteAddress).toBe('127.0.0.1');
    let read = Buffer.alloc(0);
    connection.stream.on('data', (bytes: Buffer) => (read = Buffer.concat([read, bytes])));
    connection.stream.resume();
    await eventually(() => read.toString('latin1')).toBe(Buffer.concat([h2cPreface, rest]).toString('latin1'));
  }
});

test('a connection that speaks another protocol is closed at the first different byte, without an answer', async () => {
  await start();
  for (const bytes of ['GET / HTTP/1.1\r\n\r\n', '\x16\x03\x01\x02\x00', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\rX']) {
    const socket = await dial();
    let received = 0;
    socket.on('data', (data: Buffer) => (received += data.length));
    socket.write(bytes, 'latin1');
    await once(socket, 'close');
    expect(received).toBe(0);
  }
  expect(accepted).toEqual([]);
  await eventually(() => listener.stats()).toMatchObject({ foreign: 3, connections: 0 });
});

test('a connection that sends nothing or half a preface is closed when its time is over', async () => {
  await start({ sniffMs: 100 });
  const silent = await dial();
  const half = await dial();
  half.write(h2cPreface.subarray(0, 10));
  await Promise.all([once(silent, 'close'), once(half, 'close')]);
  await eventually(() => listener.stats()).toMatchObject({ silent: 2, connections: 0 });
});

test('a peer that resets before its preface is complete leaves no connection behind', async () => {
  await start();
  const socket = await dial();
  socket.write(h2cPreface.subarray(0, 3));
  socket.resetAndDestroy();
  await eventually(() => listener.stats()).toMatchObject({ accepted: 1, connections: 0 });
});

test('a connection above the limit is closed at once, and a later one is accepted when there is room', async () => {
  await start({ maxConnections: 2 });
  const first = await dial();
  await dial();
  const third = await dial();
  await once(third, 'close');
  expect(listener.stats().dropped).toBe(1);
  first.destroy();
  await eventually(() => listener.stats().connections).toBe(1);
  const fourth = await dial();
  fourth.write(h2cPreface);
  await eventually(() => accepted.length).toBe(1);
});

test('destroy closes the socket and calls the close listeners, late ones included', async () => {
  await start();
  const socket = await dial();
  socket.write(h2cPreface);
  await eventually(() => accepted.length).toBe(1);
  let closeCalls = 0;
  accepted[0]!.onClose(() => (closeCalls += 1));
  accepted[0]!.destroy();
  await once(socket, 'close');
  await eventually(() => closeCalls).toBe(1);
  accepted[0]!.onClose(() => (closeCalls += 1));
  expect(closeCalls).toBe(2);
});

test('starting on an address in use fails with EADDRINUSE', async () => {
  await start();
  const port = Number(listener.address.split(':')[1]);
  const second = startListener({ host: '127.0.0.1', port, maxConnections: 1, logger: silentLogger }, () => undefined);
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
