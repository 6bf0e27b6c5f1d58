/** The stream inside an established connection: data, key updates, alerts, ends, and what a peer may not send. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import fc from 'fast-check';
import { afterEach, describe, expect, test } from 'vitest';
import { createRecordCipher, type RecordCipher } from '../../src/channel/tls/record-cipher.js';
import { createRecordReader } from '../../src/channel/tls/record-reader.js';
import { suiteOf, type Suite } from '../../src/channel/tls/suites.js';
import { createTlsStream } from '../../src/channel/tls/tls-stream.js';
import { message } from '../../src/channel/tls/vectors.js';
import { eventually } from '../support/eventually.js';

const sockets: Socket[] = [];
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
});

async function socketPair(): Promise<readonly [Socket, Socket]> {
  const server = createServer({ allowHalfOpen: true });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = connect({ port: (server.address() as AddressInfo).port, host: '127.0.0.1', allowHalfOpen: true });
  const [served] = (await once(server, 'connection')) as [Socket];
  server.close();
  sockets.push(client, served);
  for (const socket of [client, served]) socket.on('error', () => undefined);
  return [client, served];
}

const suite = (id: number): Suite => {
  const found = suiteOf(id);
  if (found === undefined) throw new Error('no such suite');
  return found;
};

interface Peer {
  readonly stream: Duplex;
  /** The connection under the stream. */
  readonly near: Socket;
  /** The other end, by hand. */
  readonly socket: Socket;
  readonly seal: RecordCipher;
  readonly open: RecordCipher;
  /** What the stream has sent, opened. */
  readonly heard: { readonly type: number; readonly content: string }[];
  error: Error | undefined;
}

async function peer(tickets: 'ignored' | 'unexpected' = 'unexpected'): Promise<Peer> {
  const [near, far] = await socketPair();
  const [to, from] = [randomBytes(32), randomBytes(32)];
  const of = suite(0x1301);
  const stream = createTlsStream({
    socket: near,
    records: createRecordReader(),
    receive: createRecordCipher(of, to),
    send: createRecordCipher(of, from),
    tickets,
  });
  const open = createRecordCipher(of, from);
  const heard: Peer['heard'] = [];
  const made: Peer = { stream, near, socket: far, seal: createRecordCipher(of, to), open, heard, error: undefined };
  stream.on('error', (error) => (made.error = error));
  const records = createRecordReader();
  far.on('data', (bytes: Buffer) => {
    records.push(bytes);
    for (let record = records.next(); typeof record === 'object'; record = records.next()) {
      const opened = open.open(record.bytes);
      if (opened === undefined) throw new Error('a record does not open');
      heard.push({ type: opened.type, content: opened.content.toString('hex') });
      // A KeyUpdate.
      if (opened.type === 22 && opened.content[0] === 24) open.update();
    }
  });
  return made;
}

const keyUpdate = (requested: number): Buffer => message(24, Uint8Array.of(requested));

test.each([0x1301, 0x1302, 0x1303])(
  'suite %i: what one side writes the other reads, whatever the sizes',
  async (id) => {
    const [near, far] = await socketPair();
    const of = suite(id);
    const [a, b] = [randomBytes(of.hashBytes), randomBytes(of.hashBytes)];
    const make = (socket: Socket, receive: Buffer, send: Buffer): Duplex =>
      createTlsStream({
        socket,
        records: createRecordReader(),
        receive: createRecordCipher(of, receive),
        send: createRecordCipher(of, send),
        tickets: 'unexpected',
      });
    const [left, right] = [make(near, a, b), make(far, b, a)];
    let got = Buffer.alloc(0);
    right.on('data', (bytes: Buffer) => (got = Buffer.concat([got, bytes])));
    let sent = Buffer.alloc(0);
    const sizes = fc.array(fc.oneof(fc.integer({ min: 1, max: 100 }), fc.integer({ min: 16_380, max: 40_000 })), {
      maxLength: 10,
    });
    await fc.assert(
      fc.asyncProperty(sizes, async (lengths) => {
        for (const length of lengths) {
          const bytes = randomBytes(length);
          sent = Buffer.concat([sent, bytes]);
          left.write(bytes);
        }
        await eventually(() => got.length).toBe(sent.length);
        expect(got.equals(sent)).toBe(true);
      }),
      { numRuns: 20, endOnFailure: true },
    );
  },
);

