/** Bytes and HTTP/2 frames of strangers at the agent listener, in any order and cut anywhere. */
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import fc, { type Arbitrary } from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startDemoReality, type DemoReality } from '../../scripts/stack/demo-reality.js';
import { frame, FrameType, goAway, headerList, opening, rstStream, uint32 } from '../../scripts/stack/http2-frames.js';
import { fuzzTimeoutMs, inputs, sendAll, startFuzzed, type Fuzzed } from './support.js';

const bytes = (maxLength: number): Arbitrary<Buffer> =>
  fc.uint8Array({ maxLength, size: 'max' }).map((array) => Buffer.from(array));

const stream = fc.constantFrom(0, 1, 1, 1, 3, 3, 5, 7, 9, 2, 2 ** 31 - 1);
const path = fc.constantFrom(
  '/svc.control.v1.SecureAgentService/OpenSession',
  '/svc.control.v1.SecureAgentService/Control',
  '/svc.control.v1.AgentService/GetConfig',
  '/x',
  '*',
  '',
);

const requestHeaders = fc
  .record(
    {
      ':method': fc.constantFrom('POST', 'GET', 'CONNECT', ''),
      ':scheme': fc.constantFrom('http', 'https'),
      ':authority': fc.constantFrom('a', ''),
      ':path': path,
      'content-type': fc.constantFrom('application/grpc', 'application/grpc+proto', 'text/plain', ''),
      te: fc.constantFrom('trailers', 'gzip'),
      'grpc-timeout': fc.constantFrom('1n', '1S', '99999999H', 'x'),
      'grpc-encoding': fc.constantFrom('identity', 'gzip', 'x'),
      'x-bin': fc.constantFrom('AA==', '%%%'),
      connection: fc.constant('close'),
    },
    { requiredKeys: [':method', ':scheme', ':path'] },
  )
  .map((headers) => headerList(headers as Readonly<Record<string, string>>));

/** A gRPC message: a prefix that may lie about the length, and content. */
const grpcMessage = fc
  .tuple(fc.constantFrom(0, 0, 0, 1, 255), fc.constantFrom(-1, -1, -1, 0, 70_000, 2 ** 32 - 1), bytes(200))
  .map(([compressed, length, content]) =>
    Buffer.concat([Buffer.from([compressed]), uint32(length === -1 ? content.length : length), content]),
  );

const flags = fc.constantFrom(0, 0x4, 0x4, 0x5, 0x1, 0x8, 0x20, 0xff);

const anyFrame: Arbitrary<Buffer> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.tuple(flags, stream, requestHeaders).map(([f, id, p]) => frame(FrameType.headers, f, id, p)),
  },
  {
    weight: 3,
    arbitrary: fc.tuple(flags, stream, grpcMessage).map(([f, id, p]) => frame(FrameType.data, f & 1, id, p)),
  },
  { weight: 3, arbitrary: fc.tuple(stream, fc.integer({ min: 0, max: 14 })).map(([id, code]) => rstStream(id, code)) },
  {
    weight: 1,
    arbitrary: fc.tuple(flags, stream, bytes(60)).map(([f, id, p]) => frame(FrameType.continuation, f, id, p)),
  },
  { weight: 1, arbitrary: fc.tuple(flags, bytes(36)).map(([f, p]) => frame(FrameType.settings, f, 0, p)) },
  {
    weight: 1,
    arbitrary: fc
      .array(fc.tuple(fc.integer({ min: 0, max: 9 }), fc.constantFrom(0, 1, 2 ** 31 - 1, 2 ** 32 - 1)), {
        maxLength: 6,
      })
      .map((settings) =>
        frame(
          FrameType.settings,
          0,
          0,
          Buffer.concat(settings.map(([id, value]) => Buffer.concat([Buffer.from([0, id]), uint32(value)]))),
        ),
      ),
  },
  { weight: 1, arbitrary: fc.tuple(fc.constantFrom(0, 1), bytes(9)).map(([f, p]) => frame(FrameType.ping, f, 0, p)) },
  {
    weight: 1,
    arbitrary: fc
      .tuple(stream, fc.constantFrom(0, 1, 65_535, 2 ** 31 - 1))
      .map(([id, n]) => frame(FrameType.windowUpdate, 0, id, uint32(n))),
  },
  { weight: 1, arbitrary: fc.constant(goAway()) },
  { weight: 1, arbitrary: fc.tuple(stream, bytes(5)).map(([id, p]) => frame(FrameType.priority, 0, id, p)) },
  {
    weight: 1,
    arbitrary: fc
      .tuple(fc.integer({ min: 0, max: 255 }), flags, stream, bytes(40))
      .map(([t, f, id, p]) => frame(t, f, id, p)),
  },
  { weight: 1, arbitrary: bytes(40) },
);

