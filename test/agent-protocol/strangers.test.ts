/**
 * What a connection may hold before it has a session: header lists of 8 KiB, and little that is not answered. Bytes that no
 * agent sends, against the real listener and the real gRPC server. `npm run bench -- strangers` measures the memory.
 */
import { constants, connect as connectHttp2, type ClientHttp2Session } from 'node:http2';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { startAgentFixture, type AgentFixture } from '../support/agent-fixture.js';
import { eventually } from '../support/eventually.js';
import {
  endHeaders,
  endStream,
  frame,
  framesIn,
  FrameType,
  headerList,
  opening,
  tableFilling,
  uint32,
} from '../../scripts/stack/http2-frames.js';
import { createRawAgent, heartbeatOf, helloOf, type RawAgent } from '../support/raw-agent.js';

const openSession = '/svc.control.v1.SecureAgentService/OpenSession';
const control = '/svc.control.v1.SecureAgentService/Control';

let fixture: AgentFixture;
let agent: RawAgent;
const sockets: Socket[] = [];
const clients: ClientHttp2Session[] = [];

beforeEach(async () => {
  fixture = await startAgentFixture();
  agent = await fixture.agent();
});
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  for (const client of clients.splice(0)) client.destroy();
  await fixture.close();
});

const requestHeaders = (path: string): Record<string, string> => ({
  ':method': 'POST',
  ':scheme': 'http',
  ':authority': 'a',
  ':path': path,
  'content-type': 'application/grpc',
  te: 'trailers',
});
const call = (path: string, stream: number, more: Readonly<Record<string, string>> = {}): Buffer =>
  frame(FrameType.headers, endHeaders, stream, headerList({ ...requestHeaders(path), ...more }));
const costly = (): number | undefined => fixture.transport.stats().connections.closed.costly;
/** Headers of about this many bytes together, as HTTP/2 counts them. */
const ballast = (bytes: number): Record<string, string> =>
  Object.fromEntries(Array.from({ length: bytes / 500 }, (_, index) => [`x-${index}`, 'v'.repeat(500 - 36)]));

/** Connects and sends bytes that HTTP/2 libraries do not; `received` grows. */
async function stranger(bytes: Buffer): Promise<{ readonly socket: Socket; received: Buffer }> {
  const socket = connect({ host: fixture.host, port: fixture.port, noDelay: true });
  sockets.push(socket);
  const peer = { socket, received: Buffer.alloc(0) };
  socket.on('error', () => undefined);
  socket.on('data', (data: Buffer) => (peer.received = Buffer.concat([peer.received, data])));
  await once(socket, 'connect');
  socket.write(bytes);
  return peer;
}

describe('a header list', () => {
  test('may have 8 KiB, which the peer is told', async () => {
    const client = connectHttp2(`http://${fixture.transport.address}`);
    clients.push(client);
    client.on('error', () => undefined);
    await once(client, 'remoteSettings');
    expect(client.remoteSettings.maxHeaderListSize).toBe(8192);
  });

  test.each([
    ['that has confirmed the bounds', true],
    ['that has not', false],
  ])('above 8 KiB has its call refused, of a peer %s; the next call is served', async (_, confirmed) => {
    const confirm = confirmed ? frame(FrameType.settings, 1, 0) : Buffer.alloc(0);
    const peer = await stranger(Buffer.concat([opening, confirm]));
    await eventually(() => framesIn(peer.received).length).toBeGreaterThan(0);
    peer.socket.write(call('/none', 1, ballast(8_500)));
    const refusal = { type: FrameType.rstStream, stream: 1, payload: uint32(constants.NGHTTP2_ENHANCE_YOUR_CALM) };
    await eventually(() => framesIn(peer.received)).toContainEqual(refusal);
    peer.socket.write(call('/none', 3, ballast(7_500)));
    await eventually(() => framesIn(peer.received)).toContainEqual(
      expect.objectContaining({ type: FrameType.headers, stream: 3 }),
    );
  });
});

describe('a connection without a session is closed before HTTP/2 has what it sent', () => {
  const many = (part: Buffer): Buffer => Buffer.concat(Array.from({ length: 210 }, () => part));
  // Each is less than may wait for an answer elsewhere, and for none would HTTP/2 itself end the connection at once.
  test.each<[string, Buffer]>([
    ['the head of a header block over 8 KiB', frame(FrameType.headers, 0, 1, Buffer.alloc(8_193)).subarray(0, 9)],
    [
      'heads of blocks over 8 KiB in pieces',
      Buffer.concat([
        frame(FrameType.headers, 0, 1, headerList(requestHeaders(openSession))),
        frame(FrameType.continuation, 0, 1, Buffer.alloc(8_192)).subarray(0, 9),
      ]),
    ],
    ['pings', many(frame(FrameType.ping, 0, 0, Buffer.alloc(8)))],
    ['empty pieces of a request', Buffer.concat([call(openSession, 1), many(frame(FrameType.data, 0, 1))])],
    [
      'empty pieces of a header block',
      Buffer.concat([
        frame(FrameType.headers, 0, 1, headerList(requestHeaders(openSession))),
        many(frame(FrameType.continuation, 0, 1)),
      ]),
    ],
  ])('%s', async (_, bytes) => {
    const { socket, received } = await stranger(opening);
    await eventually(() => fixture.transport.stats().connections.open.without_session).toBe(1);
    expect(received).toHaveLength(0);
    socket.write(bytes);
    await eventually(() => socket.closed).toBe(true);
    expect(costly()).toBe(1);
  });

  test('for the bytes that all connections of its address have sent, and an agent from there gets in', async () => {
    const peers = await Promise.all(Array.from({ length: 120 }, () => stranger(opening)));
    await eventually(() => fixture.transport.stats().connections.open.without_session).toBe(120);
    const whole = (stream: number): Buffer =>
      frame(
        FrameType.headers,
        endHeaders | endStream,
        stream,
        headerList({ ...requestHeaders('/none'), ...ballast(7_500) }),
      );
    for (const { socket } of peers) socket.write(Buffer.concat([whole(1), whole(3)]));
    await eventually(() => costly()).toBeGreaterThan(0);
    await fixture.live(agent);
  });
});