test('a reader that does not read holds the writer up', async () => {
  const { stream, socket, seal } = await peer();
  let written = 0;
  const write = (): void => {
    while (written < 4_000 && socket.write(seal.seal(23, Buffer.alloc(16_000)))) written += 1;
  };
  socket.on('drain', write);
  write();
  await once(socket, 'drain', { signal: AbortSignal.timeout(300) }).catch(() => undefined);
  await eventually(() => socket.writableNeedDrain).toBe(true);
  expect(written).toBeLessThan(4_000);
  // At most what a stream buffers, and one chunk of the socket.
  expect(stream.readableLength).toBeLessThan(200_000);
  stream.resume();
  await eventually(() => written).toBe(4_000);
});

describe('key updates', () => {
  test('of the peer are followed, and answered when it asks', async () => {
    const { stream, socket, seal, heard } = await peer();
    let got = '';
    stream.on('data', (bytes: Buffer) => (got += bytes.toString()));
    socket.write(seal.seal(22, keyUpdate(0)));
    seal.update();
    socket.write(seal.seal(23, Buffer.from('after one, ')));
    socket.write(seal.seal(22, keyUpdate(1)));
    seal.update();
    socket.write(seal.seal(23, Buffer.from('after two')));
    await eventually(() => got).toBe('after one, after two');
    stream.write('with new keys');
    await eventually(() => heard).toEqual([
      { type: 22, content: '1800000100' },
      { type: 23, content: Buffer.from('with new keys').toString('hex') },
    ]);
  });

  test.each([
    ['with a value that is none', message(24, Uint8Array.of(2)), 47],
    ['with more than a value', message(24, Uint8Array.of(0, 0)), 47],
    ['with the beginning of another message', Buffer.concat([keyUpdate(0), Buffer.of(24)]), 10],
  ])('%s end the connection', async (_what, bytes, alert) => {
    const one = await peer();
    one.stream.resume();
    one.socket.write(one.seal.seal(22, bytes));
    await eventually(() => one.heard).toEqual([{ type: 21, content: Buffer.of(2, alert).toString('hex') }]);
    await eventually(() => one.error?.message).toMatch(/^the TLS connection ended: /);
  });
});

describe('ends', () => {
  test('close_notify ends reading; writing goes on until the stream ends', async () => {
    const { stream, socket, seal, heard } = await peer();
    socket.write(seal.seal(21, Buffer.of(1, 0)));
    await once(stream.resume(), 'end');
    stream.end('last words');
    await eventually(() => heard).toEqual([
      { type: 23, content: Buffer.from('last words').toString('hex') },
      { type: 21, content: '0100' },
    ]);
    await eventually(() => stream.destroyed).toBe(true);
  });

  test('an alert of the peer is an error that says which', async () => {
    const one = await peer();
    one.stream.resume();
    one.socket.write(one.seal.seal(21, Buffer.of(2, 40)));
    await eventually(() => one.error?.message).toBe('the TLS connection ended: the other side sent alert 40');
  });

  test('data that came before the end of the socket is read, even late', async () => {
    const { stream, socket, seal } = await peer();
    socket.end(seal.seal(23, Buffer.from('first')));
    await once(socket, 'finish');
    const [data] = (await once(stream, 'data')) as [Buffer];
    expect(data.toString()).toBe('first');
  });

  test.each([
    ['an end', Buffer.of(1, 0)],
    ['no end', undefined],
  ])('data and %s that came before both directions were over are read, even late', async (_, closing) => {
    const { stream, near, socket, seal } = await peer();
    let [read, ended] = [0, false];
    stream.on('end', () => (ended = true));
    stream.read();
    stream.end();
    // It fills the stream, so that the next record is not opened until somebody reads.
    const full = seal.seal(23, Buffer.alloc(16_384));
    socket.end(closing === undefined ? full : Buffer.concat([full, seal.seal(21, closing)]));
    await once(near, 'close');
    stream.on('data', (bytes: Buffer) => (read += bytes.length));
    await eventually(() => stream.closed).toBe(true);
    expect([read, ended]).toEqual([16_384, closing !== undefined]);
  });

  test('an end of the socket without close_notify is a failure, and no end', async () => {
    const one = await peer();
    let ended = false;
    one.stream.on('end', () => (ended = true));
    one.stream.resume();
    one.socket.end(one.seal.seal(23, Buffer.from('the last bytes of a process that was killed')));
    await eventually(() => one.stream.closed).toBe(true);
    expect([ended, one.error?.message]).toEqual([
      false,
      'the TLS connection ended: no close_notify came before the end of the connection',
    ]);
  });

  /** A stream whose peer has said its last word, so that only the end of writing keeps it open. */
  const halfOver = async (): Promise<Peer> => {
    const one = await peer();
    one.socket.write(one.seal.seal(21, Buffer.of(1, 0)));
    await once(one.stream.resume(), 'end');
    return one;
  };

  test('a stream that ends after its socket was lost is closed', async () => {
    const { stream, near } = await halfOver();
    near.destroy();
    await once(near, 'close');
    stream.end();
    await eventually(() => stream.closed).toBe(true);
  });

  test('a stream whose socket is lost while it ends is closed', async () => {
    const { stream, near } = await halfOver();
    stream.end();
    near.destroy();
    await eventually(() => stream.closed).toBe(true);
  });
});