/** A request that makes sense, and what may follow on its stream: the interleavings that a library may not expect. */
const requestAndMore: Arbitrary<readonly Buffer[]> = fc
  .tuple(
    fc.constantFrom(1, 3),
    fc.constantFrom(0x4, 0x5),
    requestHeaders,
    fc.array(fc.constantFrom('data', 'end', 'reset', 'headers', 'window', 'goaway', 'priority'), { maxLength: 4 }),
    grpcMessage,
  )
  .map(([id, f, headers, more, message]) => [
    frame(FrameType.headers, f, id, headers),
    ...more.map((what) => {
      switch (what) {
        case 'data':
          return frame(FrameType.data, 0, id, message);
        case 'end':
          return frame(FrameType.data, 1, id);
        case 'reset':
          return rstStream(id);
        case 'headers':
          return frame(FrameType.headers, 0x5, id, headers);
        case 'window':
          return frame(FrameType.windowUpdate, 0, id, uint32(1));
        case 'goaway':
          return goAway();
        case 'priority':
          return frame(FrameType.priority, 0, id, Buffer.alloc(5));
        default:
          return what satisfies never;
      }
    }),
  ]);

/** Bytes as they come over one connection: each entry is one write. */
const conversation: Arbitrary<readonly Buffer[]> = fc
  .tuple(
    fc.oneof(
      { weight: 8, arbitrary: fc.constant(opening) },
      { weight: 1, arbitrary: fc.integer({ min: 0, max: opening.length }).map((end) => opening.subarray(0, end)) },
      { weight: 1, arbitrary: bytes(64) },
    ),
    fc.oneof(requestAndMore, fc.array(anyFrame, { minLength: 1, maxLength: 12 })),
    fc.constantFrom('at once', 'frame by frame', 'cut anywhere'),
    fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 4 }),
  )
  .map(([first, frames, how, cuts]) => {
    const all = Buffer.concat([first, ...frames]);
    if (how === 'at once') return [all];
    if (how === 'frame by frame') return [first, ...frames];
    const places = [0, ...cuts.map((cut) => Math.floor(cut * all.length)).sort((a, b) => a - b), all.length];
    return places.slice(1).map((end, index) => all.subarray(places[index], end));
  });

describe.each([
  ['h2c alone', false],
  ['REALITY before it', true],
])('an agent listener with %s', (_name, withReality) => {
  let reality: DemoReality | undefined;
  let fuzzed: Fuzzed;
  beforeAll(async () => {
    if (withReality) reality = await startDemoReality();
    fuzzed = await startFuzzed(reality && { ...reality.env, SVC_REALITY_ALLOW_H2C: 'true' });
  });
  afterAll(async () => {
    await fuzzed.close();
    reality?.close();
  });

  test(
    'is not ended by any bytes, keeps nothing of them, and serves a good agent all the while',
    async () => {
      let connections = 0;
      await sendAll(inputs(conversation, 240), 16, async (writes) => {
        // From many addresses, so that the budget of one is not all that is met.
        connections += 1;
        const localAddress = `127.0.${1 + (connections % 100)}.${1 + (connections % 250)}`;
        const socket = connect({ host: fuzzed.host, port: fuzzed.port, localAddress });
        socket.on('error', () => undefined);
        socket.resume();
        const closed = new Promise((resolve) => socket.once('close', resolve));
        const connected = new Promise((resolve) => socket.once('connect', resolve));
        await Promise.race([connected, closed]);
        for (const write of writes) {
          socket.write(write);
          if (writes.length > 1) await delay(1);
        }
        await Promise.race([closed, delay(50)]);
        if (connections % 4 === 0) socket.resetAndDestroy();
        else if (connections % 4 === 1) socket.end();
        else socket.destroy();
      });
      expect(connections).toBeGreaterThanOrEqual(240);
      await fuzzed.unharmed();
    },
    fuzzTimeoutMs,
  );
});
