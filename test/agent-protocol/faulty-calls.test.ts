/**
 * Calls that make no sense to the service: each is charged to its address, and the fifth ends its connection.
 * `docs/contract/agent-protocol.md#opensession`.
 */
import { status } from '@grpc/grpc-js';
import { once } from 'node:events';
import { connect, type ClientHttp2Session, type IncomingHttpHeaders } from 'node:http2';
import { createConnection, type Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { AgentServiceService } from '../../src/gen/svc/control/v1/agent_service.js';
import { SecureAgentServiceService } from '../../src/gen/svc/control/v1/secure_agent_service.js';
import { OpenSessionRequest, SecureFrame } from '../../src/gen/svc/control/v1/session.js';
import { startAgentFixture, type AgentFixture } from '../support/agent-fixture.js';
import { eventually } from '../support/eventually.js';
import { FrameType, endHeaders, endStream, frame, headerList, opening } from '../../scripts/stack/http2-frames.js';
import { codeOf, heartbeatOf, type RawAgent } from '../support/raw-agent.js';

const burst = 30;
let fixture: AgentFixture;
let agent: RawAgent;
const connections: ClientHttp2Session[] = [];
const sockets: Socket[] = [];

beforeEach(async () => {
  fixture = await startAgentFixture({ admissionDelayMs: 100, failuresPerAddress: { perSecond: 0.01, burst } });
  agent = await fixture.agent();
});
afterEach(async () => {
  for (const connection of connections.splice(0)) connection.destroy();
  for (const socket of sockets.splice(0)) socket.destroy();
  await fixture.close();
});

function dial(): ClientHttp2Session {
  const connection = connect(`http://${fixture.transport.address}`);
  connection.on('error', () => undefined);
  connections.push(connection);
  return connection;
}

const grpc = { 'content-type': 'application/grpc', te: 'trailers' };

/** A gRPC message: not compressed, then its length. */
function message(bytes: Uint8Array): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([head, bytes]);
}

interface Call {
  readonly path: string;
  readonly body: Buffer;
  readonly headers?: Readonly<Record<string, string>>;
  /** The HTTP status, then the gRPC status if there is one. */
  readonly answer: string;
}

/** @returns the statuses, or undefined if the connection ended without an answer */
async function send(connection: ClientHttp2Session, call: Call): Promise<string | undefined> {
  if (connection.destroyed || connection.closed) return undefined;
  const stream = connection.request({
    ':method': 'POST',
    ':path': call.path,
    ...grpc,
    ...call.headers,
  });
  let headers: IncomingHttpHeaders = {};
  stream.on('response', (received) => (headers = received));
  stream.on('trailers', (trailers) => (headers = { ...headers, ...trailers }));
  stream.on('error', () => undefined);
  stream.resume();
  stream.end(call.body);
  await once(stream, 'close');
  const of = headers as Readonly<Record<string, string | number | undefined>>;
  if (of[':status'] === undefined) return undefined;
  return [of[':status'], of['grpc-status']].filter((part) => part !== undefined).join(' ');
}

const openPath = SecureAgentServiceService.openSession.path;
const controlPath = SecureAgentServiceService.control.path;
const request = (partial: Partial<OpenSessionRequest>): Buffer =>
  message(
    OpenSessionRequest.encode({ nodeId: 'n', protocolVersion: 1, handshake: Buffer.alloc(96), ...partial }).finish(),
  );
/** A message as gRPC sends it after it was compressed. */
function compressed(framed: Buffer): Buffer {
  const bytes = message(gzipSync(framed.subarray(5)));
  bytes[0] = 1;
  return bytes;
}

const unknownSession = message(
  SecureFrame.encode({ sessionId: Buffer.alloc(16), sequence: 0n, ciphertext: Buffer.alloc(32) }).finish(),
);

const faulty: Readonly<Record<string, Call>> = {
  'OpenSession that does not parse': {
    path: openPath,
    body: message(Buffer.from([0x0a, 0x7f])),
    answer: `200 ${status.INVALID_ARGUMENT}`,
  },
  'another protocol_version': {
    path: openPath,
    body: request({ protocolVersion: 2 }),
    answer: `200 ${status.FAILED_PRECONDITION}`,
  },
  'a handshake of a wrong length': {
    path: openPath,
    body: request({ handshake: Buffer.alloc(3) }),
    answer: `200 ${status.INVALID_ARGUMENT}`,
  },
  'a message over 66 KiB': {
    path: openPath,
    body: message(Buffer.alloc(66 * 1024 + 1)),
    answer: `200 ${status.RESOURCE_EXHAUSTED}`,
  },
  'an unknown encoding': {
    path: openPath,
    headers: { 'grpc-encoding': 'br' },
    body: Buffer.concat([Buffer.from([1, 0, 0, 0, 1]), Buffer.alloc(1)]),
    answer: `200 ${status.UNIMPLEMENTED}`,
  },
  'an unknown method': { path: '/x', body: message(Buffer.alloc(0)), answer: `200 ${status.UNIMPLEMENTED}` },
  'a method of AgentService': {
    path: AgentServiceService.register.path,
    body: message(Buffer.alloc(0)),
    answer: `200 ${status.UNIMPLEMENTED}`,
  },
  'another content type': {
    path: openPath,
    headers: { 'content-type': 'text/plain' },
    body: Buffer.alloc(0),
    answer: '415',
  },
  'a Control stream with a frame that does not parse': {
    path: controlPath,
    body: message(Buffer.from([0x0a, 0x7f])),
    answer: `200 ${status.INVALID_ARGUMENT}`,
  },
  'a Control stream of an unknown session': {
    path: controlPath,
    body: unknownSession,
    answer: `200 ${status.UNAUTHENTICATED}`,
  },
  'a Control stream of an unknown session, compressed': {
    path: controlPath,
    headers: { 'grpc-encoding': 'gzip' },
    body: compressed(unknownSession),
    answer: `200 ${status.UNAUTHENTICATED}`,
  },
  'a Control stream without a frame': {
    path: controlPath,
    body: Buffer.alloc(0),
    answer: `200 ${status.UNAUTHENTICATED}`,
  },
};

