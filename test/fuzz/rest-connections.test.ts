/**
 * Connections of REST that behave badly, over HTTP and HTTPS: reset before the service accepts them or in the middle of an
 * answer, many requests in one write, clients that read slowly or never, bytes that are no requests.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { env } from 'node:process';
import { connect as connectTls } from 'node:tls';
import fc, { type Arbitrary } from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createCertificate } from '../support/certificate.js';
import { fuzzTimeoutMs, inputs, sendAll, startFuzzed, type Fuzzed } from './support.js';

interface Client {
  /** Sent in one write, as often as `repeated`. */
  readonly requests: readonly string[];
  readonly repeated: number;
  /** Over TLS the bytes are then no handshake. */
  readonly bare: boolean;
  /** When the client begins to read, and how: after the write, one chunk every few milliseconds, or never. */
  readonly reads: 'all' | 'slowly' | 'never';
  /** The client is gone once it has read this many bytes, or the time in milliseconds is over. */
  readonly upTo: { readonly bytes: number; readonly ms: number };
  readonly leaves: 'end' | 'destroy' | 'reset';
}

const path = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom('/healthz', '/readyz', '/metrics', '/docs', '/openapi.json', '/nope') },
  { weight: 3, arbitrary: fc.constantFrom('/api/nodes', '/api/audit?page_size=500', '/api/nodes/ports', '/api/links') },
);
/** `TOKEN` is replaced by the admin's. */
const request: Arbitrary<string> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc
      .tuple(fc.constantFrom('GET', 'HEAD'), path, fc.boolean())
      .map(
        ([method, url, known]) =>
          `${method} ${url} HTTP/1.1\r\nhost: a\r\n${known ? 'authorization: Bearer TOKEN\r\n' : ''}\r\n`,
      ),
  },
  {
    weight: 2,
    arbitrary: fc.tuple(fc.nat(70_000), fc.double({ min: 0, max: 1, noNaN: true })).map(([length, sent]) => {
      const body = 'x'.repeat(Math.floor(length * sent));
      return `POST /api/nodes HTTP/1.1\r\nhost: a\r\nauthorization: Bearer TOKEN\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n\r\n${body}`;
    }),
  },
  { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 200 }) },
);
const client: Arbitrary<Client> = fc.record({
  requests: fc.array(request, { minLength: 1, maxLength: 6 }),
  repeated: fc.oneof(
    { weight: 4, arbitrary: fc.constant(1) },
    { weight: 1, arbitrary: fc.integer({ min: 2, max: 300 }) },
  ),
  bare: fc.oneof({ weight: 4, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: fc.constant(true) }),
  reads: fc.constantFrom('all', 'slowly', 'never'),
  upTo: fc.record({
    bytes: fc.oneof(fc.nat(2_000), fc.nat(2_000_000)),
    ms: fc.nat(400),
  }),
  leaves: fc.constantFrom('end', 'destroy', 'reset'),
});

describe.each(['HTTP', 'HTTPS'])('over %s', (scheme) => {
  const tls = scheme === 'HTTPS' ? createCertificate() : undefined;
  const before = env['NODE_TLS_REJECT_UNAUTHORIZED'];
  let fuzzed: Fuzzed;
  beforeAll(async () => {
    // The good requests beside come from the global fetch, which takes no certificate of its own.
    if (tls !== undefined) env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0';
    fuzzed = await startFuzzed({}, tls);
  });
  afterAll(async () => {
    await fuzzed.close();
    if (before === undefined) delete env['NODE_TLS_REJECT_UNAUTHORIZED'];
    else env['NODE_TLS_REJECT_UNAUTHORIZED'] = before;
  });

  async function dial(bare: boolean): Promise<readonly [socket: Socket, inside: Socket]> {
    const socket = connect(Number(new URL(fuzzed.service.url).port), '127.0.0.1');
    socket.on('error', () => undefined);
    await once(socket, 'connect');
    if (tls === undefined || bare) return [socket, socket];
    const inside = connectTls({ socket, ca: tls.cert, host: '127.0.0.1' });
    inside.on('error', () => undefined);
    await new Promise((resolve) => inside.once('secureConnect', resolve).once('close', resolve));
    return [socket, inside];
  }
  const bytesOf = ({ requests, repeated }: Client): Buffer =>
    Buffer.from(requests.join('').repeat(repeated).replaceAll('TOKEN', fuzzed.token), 'latin1');

  async function leave({ leaves }: Client, socket: Socket, inside: Socket): Promise<void> {
    if (socket.destroyed) return;
    if (leaves === 'end') inside.end();
    else if (leaves === 'reset') socket.resetAndDestroy();
    const timer = setTimeout(() => socket.destroy(), 100);
    if (leaves === 'destroy') inside.destroy();
    socket.resume();
    await new Promise<void>((resolve) => (socket.closed ? resolve() : socket.once('close', () => resolve())));
    clearTimeout(timer);
  }

  test(
    'no client of REST ends the process or keeps anything of it',
    async () => {
      await sendAll(inputs(client, 240), 24, async (input, index) => {
        // Every twentieth arrives while the service cannot accept it, and is gone when it can.
        if (index % 20 === 0) {
          fuzzed.service.program().child.kill('SIGSTOP');
          try {
            const [socket] = await dial(true);
            await new Promise((resolve) => socket.write(bytesOf(input).subarray(0, 20_000), resolve));
            socket.resetAndDestroy();
          } finally {
            fuzzed.service.program().child.kill('SIGCONT');
          }
          return;
        }
        const [socket, inside] = await dial(input.bare);
        let read = 0;
        const enough = new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, input.upTo.ms);
          inside.on('data', (chunk: Buffer) => {
            read += chunk.length;
            if (read >= input.upTo.bytes) resolve();
            if (input.reads !== 'slowly') return;
            inside.pause();
            setTimeout(() => inside.resume(), 5);
          });
          socket.once('close', () => {
            clearTimeout(timer);
            resolve();
          });
        });
        if (input.reads === 'never') inside.pause();
        inside.write(bytesOf(input));
        await enough;
        await leave(input, socket, inside);
      });
      expect(fuzzed.service.program().exited(), fuzzed.service.program().output().slice(-2_000)).toBe(false);
      await fuzzed.unharmed();
    },
    fuzzTimeoutMs * 2,
  );
});
