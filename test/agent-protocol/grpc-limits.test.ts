/** Limits of the gRPC server: message size, streams per connection, methods, bytes that are no frame. */
import { status } from '@grpc/grpc-js';
import { once } from 'node:events';
import { connect as connectHttp2, type IncomingHttpHeaders } from 'node:http2';
import { connect } from 'node:net';
import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { AgentServiceService } from '../../src/gen/svc/control/v1/agent_service.js';
import { SecureAgentServiceService } from '../../src/gen/svc/control/v1/secure_agent_service.js';
import { framedMessage } from '../../src/transport/agent/grpc-messages.js';
import { h2cPreface } from '../../src/transport/listener/sniff.js';
import { startAgentFixture, type AgentFixture } from '../support/agent-fixture.js';
import { eventually } from '../support/eventually.js';
import { createRawAgent, heartbeatOf, helloOf, isRefused, type RawAgent } from '../support/raw-agent.js';

let fixture: AgentFixture;
let agent: RawAgent;

beforeEach(async () => {
  fixture = await startAgentFixture();
  agent = createRawAgent(fixture, 'node-1', await fixture.issue('node-1'));
});
afterEach(async () => {
  agent.disconnect();
  await fixture.close();
});

test('a gRPC message over 66 KiB is refused with RESOURCE_EXHAUSTED, on OpenSession and on Control', async () => {
  const big = Buffer.alloc(66 * 1024 + 1);
  expect(await agent.open({ request: big })).toMatchObject({ code: status.RESOURCE_EXHAUSTED });
  const stream = await agent.connect();
  await eventually(() => fixture.telemetry.opened.length).toBe(1);
  stream.sendBytes(big);
  expect((await stream.status).code).toBe(status.RESOURCE_EXHAUSTED);
  await eventually(() => fixture.transport.stats().sessions).toBe(0);
  expect(fixture.telemetry.ended).toHaveLength(1);
});

test('every RPC of AgentService is answered UNIMPLEMENTED', async () => {
  for (const { path } of Object.values(AgentServiceService)) {
    const answer = await agent.unary(path, Buffer.alloc(0));
    expect(isRefused(answer) ? answer.code : status.OK).toBe(status.UNIMPLEMENTED);
  }
});

test('a connection may carry four streams at once', async () => {
  const session = connectHttp2(`http://${fixture.transport.address}`);
  session.on('error', () => undefined);
  try {
    await once(session, 'remoteSettings');
    expect(session.remoteSettings.maxConcurrentStreams).toBe(4);
  } finally {
    session.destroy();
  }
});

test('a stream that has its status is closed after a while, although its peer keeps its half open', async () => {
  const session = connectHttp2(`http://${fixture.transport.address}`);
  session.on('error', () => undefined);
  try {
    const headers = { 'content-type': 'application/grpc', te: 'trailers' };
    const path = SecureAgentServiceService.control.path;
    const call = session.request({ ':method': 'POST', ':path': path, ...headers }, { endStream: false });
    call.on('error', () => undefined);
    call.resume();
    call.write(framedMessage(Buffer.from([0x0a, 0x7f])));
    const [answer] = (await once(call, 'response')) as [IncomingHttpHeaders];
    expect(answer['grpc-status']).toBe(String(status.INVALID_ARGUMENT));
    expect(call.closed).toBe(false);
    await eventually(() => call.closed).toBe(true);
  } finally {
    session.destroy();
  }
});

test('a connection can carry a second session beside the first, as during a rekey', async () => {
  const first = await agent.connect();
  await eventually(() => fixture.telemetry.opened.length).toBe(1);
  const opened = await agent.session();
  first.say(heartbeatOf(1));
  await eventually(() => first.heard.length).toBe(1);
  const second = agent.attach(opened);
  second.say(helloOf());
  second.say(heartbeatOf(1));
  await eventually(() => second.heard.length).toBe(1);
});

test('bytes that are no frame after the preface, on other connections, do not disturb a session', async () => {
  const stream = await agent.connect();
  await eventually(() => fixture.telemetry.opened.length).toBe(1);
  const closed = Array.from({ length: 20 }, async () => {
    const socket = connect({ host: fixture.host, port: fixture.port });
    socket.on('error', () => undefined);
    // Random bytes may happen to be a valid SETTINGS frame, which keeps the connection; these never are.
    socket.write(Buffer.concat([h2cPreface, Buffer.alloc(2_000, 0xff)]));
    socket.resume();
    await once(socket, 'close');
  });
  await Promise.all(closed);
  stream.say(heartbeatOf(1));
  await eventually(() => stream.heard.length).toBe(1);
});

test('random bytes in frames end only their own session', async () => {
  const stream = await agent.connect();
  await eventually(() => fixture.telemetry.opened.length).toBe(1);
  const other = createRawAgent(fixture, 'node-2', await fixture.issue('node-2'));
  for (let round = 0; round < 20; round += 1) {
    const victim = await other.connect();
    victim.sendBytes(randomBytes(1 + round * 50));
    expect((await victim.status).code).not.toBe(status.OK);
    // The budget of the node is one session a second.
    fixture.clock.advance(1000);
  }
  stream.say(heartbeatOf(1));
  await eventually(() => stream.heard.length).toBe(1);
  other.disconnect();
});