describe('five of them on a connection are answered, and the fifth ends it:', () => {
  test.each(Object.entries(faulty))('%s', async (_name, call) => {
    const connection = dial();
    for (let i = 0; i < 4; i += 1) expect(await send(connection, call)).toBe(call.answer);
    expect(connection.closed).toBe(false);
    expect(await send(connection, call)).toBe(call.answer);
    await eventually(() => connection.destroyed).toBe(true);
    await eventually(() => fixture.refusals.map(({ reason }) => reason)).toContain('connection_faulty_calls');
    expect(fixture.refusals.every(({ address }) => address === '127.0.0.1')).toBe(true);
  });

  test('of different kinds together, with good calls between them', async () => {
    const connection = dial();
    const kinds = Object.values(faulty);
    for (const call of kinds.slice(0, 4)) expect(await send(connection, call)).toBe(call.answer);
    // Only a refused handshake, which has its own budget.
    const wrong: Call = { path: openPath, body: request({}), answer: `200 ${status.UNAUTHENTICATED}` };
    for (let i = 0; i < 10; i += 1) expect(await send(connection, wrong)).toBe(wrong.answer);
    expect(connection.destroyed).toBe(false);
    await send(connection, faulty['an unknown method'] as Call);
    await eventually(() => connection.destroyed).toBe(true);
  });
});

test('each is a failure of its address, so they use up its budget', async () => {
  const kinds = Object.values(faulty);
  for (let sent = 0; sent < burst;) {
    const connection = dial();
    for (let i = 0; i < 4 && sent < burst; i += 1, sent += 1)
      await send(connection, kinds[sent % kinds.length] as Call);
  }
  expect(codeOf(await agent.open())).toBe(status.RESOURCE_EXHAUSTED);
  expect(fixture.transport.stats().handshakes.get('address_budget')).toBe(1);
});

test('a session opened and lost again and again is none of them', async () => {
  const opened = await fixture.live(agent);
  for (let i = 0; i < 8; i += 1) {
    const stream = await agent.connect();
    stream.say(heartbeatOf(1));
    await eventually(() => stream.heard.length).toBeGreaterThan(0);
    stream.halfClose();
    await stream.status;
  }
  expect(fixture.refusals).toEqual([]);
  expect((await opened.status).code).toBe(status.ABORTED);
});

test('Control streams that a draining service refuses are none of them', async () => {
  fixture.storesAway = true;
  const connection = dial();
  const call: Call = { path: controlPath, body: unknownSession, answer: '' };
  for (let i = 0; i < 8; i += 1) expect(await send(connection, call)).toBe(`200 ${status.UNAVAILABLE}`);
  expect(connection.destroyed).toBe(false);
  expect(fixture.refusals).toEqual([]);
});

test('a connection that is ended takes no more calls, also while a stream of it stays open', async () => {
  const socket = createConnection({ host: fixture.host, port: fixture.port });
  sockets.push(socket);
  socket.on('error', () => undefined);
  socket.resume();
  const begin = (path: string) =>
    headerList({ ':method': 'POST', ':scheme': 'http', ':authority': 'a', ':path': path, ...grpc });
  socket.write(Buffer.concat([opening, frame(FrameType.headers, endHeaders, 1, begin(controlPath))]));
  // Unlike a library, it ignores GOAWAY.
  for (let stream = 3; !socket.destroyed && stream < 2_000; stream += 2) {
    socket.write(frame(FrameType.headers, endHeaders | endStream, stream, begin('/x')));
    await setImmediate();
  }
  await eventually(() => socket.destroyed).toBe(true);
  const known = (): number => fixture.refusals.filter(({ reason }) => reason === 'call_unknown').length;
  // The fifth, those that were open beside it, and the one that ended with its connection.
  expect(known()).toBeGreaterThanOrEqual(5);
  expect(known()).toBeLessThanOrEqual(9);
});
