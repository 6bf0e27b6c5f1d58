/**
 * How an agent leaves a server whose answer no service of its own can have given: with the alert of a browser and an orderly
 * end (`docs/reality.md#the-certificate`).
 */
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { openReality } from '../../src/agent/reality/handshake.js';
import { alert, recordType } from '../../src/channel/tls/codes.js';
import { message, uint, vector } from '../../src/channel/tls/vectors.js';
import { systemClock } from '../../src/kernel/clock.js';
import { generateX25519 } from '../../src/kernel/crypto/crypto.js';
import { canRun } from '../support/can-run.js';
import { eventually } from '../support/eventually.js';

const servers: Server[] = [];
const programs: ChildProcess[] = [];
const sockets: Socket[] = [];
afterEach(async () => {
  for (const program of programs.splice(0)) program.kill('SIGKILL');
  for (const socket of sockets.splice(0)) socket.destroy();
  for (const server of servers.splice(0)) await new Promise((resolve) => server.close(resolve));
});

/** What the agent says of the server on a port. */
async function told(port: number): Promise<string> {
  const socket = connect({ port, host: '127.0.0.1' });
  sockets.push(socket);
  socket.on('error', () => undefined);
  const access = { publicKey: Buffer.from(generateX25519().publicKey), shortId: '01', serverName: 'target.example' };
  const opened = await openReality(socket, access, systemClock, 5_000);
  return opened.ok ? 'opened' : opened.error;
}

interface Met {
  readonly told: string;
  /** All that came after the hello. */
  readonly said: Buffer;
  /** How the connection ended: `end`, or the code of an error. */
  readonly ended: string;
}

/** Gives an answer to the first flight. */
async function meet(answer: Buffer): Promise<Met> {
  let [said, ended] = [Buffer.alloc(0), ''];
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.push(socket);
    let greeted = false;
    socket.on('data', (bytes: Buffer) => {
      if (greeted) said = Buffer.concat([said, bytes]);
      else socket.write(answer);
      greeted = true;
    });
    socket.on('end', () => {
      ended ||= 'end';
      socket.end();
    });
    socket.on('error', (error: NodeJS.ErrnoException) => (ended ||= error.code ?? ''));
  });
  servers.push(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const sentence = await told((server.address() as AddressInfo).port);
  await eventually(() => ended).not.toBe('');
  return { told: sentence, said, ended };
}

const record = (type: number, content: Buffer): Buffer =>
  Buffer.concat([uint(1, type), uint(2, 0x0303), vector(2, content)]);
const serverHello = (random: Buffer, ...extensions: readonly Buffer[]): Buffer =>
  record(
    recordType.handshake,
    message(2, uint(2, 0x0303), random, vector(1), uint(2, 0x1301), uint(1, 0), vector(2, ...extensions)),
  );
const retry = Buffer.from('cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c', 'hex');
const tls13 = Buffer.from('002b00020304', 'hex');

test.each<[string, Buffer, number, RegExp]>([
  [
    'a HelloRetryRequest',
    serverHello(retry, tls13, Buffer.from('003300020017', 'hex')),
    alert.handshakeFailure,
    /another key share/,
  ],
  ['TLS 1.2', serverHello(randomBytes(32)), alert.protocolVersion, /an older version/],
  [
    'a ServerHello of TLS 1.3 without a key share',
    serverHello(randomBytes(32), tls13),
    alert.decodeError,
    /not agree on TLS 1\.3/,
  ],
  ['HTTP', Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n'), alert.decodeError, /not TLS 1\.3/],
  ['application data', record(recordType.applicationData, randomBytes(64)), alert.unexpectedMessage, /not TLS 1\.3/],
])('an answer that is %s gets an alert and an end', async (_what, answer, code, sentence) => {
  const met = await meet(answer);
  expect(met.told).toMatch(sentence);
  expect([...met.said]).toEqual([recordType.alert, 3, 3, 0, 2, 2, code]);
  expect(met.ended).toBe('end');
});

test('an alert gets nothing but an end', async () => {
  const met = await meet(record(recordType.alert, Buffer.of(2, 40)));
  expect(met).toMatchObject({ told: 'the other side refused the hello', ended: 'end' });
  expect(met.said).toHaveLength(0);
});

describe.skipIf(!canRun('openssl', 'version'))('OpenSSL’s own server', () => {
  test.each<[string, readonly string[], RegExp, RegExp]>([
    ['that knows P-256 alone', ['-groups', 'P-256'], /another key share/, /handshake failure/],
    ['that speaks TLS 1.2 alone', ['-tls1_2'], /an older version/, /protocol version/],
  ])('%s hears the alert of a browser', async (_what, options, sentence, heard) => {
    const folder = mkdtempSync(join(tmpdir(), 'leaving-'));
    const [key, cert] = [join(folder, 'key'), join(folder, 'cert')];
    const ec = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
    execFileSync('openssl', ['req', '-x509', ...ec, '-keyout', key, '-out', cert, '-subj', '/CN=target.example'], {
      stdio: 'pipe',
      timeout: 20_000,
    });
    const program = spawn('openssl', ['s_server', '-accept', '127.0.0.1:0', '-cert', cert, '-key', key, ...options]);
    programs.push(program);
    let output = '';
    for (const stream of [program.stdout, program.stderr])
      stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
    await eventually(() => output).toMatch(/ACCEPT 127\.0\.0\.1:\d+/);
    const port = Number(/ACCEPT 127\.0\.0\.1:(\d+)/.exec(output)![1]);
    expect(await told(port)).toMatch(sentence);
    await eventually(() => output).toMatch(heard);
    rmSync(folder, { recursive: true });
  });
});