describe('a peer may not send', () => {
  test.each([
    [
      'a record that was altered',
      (one: Peer) => Buffer.concat([one.seal.seal(23, Buffer.from('x')).subarray(0, -1), Buffer.of(0)]),
      20,
    ],
    ['a record in the clear', () => Buffer.of(23, 3, 3, 0, 1, 0), 20],
    ['a change of ciphers', () => Buffer.of(20, 3, 3, 0, 1, 1), 20],
    ['a record that is too long', () => Buffer.of(23, 3, 3, 255, 255), 22],
    ['something else than records', () => Buffer.from('GET / HTTP/1.1\r\n'), 22],
    ['an empty message', (one: Peer) => one.seal.seal(22, Buffer.alloc(0)), 10],
    ['a ticket to a server', (one: Peer) => one.seal.seal(22, message(4, Buffer.alloc(20))), 10],
    [
      'data within a message',
      (one: Peer) => Buffer.concat([one.seal.seal(22, Buffer.of(24, 0)), one.seal.seal(23, Buffer.of(1))]),
      10,
    ],
    ['a message without an end', (one: Peer) => one.seal.seal(22, Buffer.of(4, 255, 255, 255, 0)), 50],
    [
      '33 records without content',
      (one: Peer) => Buffer.concat(Array.from({ length: 33 }, () => one.seal.seal(23, Buffer.alloc(0)))),
      10,
    ],
  ] as const)('%s', async (_what, bytes, alert) => {
    const one = await peer();
    one.stream.resume();
    one.socket.write(bytes(one));
    await eventually(() => one.heard).toEqual([{ type: 21, content: Buffer.of(2, alert).toString('hex') }]);
    await eventually(() => one.stream.destroyed).toBe(true);
  });

  test('random bytes without ending more than this connection', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ minLength: 1, maxLength: 400 }), async (bytes) => {
        const one = await peer();
        one.stream.resume();
        one.socket.end(bytes);
        await eventually(() => one.stream.destroyed || one.stream.readableEnded).toBe(true);
      }),
      { numRuns: 50, seed: 5, endOnFailure: true },
    );
  });
});

test('a client reads over tickets, which it does not use', async () => {
  const { stream, socket, seal } = await peer('ignored');
  let got = '';
  stream.on('data', (bytes: Buffer) => (got += bytes.toString()));
  socket.write(seal.seal(22, message(4, Buffer.alloc(200))));
  socket.write(seal.seal(23, Buffer.from('data')));
  await eventually(() => got).toBe('data');
});