test('an HTTP/2 client that pings, is slow to call and is refused again and again is no stranger', async () => {
  const client = connectHttp2(`http://${fixture.transport.address}`);
  clients.push(client);
  client.on('error', () => undefined);
  await once(client, 'remoteSettings');
  for (let round = 0; round < 4; round += 1) {
    for (let ping = 0; ping < 8; ping += 1) await new Promise<void>((resolve) => void client.ping(() => resolve()));
    const refused = client.request({ ...requestHeaders(openSession), ...ballast(2_000) });
    refused.on('error', () => undefined);
    refused.resume();
    refused.end(Buffer.concat([Buffer.from([0]), uint32(2), Buffer.from([0x0a, 0x7f])]));
    await once(refused, 'close');
  }
  expect(client.closed).toBe(false);
  expect(costly()).toBe(0);
});

describe('a connection without a session is closed', () => {
  const literalOf60KiB = headerList({ ...requestHeaders(control), x: 'v'.repeat(60_000) });
  const message = (length: number): Buffer => Buffer.concat([Buffer.from([0]), uint32(length)]);
  const tableOf = (entries: number): Buffer => {
    const more = Object.fromEntries(Array.from({ length: entries }, (_, index) => [`x${index}`, '1']));
    return frame(FrameType.headers, endHeaders | endStream, 1, tableFilling({ ...requestHeaders('/none'), ...more }));
  };
  test.each<[string, Buffer]>([
    ['half a list of headers', frame(FrameType.headers, 0, 1, literalOf60KiB.subarray(0, 16_384))],
    ['half a frame', frame(FrameType.goAway, 0, 0, Buffer.alloc(16_000)).subarray(0, 8_000)],
    ['a call that does not end', call(openSession, 1)],
    [
      'half a request',
      Buffer.concat([
        call(openSession, 1),
        frame(FrameType.data, 0, 1, Buffer.concat([message(9_000), Buffer.alloc(8_000)])),
      ]),
    ],
    [
      'a request in many pieces',
      Buffer.concat([
        call(openSession, 1),
        frame(FrameType.data, 0, 1, message(9_000)),
        ...Array.from({ length: 30 }, () => frame(FrameType.data, 0, 1, Buffer.alloc(1))),
      ]),
    ],
    ['a table full of headers', tableOf(50)],
    ['a table full of headers, of a list that is refused', tableOf(100)],
  ])('after %s', async (_, bytes) => {
    const { socket } = await stranger(Buffer.concat([opening, bytes]));
    await eventually(() => socket.closed).toBe(true);
    expect(costly()).toBe(1);
  });

  test('not after calls that were answered, however many they are', async () => {
    for (let round = 0; round < 60; round += 1) await agent.open({ timestampMs: 0 });
    const peer = await stranger(opening);
    await fixture.live(agent);
    expect(costly()).toBe(0);
    expect(peer.socket.closed).toBe(false);
  });
});

test('a connection with a session is closed when it carries much beside the frames of the session', async () => {
  /** The connection of the agent to the service, once it stands. */
  let toService: Socket | undefined;
  const relay = createServer((client) => {
    toService = connect({ host: fixture.host, port: fixture.port });
    for (const socket of [client, toService]) socket.on('error', () => undefined);
    sockets.push(client, toService);
    client.pipe(toService).pipe(client);
  });
  await once(relay.listen(0, fixture.host), 'listening');
  const { port } = relay.address() as AddressInfo;
  const { clock, host } = fixture;
  const flooding = createRawAgent({ clock, host, port }, 'node-1', await fixture.issue('node-1'));
  try {
    const stream = await flooding.connect();
    await stream.beat(1);
    // Frames of a type that HTTP/2 does not know are passed over.
    const unknown = Buffer.concat(Array.from({ length: 16 }, () => frame(0xbb, 0, 0, Buffer.alloc(16_000))));
    toService?.write(unknown);
    await stream.beat(2);
    for (let part = 0; part < 3; part += 1) toService?.write(unknown);
    expect((await stream.status).code).toBe(14);
  } finally {
    flooding.disconnect();
    relay.close();
  }
});

test('a connection with a session, also one that is not attached yet, may send as it likes', async () => {
  const opened = await agent.session();
  const stream = agent.attach(opened);
  stream.say(helloOf());
  for (let beat = 1; beat <= 20; beat += 1) stream.say(heartbeatOf(beat, { linkMetrics: [] }));
  await eventually(() => stream.heard.length).toBe(20);
  // Half a message, for as many looks as a stranger's half a request is given.
  stream.sayFragment(Buffer.concat([Buffer.from([1]), Buffer.alloc(60_000)]));
  await stranger(Buffer.concat([opening, call(openSession, 1)]));
  await eventually(() => costly()).toBe(1);
  stream.halfClose();
  await stream.status;
  await eventually(() => fixture.transport.stats().connections.open.without_session).toBe(1);
  await fixture.live(agent);
  expect(costly()).toBe(1);
});
