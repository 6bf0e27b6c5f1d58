/** How a TLS connection ended, whatever of it is still unread (`docs/data-plane.md#tls`). */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { connect as connectTls, TLSSocket } from 'node:tls';
import { expect, it } from 'vitest';
import { createTlsCarrier } from '../../src/agent/relays/tls-ends.js';
import { closersAfterEach } from '../support/closers.js';
import { createCertificate } from '../support/certificate.js';
import { eventually } from '../support/eventually.js';
import { tcpServer } from '../support/snapshots.js';

const closers = closersAfterEach();

const certificate = createCertificate('one');

it.each([
  ['cut', 10, 'talks on'],
  ['cut', 3_000_000, 'talks on'],
  ['cut', 10, 'has ended'],
  ['close_notify', 10, 'talks on'],
  ['close_notify', 3_000_000, 'talks on'],
  ['close_notify', 10, 'has ended'],
])('%s after %i bytes, which a reader that %s reads later', async (how, size, reader) => {
  const server = await tcpServer((socket) => {
    const tls = new TLSSocket(socket, { isServer: true, ...certificate });
    tls.on('error', () => undefined);
    tls.once('data', () => {
      if (how === 'cut') tls.write(Buffer.alloc(size), () => socket.end());
      else tls.end(Buffer.alloc(size));
    });
  });
  const socket: Socket = connect({ host: '127.0.0.1', port: server.port, allowHalfOpen: true });
  closers.push(async () => void socket.destroy(), server.close);
  await once(socket, 'connect');
  const carrier = createTlsCarrier(socket);
  const tls = connectTls({ socket: carrier.stream, rejectUnauthorized: false });
  carrier.watch(tls);
  await once(tls, 'secureConnect');
  let [read, end] = [0, ''];
  tls.on('end', () => (end = 'close_notify'));
  tls.on('error', ({ message }) => (end = message.startsWith('no close_notify') ? 'cut' : message));
  tls.pause();
  if (reader === 'has ended') tls.end('x');
  else tls.write('x');
  // Both directions are over: nothing of the connection is left but what is unread here.
  if (reader === 'has ended') await once(socket, 'close');
  else if (size === 10) await once(socket, 'end');
  else await eventually(() => carrier.stream.readableLength).toBeGreaterThan(0);
  expect([read, end]).toEqual([0, '']);
  tls.on('data', (chunk: Buffer) => (read += chunk.length)).resume();
  await eventually(() => [read, end]).toEqual([size, how]);
});
