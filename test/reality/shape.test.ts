/** What somebody on the wire sees of an agent's handshake is what the target said on that very connection. */
import { execFile, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { openReality } from '../../src/agent/reality/handshake.js';
import { createRecordReader } from '../../src/channel/tls/record-reader.js';
import { eventually } from '../support/eventually.js';
import { startRealityFixture, startTlsTarget, targetName } from '../support/reality-fixture.js';
import type { RealityFixture, TlsTarget } from '../support/reality-fixture.js';

let target: TlsTarget;
/** In front of the target; keeps what it said on each connection. */
let said: Buffer[][];
let fixture: RealityFixture;
let closeFront: () => void;

beforeAll(async () => {
  target = await startTlsTarget({ ALPNProtocols: ['h2', 'http/1.1'] });
  said = [];
  const sockets = new Set<Socket>();
  const front = createServer({ allowHalfOpen: true }, (socket) => {
    const parts: Buffer[] = [];
    said.push(parts);
    const behind = connect({ host: '127.0.0.1', port: target.port, allowHalfOpen: true });
    behind.on('data', (bytes: Buffer) => parts.push(bytes));
    for (const one of [socket, behind]) {
      sockets.add(one);
      one.on('error', () => undefined);
    }
    socket.pipe(behind);
    behind.pipe(socket);
  });
  front.listen(0, '127.0.0.1');
  await once(front, 'listening');
  closeFront = () => {
    for (const socket of sockets) socket.destroy();
    front.close();
  };
  fixture = await startRealityFixture((front.address() as AddressInfo).port);
  // The target is asked what it sends after a handshake, once for each offer of protocols.
  await vi.waitFor(() => expect(said.length).toBe(3), 20_000);
});
afterAll(async () => {
  await fixture.close();
  closeFront();
  await target.close();
});

function recordsOf(parts: readonly Buffer[]): readonly string[] {
  const reader = createRecordReader();
  const records: string[] = [];
  reader.push(Buffer.concat(parts));
  for (let record = reader.next(); typeof record === 'object'; record = reader.next())
    records.push(`${record.type}: ${record.bytes.length}`);
  return records;
}

test('the records of the flight have the types and lengths of the target’s, and its ServerHello but for the share', async () => {
  const socket = await fixture.dial();
  const seen: Buffer[] = [];
  socket.on('data', (bytes: Buffer) => seen.push(bytes));
  const before = said.length;
  const opened = await openReality(socket, fixture.access, fixture.listener.clock, 5_000);
  expect(opened.ok).toBe(true);
  const own = recordsOf(said[before] ?? []);
  expect(own.length).toBeGreaterThanOrEqual(6);
  expect(recordsOf(seen).slice(0, 6)).toEqual(own.slice(0, 6));
  const [mine, its] = [Buffer.concat(seen), Buffer.concat(said[before] ?? [])];
  // Up to the random and the session id, the suite and the order of extensions.
  expect(mine.subarray(0, 79).equals(its.subarray(0, 79))).toBe(true);
});

test('after the handshake come records as the target sent them to a visitor: two tickets of OpenSSL', async () => {
  const socket = await fixture.dial();
  const seen: Buffer[] = [];
  socket.on('data', (bytes: Buffer) => seen.push(bytes));
  const opened = await openReality(socket, fixture.access, fixture.listener.clock, 5_000);
  expect(opened.ok).toBe(true);
  if (opened.ok) opened.value.resume();
  await eventually(() => recordsOf(seen).length).toBe(8);
  const visits = said.slice(0, 3).map((parts) => recordsOf(parts).slice(6, 8));
  expect(visits).toContainEqual(recordsOf(seen).slice(6));
  expect(visits.every((records) => records.length === 2)).toBe(true);
});

test.skipIf(spawnSync('openssl', ['version']).status !== 0)(
  'openssl s_client sees the certificate of the target',
  async () => {
    const args = [
      's_client',
      '-connect',
      `127.0.0.1:${fixture.port}`,
      '-servername',
      targetName,
      '-tls1_3',
      '-showcerts',
    ];
    const output = await new Promise<string>((resolve) => {
      const child = execFile('openssl', args, { timeout: 20_000 }, (_error, stdout) => resolve(stdout));
      child.stdin?.end('Q\n');
    });
    expect(output.replaceAll(/\s/g, '')).toContain(target.certificate.replaceAll(/\s/g, ''));
  },
);
